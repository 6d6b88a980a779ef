/**
 * Calls whose arguments have values on another host: the values are pulled from there before the
 * call runs.
 *
 * Calls of one session to one concurrency group of an actor keep their order: later calls wait
 * behind such a call. Calls of another session do not, even from the same peer: a broken old
 * session may end late. Tasks have no order. A cancelled call is answered at once and delays no
 * other call; values in transit for it are dropped.
 */
import type { Caller } from "../../caller/caller.ts";
import type { Encoded } from "../../protocol/codec.ts";
import type { CallMessage } from "../../protocol/message.ts";
import type { Running } from "../../rpc/session/incoming-calls.ts";
import type { Session } from "../../rpc/session/session.ts";
import { Fifo } from "../../shared/fifo.ts";
import { brokenChannel } from "../../transport/channel.ts";
import { timers } from "../../shared/machine/timers.ts";

/** Runs a call, or answers it. */
export type RunCall = (call: CallMessage, session: Session) => void;

export class PendingArguments {
  readonly #caller: Caller;
  readonly #run: RunCall;
  readonly #lines: Map<Session, Map<string, Fifo<Arrival>>> = new Map();

  constructor(caller: Caller, run: RunCall) {
    this.#caller = caller;
    this.#run = run;
  }

  /** Returns whether the call has to wait here; it runs later then. */
  takes(call: CallMessage, session: Session, isOrdered: boolean): boolean {
    const { target, shape } = call.route;
    const place = isOrdered ? JSON.stringify([target, shape?.group]) : String(call.id);
    let lines = this.#lines.get(session);
    let line = lines?.get(place);
    const isAway = call.dependencies.some(({ isLocated }) => isLocated === true);
    if (line === undefined && !isAway) return false;
    if (lines === undefined) {
      lines = new Map();
      this.#lines.set(session, lines);
    }
    if (line === undefined) {
      line = new Fifo();
      lines.set(place, line);
    }
    // A method on the stack may be asking whether it was cancelled: no call starts inside it.
    const arrival = new Arrival(call, session, () =>
      timers.queueMicrotask(() => this.#next(session, place)),
    );
    line.push(arrival);
    if (isAway) void this.#pull(arrival, session, place);
    else arrival.isReady = true;
    return true;
  }

  get isEmpty(): boolean {
    return this.#lines.size === 0;
  }

  async #pull(arrival: Arrival, session: Session, place: string): Promise<void> {
    await arrival.pull(this.#caller);
    this.#next(session, place);
  }

  #next(session: Session, place: string): void {
    const lines = this.#lines.get(session);
    const line = lines?.get(place);
    if (lines === undefined || line === undefined) return;
    for (let head = line.peek(); head?.isReady === true; head = line.peek()) {
      line.shift();
      head.leave(this.#caller, this.#run);
    }
    // The calls that ran may have begun a new line in its place.
    if (line.size > 0 || lines.get(place) !== line) return;
    lines.delete(place);
    if (lines.size === 0 && this.#lines.get(session) === lines) this.#lines.delete(session);
  }
}

class Arrival implements Running {
  readonly #call: CallMessage;
  readonly #session: Session;
  #dependencies: readonly Encoded[] = [];
  #failure: Encoded | undefined;
  /** Whether it was cancelled, or its caller is gone: it never runs. */
  #isOver = false;
  #consumed = 0;
  readonly #aborted: (readonly [number, Encoded])[] = [];
  readonly #onOver: () => void;
  isReady = false;

  constructor(call: CallMessage, session: Session, onOver: () => void) {
    this.#call = call;
    this.#session = session;
    this.#onOver = onOver;
    session.calls.track(call.id, this);
  }

  async pull(caller: Caller): Promise<void> {
    const entries = this.#call.dependencies.map((value) => {
      const entry = caller.objects.store.create("an argument");
      caller.objects.settle(entry, value);
      return entry;
    });
    await caller.objects.bringHere(entries, () => {
      const failed = entries.find(({ outcome }) => outcome?.ok === false)?.outcome;
      if (failed?.ok === false) this.#failure = caller.values.codec.encode(failed.failure, "error");
      this.#dependencies = entries.flatMap(({ outcome }) => outcome?.value ?? []);
    });
    this.isReady = true;
  }

  leave(caller: Caller, run: RunCall): void {
    if (this.#isOver) return;
    const { id } = this.#call;
    const session = this.#session;
    session.calls.untrack(id);
    if (this.#failure !== undefined) {
      return session.answer({ kind: "failure", id, error: this.#failure });
    }
    const isPulled = this.#dependencies.length > 0;
    try {
      run(isPulled ? { ...this.#call, dependencies: this.#dependencies } : this.#call, session);
      if (this.#consumed > 0) session.calls.runningOf(id)?.consumed(this.#consumed);
      for (const [index, reason] of this.#aborted)
        session.calls.runningOf(id)?.aborted(index, reason);
    } catch (error) {
      // The session treats the error as if the message had just come.
      session.close(brokenChannel(error));
    }
  }

  cancel(): void {
    this.#end();
    this.#session.answer({ kind: "cancelled", id: this.#call.id });
    this.#onOver();
  }

  consumed(count: number): void {
    // The stream has no items yet, but its consumer may already have left.
    this.#consumed = count;
  }

  aborted(index: number, reason: Encoded): void {
    this.#aborted.push([index, reason]);
  }

  callerLost(): void {
    this.#end();
    // Nobody receives this answer; it releases the call's resources here.
    this.#session.answer({ kind: "gone", id: this.#call.id });
    this.#onOver();
  }

  /** Removes the call from the session, so that its number can be used again. */
  #end(): void {
    this.#session.calls.untrack(this.#call.id);
    this.#isOver = true;
    this.isReady = true;
  }
}
