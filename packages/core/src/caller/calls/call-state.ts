/**
 * How far a call is, in one number: a million of them may wait. The functions are static, because a
 * private method is one more field of each object.
 */
const unstarted = 1;
const again = 2;
const cancelled = 4;
const done = 8;
const placed = 16;
const counted = 32;
const apart = 64;
const tried = 128;

/** The bits above these count arguments. */
const oneUnresolved = 256;

export class CallState {
  #bits = 0;

  /** Arguments that are not ready. */
  get unresolved(): number {
    return Math.floor(this.#bits / oneUnresolved);
  }

  set unresolved(count: number) {
    this.#bits = (this.#bits & (oneUnresolved - 1)) + count * oneUnresolved;
  }

  /** It was sent in vain: it may be sent again without being a retry. */
  get isUnstarted(): boolean {
    return CallState.#has(this, unstarted);
  }

  set isUnstarted(isSo: boolean) {
    CallState.#set(this, unstarted, isSo);
  }

  /** It was made before, and failed or lost its result. */
  get isAgain(): boolean {
    return CallState.#has(this, again);
  }

  set isAgain(isSo: boolean) {
    CallState.#set(this, again, isSo);
  }

  get isCancelled(): boolean {
    return CallState.#has(this, cancelled);
  }

  set isCancelled(isSo: boolean) {
    CallState.#set(this, cancelled, isSo);
  }

  get isSettled(): boolean {
    return CallState.#has(this, done);
  }

  set isSettled(isSo: boolean) {
    CallState.#set(this, done, isSo);
  }

  /** It is settled, and the other side has not come to its end. */
  get keepsPlace(): boolean {
    return CallState.#has(this, placed);
  }

  set keepsPlace(isSo: boolean) {
    CallState.#set(this, placed, isSo);
  }

  /** It keeps its actor alive. */
  get isCounted(): boolean {
    return CallState.#has(this, counted);
  }

  set isCounted(isSo: boolean) {
    CallState.#set(this, counted, isSo);
  }

  /** The code that made it ends it: a cancellation of its task passes it by. */
  get isApart(): boolean {
    return CallState.#has(this, apart);
  }

  set isApart(isSo: boolean) {
    CallState.#set(this, apart, isSo);
  }

  /** An earlier attempt was sent: it has run, or it was lost and may have run. */
  get mayHaveRun(): boolean {
    return CallState.#has(this, tried);
  }

  set mayHaveRun(isSo: boolean) {
    CallState.#set(this, tried, isSo);
  }

  static #has(state: CallState, bit: number): boolean {
    return (state.#bits & bit) !== 0;
  }

  static #set(state: CallState, bit: number, isSo: boolean): void {
    state.#bits = isSo ? state.#bits | bit : state.#bits & ~bit;
  }
}
