/**
 * The signal of one call whose result may become needless while others of its sample go on, or of a
 * sample whose total time may end: the part of an AbortSignal that a worker asks for. Each of them
 * waits with one, and Node's, with a listener, weighs a kilobyte more (measured).
 */

/** Both an AbortSignal and a CallSignal. */
export type SignalOfCall = Pick<AbortSignal, "aborted" | "throwIfAborted"> & {
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void, options: { readonly once: true }): void;
  removeEventListener(type: "abort", listener: () => void): void;
};

export class CallSignal implements SignalOfCall {
  readonly #sample: SignalOfCall | undefined;
  readonly #follow: (() => void) | undefined;
  /** Several where a call waits for its lease while its sample is given up. */
  #listeners: readonly (() => void)[] = none;
  #isAborted = false;
  #reason: unknown;

  /** @param sample the signal of its sample, which aborts it as well until `leave` */
  constructor(sample: SignalOfCall | undefined) {
    this.#sample = sample;
    if (sample?.aborted === true) this.abort(sample.reason);
    else if (sample !== undefined) {
      this.#follow = () => this.abort(sample.reason);
      sample.addEventListener("abort", this.#follow, { once: true });
    }
  }

  get aborted(): boolean {
    return this.#isAborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  throwIfAborted(): void {
    if (this.#isAborted) throw this.#reason;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    if (this.#isAborted) return;
    // A list that is spread and grows gets room for 17.
    this.#listeners = this.#listeners.length === 0 ? [listener] : this.#listeners.concat(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    if (this.#listeners.includes(listener)) {
      const others = this.#listeners.filter((one) => one !== listener);
      this.#listeners = others.length === 0 ? none : others;
    }
  }

  /** Once; later calls do nothing. */
  abort(reason: unknown): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    this.#reason = reason;
    // As Node's: one that another one removes is not called.
    try {
      for (const listener of this.#listeners) if (this.#listeners.includes(listener)) listener();
    } finally {
      this.#listeners = none;
    }
  }

  /** The call is over: its sample's signal says nothing to it any more. */
  leave(): void {
    if (this.#follow !== undefined) this.#sample?.removeEventListener("abort", this.#follow);
  }
}

const none: readonly (() => void)[] = [];
