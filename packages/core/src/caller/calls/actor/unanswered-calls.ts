/** The calls of an actor that have no answer, and the handles that keep the actor until then. */
import type { Call } from "../call.ts";

/** The handle by which an actor is called, which is alive as long as this is. */
export interface Hold {
  readonly handle: object;
  /** Whether it keeps its actor alive. */
  readonly isCounted: boolean;
}

export class UnansweredCalls {
  /** How many there are, sent or not. */
  count = 0;
  /** How many were made by counted handles. */
  #countedCount = 0;
  #counted: Hold | undefined;
  /** Without any handle, the client of the actor would be forgotten before its answers arrive. */
  #weak: Hold | undefined;

  /** The handles that are kept now. */
  get held(): readonly Hold[] {
    return [this.#counted, this.#weak].filter((hold) => hold !== undefined);
  }

  /** Keeps the handle by which a call was made until all such calls are answered. */
  keep(call: Pick<Call, "isSettled" | "isCounted">, hold: Hold): void {
    if (call.isSettled) return;
    if (!hold.isCounted) {
      this.#weak ??= hold;
      return;
    }
    call.isCounted = true;
    this.#countedCount += 1;
    this.#counted ??= hold;
  }

  settled(call: Pick<Call, "isCounted">): void {
    this.count -= 1;
    if (this.count === 0) this.#weak = undefined;
    if (!call.isCounted) return;
    call.isCounted = false;
    this.#countedCount -= 1;
    if (this.#countedCount === 0) this.#counted = undefined;
  }
}
