/**
 * Calls that a peer has sent over one session and that have no answer yet, and what its fetches
 * count: what is cancelled, what nobody has looked at, and how much the peer may have under way.
 */
import type { Encoded } from "../../protocol/codec.ts";
import type { CallMessage, Message } from "../../protocol/message.ts";
import { RaySystemError } from "../../shared/errors.ts";
import { Claims } from "./claims.ts";
import { Ledger, type LedgerParts } from "./ledger.ts";

type AbortMessage = Extract<Message, { kind: "abort" }>;

/** A call that has arrived and is not answered, as a receiver of what may still come for it. */
export interface Running {
  cancel(recursive: boolean): void;
  /** The consumer has taken so many items of its stream. */
  consumed(count: number): void;
  /** A signal among its arguments is aborted. */
  aborted(index: number, reason: Encoded): void;
  /** Nobody hears its answer any more. */
  callerLost(): void;
}

export class IncomingCalls {
  readonly claims: Claims;
  readonly #onUnread: (value: Encoded) => void;
  /** Indexed by the caller's id, which is a slot number and so small. */
  readonly #running: (Running | undefined)[] = [];
  readonly #ledger: Ledger;
  /** Calls with refs among their arguments that nobody has looked at. */
  readonly #unread: Map<number, CallMessage> = new Map();
  /** Calls that were cancelled ahead of their own turn. */
  readonly #cancelledAhead: Set<number> = new Set();
  /** The last call whose arguments were decoded. */
  #readId = -1;

  readonly #beganMs: () => number;

  /**
   * @param beganMs when the call that holds the thread began, as of clockMs()
   * @param claims memory for the claims of calls, if both sides share some
   */
  constructor(
    ledger: LedgerParts,
    onUnread: (value: Encoded) => void,
    beganMs: () => number,
    claims: () => Int32Array | undefined,
  ) {
    this.claims = new Claims(claims);
    this.#ledger = new Ledger(ledger);
    this.#onUnread = onUnread;
    this.#beganMs = beganMs;
  }

  /** When the call that holds the thread began, as of clockMs(). */
  get sinceMs(): number {
    return this.#beganMs();
  }

  /** The arguments of that call are decoded. */
  wasRead(id: number): void {
    this.#readId = id;
    if (this.#unread.size > 0) this.#unread.delete(id);
  }

  /** A call goes on after the turn in which it arrived; untrack it before it is answered. */
  track(id: number, running: Running): void {
    this.#running[id] = running;
  }

  untrack(id: number): void {
    this.#running[id] = undefined;
  }

  runningOf(id: number): Running | undefined {
    return this.#running[id];
  }

  *tracked(): Iterable<Running> {
    for (const running of this.#running) if (running !== undefined) yield running;
  }

  /** Whether a call that is not tracked was cancelled meanwhile. */
  isCancelled(id: number): boolean {
    return this.#cancelledAhead.size > 0 && this.#cancelledAhead.has(id);
  }

  /** @throws RaySystemError for a call that the peer may not make now: a free id is used again */
  check({ id, route }: CallMessage): void {
    this.#ledger.checkCall(id, route.target);
    if (id < this.#running.length && this.#running[id] !== undefined) {
      throw new RaySystemError(`call ${id} is under way`);
    }
  }

  /** A call is about to be handed over. */
  begin(call: CallMessage): void {
    if (hasReferences(call)) this.#unread.set(call.id, call);
    this.#readId = -1;
  }

  /** A call was handed over: it is held when it goes on. */
  handedOver(call: CallMessage): void {
    const { id } = call;
    if (this.#running[id] !== undefined) this.#ledger.hold(call, this.#readId === id);
  }

  /** @throws RaySystemError for a fetch that the peer may not make now */
  beginFetch(id: number): void {
    this.#ledger.beginFetch(id);
  }

  consumed(id: number, count: number): void {
    this.#running[id]?.consumed(count);
  }

  cancel(id: number, recursive: boolean): void {
    this.#running[id]?.cancel(recursive);
    if (this.#cancelledAhead.size > 0) this.#cancelledAhead.delete(id);
  }

  /** A cancellation counts before the messages that arrived ahead of it are handled. */
  cancelAhead(id: number, recursive: boolean): void {
    const running = this.#running[id];
    if (running !== undefined) running.cancel(recursive);
    else this.#cancelledAhead.add(id);
  }

  /** Nobody will look at that value. */
  unread(value: Encoded): void {
    this.#onUnread(value);
  }

  aborted({ id, index, reason }: AbortMessage, bytes: number): void {
    this.#ledger.aborted(id, bytes);
    const running = this.#running[id];
    if (running === undefined) this.#onUnread(reason);
    else running.aborted(index, reason);
  }

  /** A call or fetch has its answer: nobody will look at arguments that are unread until now. */
  ended(id: number): void {
    this.#ledger.ended(id);
    if (this.#unread.size === 0) return;
    const call = this.#unread.get(id);
    if (call === undefined) return;
    this.#unread.delete(id);
    for (const value of [call.arguments, ...call.dependencies]) this.#onUnread(value);
  }

  callersLost(): void {
    for (const running of this.#running) running?.callerLost();
  }
}

function hasReferences({ arguments: args, dependencies }: CallMessage): boolean {
  if (args.referenceCount > 0) return true;
  // A closure would be made for each call.
  for (const { referenceCount } of dependencies) if (referenceCount > 0) return true;
  return false;
}
