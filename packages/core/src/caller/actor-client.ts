/**
 * One caller's view of one actor: its calls in submission order, from `.remote()` to the answer.
 *
 * A call whose argument is not ready holds back the later ones (Ray's head-of-line rule); a call without credit waits here, encoded.
 * When the host is lost, what was sent is retried if it may be and else rejected; what was not sent waits for the restart.
 * Retries of lost calls keep their order; retries after an exception go to the end.
 */
import type { Encoded } from "../protocol/codec.ts";
import type { FailureData } from "../protocol/failure.ts";
import type { Route } from "../protocol/messages.ts";
import {
  type ActorIdentity,
  actorDeath,
  ActorUnavailableError,
  type DeathCause,
} from "../shared/errors.ts";
import { Fifo } from "../shared/fifo.ts";
import type { ObjectEntry } from "../store/object-entry.ts";
import type { ActorInfo, ActorLocation, ActorLoss, Directory } from "../rpc/directory.ts";
import type { Pending } from "../rpc/pending-table.ts";
import type { Session } from "../rpc/session.ts";

/** What a client needs of the runtime it belongs to. */
export interface ClientLink {
  readonly directory: Directory;
  /** The session with a host, or undefined when it is gone already. */
  session(hostId: string): Promise<Session | undefined>;
  /** Gives an entry the value that arrived for it, and takes over the refs inside. */
  settle(entry: ObjectEntry, value: Encoded): void;
  readFailure(error: Encoded): FailureData;
  describe(error: Error): FailureData;
  /** Whether values of these entries are away: then they are brought, and `resume` is called when all are there or have failed. */
  bringing(entries: readonly ObjectEntry[], resume: () => void): boolean;
  /** Whether user code's failure is to be tried again. */
  retryable(failure: FailureData, policy: boolean | readonly string[]): boolean;
}

type State =
  | { readonly kind: "locating" }
  | { readonly kind: "ready"; readonly session: Session; readonly actorId: string }
  | { readonly kind: "dead"; readonly failure: FailureData };

export class ActorCall implements Pending {
  readonly route: Route;
  readonly args: Encoded;
  readonly entry: ObjectEntry;
  readonly dependencies: readonly ObjectEntry[];
  retriesLeft: number;
  readonly retryExceptions: boolean | readonly string[];
  unresolved = 0;
  readonly #client: ActorClient;

  constructor(
    client: ActorClient,
    route: Route,
    args: Encoded,
    dependencies: readonly ObjectEntry[],
    entry: ObjectEntry,
    retriesLeft: number,
    retryExceptions: boolean | readonly string[],
  ) {
    this.#client = client;
    this.route = route;
    this.args = args;
    this.dependencies = dependencies;
    this.entry = entry;
    this.retriesLeft = retriesLeft;
    this.retryExceptions = retryExceptions;
  }

  resolve(value: Encoded): void {
    this.#client.succeeded(this, value);
  }

  reject(error: Encoded): void {
    this.#client.failed(this, error);
  }

  lose(): void {
    this.#client.lost(this);
  }
}

export class ActorClient {
  readonly info: ActorInfo;
  readonly #link: ClientLink;
  #state: State = { kind: "locating" };
  #queue: Fifo<ActorCall> = new Fifo();
  #lost: ActorCall[] = [];
  #waitingForCredit = false;
  readonly #routes: Map<string, Route> = new Map();

  /** @param registered settles when the directory knows the actor */
  constructor(info: ActorInfo, link: ClientLink, registered?: Promise<void>) {
    this.info = info;
    this.#link = link;
    if (registered === undefined) this.#locate();
    else
      registered.then(
        () => this.#locate(),
        (error: unknown) => this.#die(link.describe(error as Error)),
      );
  }

