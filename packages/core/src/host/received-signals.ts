/**
 * The AbortSignals that came with one call, or with the constructor of an actor: real ones, which are aborted when those of the caller are.
 *
 * What came before anybody looked at them is kept for them. After `end` they are never aborted any more.
 */
import type { Codec, Encoded } from "../protocol/codec.ts";

export class ReceivedSignals {
  readonly #codec: Codec;
  readonly #controllers: Map<number, AbortController> = new Map();
  readonly #early: Map<number, Encoded> = new Map();
  #isEnded = false;

  constructor(codec: Codec) {
    this.#codec = codec;
  }

  /** Whether one of them may still be aborted. */
  get isConnected(): boolean {
    return !this.#isEnded && this.#controllers.size > 0;
  }

  /** @param index among the signals of the call */
  open(index: number, state: Encoded): AbortSignal {
    const controller = new AbortController();
    const [isAborted, reason] = stateOf(this.#codec.decode(state));
    const early = this.#early.get(index);
    if (early !== undefined) this.#abort(controller, early);
    else if (isAborted) controller.abort(reason);
    else if (!this.#isEnded) this.#controllers.set(index, controller);
    return controller.signal;
  }

  aborted(index: number, reason: Encoded): void {
    if (this.#isEnded) return this.#codec.decline(reason);
    const controller = this.#controllers.get(index);
    if (controller === undefined) {
      // Once is enough, and who says more is not listened to.
      if (!this.#early.has(index) && this.#early.size < mostEarly) this.#early.set(index, reason);
      return;
    }
    this.#controllers.delete(index);
    this.#abort(controller, reason);
  }

  end(): void {
    this.#isEnded = true;
    this.#controllers.clear();
    this.#early.clear();
  }

  #abort(controller: AbortController, reason: Encoded): void {
    let value: unknown;
    try {
      value = this.#codec.decode(reason);
    } catch (unreadable) {
      value = unreadable;
    }
    controller.abort(value);
  }
}

const mostEarly = 65_536;

function stateOf(value: unknown): readonly [boolean, unknown] {
  return Array.isArray(value) ? [value[0] === true, value[1]] : [false, undefined];
}
