/**
 * One living actor: the user's object, its mailbox and its concurrency.
 *
 * Calls start in order of arrival, at most `limit` at a time (1 for a sync actor). A method that returns a thenable holds its place until that
 * settles; any other is answered at once. Only public methods of the class can be called: not fields, not the constructor.
 */
import type { Codec, Encoded } from "../protocol/codec.ts";
import type { CallMessage, Session } from "../rpc/session.ts";
import { type RemoteSite, RaySystemError } from "../shared/errors.ts";
import { Fifo } from "../shared/fifo.ts";
import { type Method, methodsOf } from "../shared/methods.ts";

/** What an answer is called in messages to people, and where it came from. */
export interface InstanceIdentity {
  readonly className: string;
  readonly actorId: string;
  readonly hostId: string;
}

/** A method that held the thread longer than this is expected to do so again; so is one that never ran. */
const slowMs = 0.5;

interface KnownMethod {
  readonly run: Method;
  slow: boolean;
}

interface Item {
  readonly call: CallMessage;
  readonly session: Session;
}

export class Instance {
  readonly #object: object;
  readonly #methods: ReadonlyMap<string, KnownMethod>;
  readonly #limit: number;
  readonly #identity: InstanceIdentity;
  readonly #codec: Codec;
  readonly #queue: Fifo<Item> = new Fifo();
  #running = 0;
  #executed = 0;

  constructor(object: object, limit: number, identity: InstanceIdentity, codec: Codec) {
    this.#object = object;
    this.#methods = new Map(
      [...methodsOf(Object.getPrototypeOf(object) as object)].map(([name, run]) => [
        name,
        { run, slow: true },
      ]),
    );
    this.#limit = limit;
    this.#identity = identity;
    this.#codec = codec;
  }

  get stats(): { readonly running: number; readonly queued: number; readonly executed: number } {
    return { running: this.#running, queued: this.#queue.size, executed: this.#executed };
  }

  receive(call: CallMessage, session: Session): void {
    if (this.#running < this.#limit) this.#start(call, session);
    else this.#queue.push({ call, session });
  }

  #start(call: CallMessage, session: Session): void {
    const { method } = call.route;
    let result: unknown;
    let waits: boolean;
    try {
      const found = this.#methods.get(method);
      if (found === undefined) {
        throw new RaySystemError(`${this.#identity.className} has no method "${method}"`);
      }
      const args = decodeArguments(this.#codec, call);
      this.#executed += 1;
      // What is answered already does not wait for a method that may take its time.
      if (found.slow) session.flush();
      result = found.run.apply(this.#object, args);
      found.slow = session.lap() > slowMs;
      waits = isThenable(result);
    } catch (error) {
      return this.#answerFailure(call, session, error);
    }
    if (!waits) return this.#answer(call, session, result);
    this.#running += 1;
    Promise.resolve(result).then(
      (value) => {
        this.#answer(call, session, value);
        this.#finish();
      },
      (error: unknown) => {
        this.#answerFailure(call, session, error);
        this.#finish();
      },
    );
  }

  #finish(): void {
    this.#running -= 1;
    while (this.#running < this.#limit) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      this.#start(next.call, next.session);
    }
  }

  #answer(call: CallMessage, session: Session, value: unknown): void {
    let encoded: Encoded;
    try {
      encoded = this.#codec.encode(
        value,
        `result of ${this.#identity.className}.${call.route.method}`,
      );
    } catch (error) {
      return this.#answerFailure(call, session, error);
    }
    session.answer(call.id, encoded);
  }

  #answerFailure(call: CallMessage, session: Session, error: unknown): void {
    const site: RemoteSite = {
      functionName: `${this.#identity.className}.${call.route.method}`,
      hostId: this.#identity.hostId,
      actorId: this.#identity.actorId,
    };
    session.answerFailure(call.id, this.#codec.encodeFailure(error, site));
  }
}

export function decodeArguments(
  codec: Codec,
  call: { readonly arguments: Encoded; readonly dependencies: readonly Encoded[] },
): unknown[] {
  if (call.dependencies.length === 0) return codec.decode(call.arguments) as unknown[];
  const slots = call.dependencies.map((dependency) => codec.decode(dependency));
  return codec.decode(call.arguments, slots) as unknown[];
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as { then?: unknown }).then === "function"
  );
}