  get #identity(): ActorIdentity {
    return { actorId: this.info.actorId, className: this.info.className };
  }

  /** Calls that wait here: for the actor, for an argument, for credit. */
  get queued(): number {
    return this.#queue.size;
  }

  submit(call: ActorCall): void {
    const state = this.#state;
    if (state.kind === "dead") return call.entry.reject(state.failure);
    for (const dependency of call.dependencies) {
      if (dependency.outcome !== undefined) continue;
      call.unresolved += 1;
      dependency.whenSettled(() => {
        call.unresolved -= 1;
        if (call.unresolved === 0) this.#drain();
      });
    }
    this.#queue.push(call);
    if (state.kind === "ready") this.#drain();
  }

  succeeded(call: ActorCall, value: Encoded): void {
    this.#link.settle(call.entry, value);
  }

  failed(call: ActorCall, error: Encoded): void {
    const failure = this.#link.readFailure(error);
    if (call.retriesLeft !== 0 && this.#link.retryable(failure, call.retryExceptions)) {
      call.retriesLeft -= 1;
      this.#queue.push(call);
      this.#drain();
    } else {
      call.entry.reject(failure);
    }
  }

  lost(call: ActorCall): void {
    this.#lost.push(call);
  }

  #drain(): void {
    const state = this.#state;
    if (state.kind !== "ready" || this.#waitingForCredit) return;
    for (;;) {
      const head = this.#queue.peek();
      if (head === undefined || head.unresolved > 0 || !state.session.isOpen) return;
      if (!state.session.hasCredit(this.info.maxConcurrency)) {
        this.#waitingForCredit = true;
        state.session.whenCredit(this.info.maxConcurrency, () => {
          this.#waitingForCredit = false;
          this.#drain();
        });
        return;
      }
      if (head.dependencies.length > 0 && this.#bringing(head)) return;
      this.#queue.shift();
      const dependencies: Encoded[] = head.dependencies.length === 0 ? none : [];
      let failure: FailureData | undefined;
      for (const { outcome } of head.dependencies) {
        if (outcome?.ok === false) failure ??= outcome.failure;
        else if (outcome?.value !== undefined) dependencies.push(outcome.value);
      }
      if (failure !== undefined) head.entry.reject(failure);
      else
        state.session.call(this.#route(head.route, state.actorId), head.args, dependencies, head);
    }
  }

  /** An argument that is away holds the call back like one that is not ready. */
  #bringing(call: ActorCall): boolean {
    const isBringing = this.#link.bringing(call.dependencies, () => {
      call.unresolved -= 1;
      this.#drain();
    });
    if (isBringing) call.unresolved += 1;
    return isBringing;
  }

  /** The route to the actor's own id, when this handle was given another by getIfExists. */
  #route(route: Route, actorId: string): Route {
    if (route.target === actorId) return route;
    let own = this.#routes.get(route.method);
    if (own?.target !== actorId) {
      own = { target: actorId, method: route.method };
      this.#routes.set(route.method, own);
    }
    return own;
  }

  #locate(): void {
    this.#link.directory.locate(this.info.actorId).then(
      (location) => this.#located(location),
      (error: unknown) => this.#die(this.#link.describe(error as Error)),
    );
  }

  async #located(location: ActorLocation): Promise<void> {
    if (location.state === "dead") {
      return this.#die(this.#link.describe(actorDeath(this.#identity, location.cause)));
    }
    const session = await this.#link.session(location.hostId).catch(() => undefined);
    if (session === undefined || !session.isOpen) return this.#afterLoss(location.incarnation);
    this.#state = { kind: "ready", session, actorId: location.actorId };
    void session.closed.then((reason) => this.#afterLoss(location.incarnation, reason));
    this.#drain();
  }

  async #afterLoss(incarnation: number, reason?: DeathCause): Promise<void> {
    this.#state = { kind: "locating" };
    this.#waitingForCredit = false;
    const lost = this.#lost;
    this.#lost = [];
    const { restarting, cause } = await this.#lossOf(incarnation, reason);
    const failure = this.#link.describe(
      restarting
        ? new ActorUnavailableError(this.#identity, cause)
        : actorDeath(this.#identity, cause),
    );
    const again = new Fifo<ActorCall>();
    for (const call of lost) {
      if (restarting && call.retriesLeft !== 0) {
        call.retriesLeft -= 1;
        again.push(call);
      } else {
        call.entry.reject(failure);
      }
    }
    if (!restarting) return this.#die(failure);
    for (const call of this.#queue.drain()) again.push(call);
    this.#queue = again;
    this.#locate();
  }

  async #lossOf(incarnation: number, reason: DeathCause | undefined): Promise<ActorLoss> {
    // Only the way to it broke; the actor may well live, and a new way is looked for.
    if (reason?.kind === "channel-broken") return { restarting: true, cause: reason };
    try {
      return await this.#link.directory.loss(this.info.actorId, incarnation);
    } catch (error) {
      return { restarting: false, cause: { kind: "unreachable", message: String(error) } };
    }
  }

  #die(failure: FailureData): void {
    this.#state = { kind: "dead", failure };
    for (const call of this.#queue.drain()) call.entry.reject(failure);
  }
}

/** Shared by all calls without dependencies; nobody writes to it. */
const none: Encoded[] = [];
