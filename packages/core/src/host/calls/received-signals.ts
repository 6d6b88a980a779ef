/**
 * The AbortSignals that came with one call, or with the constructor of an actor: real signals,
 * which abort when those of the caller do.
 *
 * Abortions that arrive before a signal is used are kept for it. After `end` no signal aborts.
 */
import type { Codec, Encoded } from "../../protocol/codec.ts";

export class ReceivedSignals {
  readonly #codec: Codec;
  readonly #count: number;
  #controllers: Map<number, AbortController> | undefined;
  #early: Map<number, unknown> | undefined;
  #isEnded = false;

  constructor(codec: Codec, count: number) {
    this.#codec = codec;
    this.#count = count;
  }

  /** Whether a signal may still be aborted. */
  get isConnected(): boolean {
    return !this.#isEnded && (this.#controllers?.size ?? 0) > 0;
  }

  /** @param index the signal's place among the signals of the call */
  open(index: number, state: Encoded): AbortSignal {
    const controller = new AbortController();
    const [isAborted, reason] = stateOf(this.#codec.decode(state));
    if (isAborted) controller.abort(reason);
    else if (this.#early?.has(index) === true) controller.abort(this.#early.get(index));
    else if (!this.#isEnded) (this.#controllers ??= new Map()).set(index, controller);
    return controller.signal;
  }

  /**
   * Such a signal does not exist or is no longer used: only the refs inside the reason are
   * released.
   */
  aborted(index: number, reason: Encoded): void {
    const early = (this.#early ??= new Map());
    const isNew = index < this.#count && !early.has(index);
    if (this.#isEnded || !isNew) return this.#codec.decline(reason);
    const controller = this.#controllers?.get(index);
    early.set(index, this.#read(reason));
    this.#controllers?.delete(index);
    controller?.abort(early.get(index));
  }

  end(): void {
    this.#isEnded = true;
    this.#controllers = undefined;
    this.#early = undefined;
  }

  #read(reason: Encoded): unknown {
    try {
      return this.#codec.decode(reason);
    } catch (unreadable) {
      return unreadable;
    }
  }
}

/** Counts the bodies beside the arguments of a call that are states of signals. */
export function countSignals(dependencies: readonly Encoded[]): number {
  let count = 0;
  for (const { isSignal } of dependencies) if (isSignal === true) count += 1;
  return count;
}

/** Whether a call has nothing beside its arguments but values. */
export function isPlainCall(dependencies: readonly Encoded[]): boolean {
  for (const { isSignal, isTrace } of dependencies) {
    if (isSignal === true || isTrace === true) return false;
  }
  return true;
}

function stateOf(value: unknown): readonly [boolean, unknown] {
  return Array.isArray(value) ? [value[0] === true, value[1]] : [false, undefined];
}
