/**
 * AbortSignals among the arguments of a call. Their state travels with the call each time that it
 * is sent, and an abort follows it as long as the call has no answer.
 *
 * Each signal of each call has one listener, which is removed when the call is settled.
 */
import { inspect } from "node:util";
import { type Codec, type Encoded, sizeOf } from "../../protocol/codec.ts";
import { maxReasonBytes } from "../../rpc/session/ledger.ts";

/** Collects the signals of one call while its arguments are encoded. */
export class SignalSlots {
  /** Most calls have none. */
  signals: AbortSignal[] | undefined = undefined;
  readonly #first: number;

  /** @param first the slot of the first of them: behind those of refs */
  constructor(first: number) {
    this.#first = first;
  }

  /** Returns its slot. */
  add(signal: AbortSignal): number {
    this.signals ??= [];
    return this.#first + this.signals.push(signal) - 1;
  }
}

export class CallSignals {
  readonly #signals: readonly AbortSignal[];
  readonly #codec: Codec;
  /** Which were aborted when their states were taken last. */
  #known: readonly boolean[] = [];
  #endListening: (() => void) | undefined;

  constructor(signals: readonly AbortSignal[], codec: Codec) {
    this.#signals = signals;
    this.#codec = codec;
  }

  /** As they are now, for the slots that they have. */
  states(): Encoded[] {
    this.#known = this.#signals.map(({ aborted }) => aborted);
    return this.#signals.map((signal) => {
      const { aborted } = signal;
      const state = this.#encoded(signal, (reason) => (aborted ? [true, reason] : [false]));
      return { ...state, isSignal: true };
    });
  }

  /**
   * Tells of each signal that is aborted after its state was taken. Further calls do nothing.
   *
   * @param tell is given the signal's number among those of the call
   */
  listen(tell: (index: number, reason: Encoded) => void): void {
    if (this.#endListening !== undefined) return;
    const ends = this.#signals.map((signal, index) => {
      const onAbort = (): void =>
        tell(
          index,
          this.#encoded(signal, (reason) => reason),
        );
      if (!signal.aborted) signal.addEventListener("abort", onAbort, { once: true });
      else if (this.#known[index] === false) onAbort();
      return () => signal.removeEventListener("abort", onAbort);
    });
    this.#endListening = () => {
      for (const end of ends) end();
    };
  }

  end(): void {
    this.#endListening?.();
    this.#endListening = undefined;
  }

  /** A reason that cannot travel is sent as an error that describes it. */
  #encoded({ reason }: AbortSignal, shape: (reason: unknown) => unknown): Encoded {
    const said = (why: string): Encoded => this.#codec.encode(shape(new Error(why)), "reason");
    if (!this.#codec.encodable(reason)) {
      return said(
        `aborted with what cannot travel: ${inspect(reason, { depth: 1 }).slice(0, 1000)}`,
      );
    }
    const encoded = this.#codec.encode(shape(reason), "reason");
    const size = sizeOf(encoded);
    if (size <= maxReasonBytes) return encoded;
    return said(`aborted with a reason of ${size} bytes; ${maxReasonBytes} travel with a signal`);
  }
}
