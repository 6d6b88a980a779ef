/** How the samples of one stream are asked for, and given up together. */

import type { AskedFor } from "../../pipeline/reward-source.ts";

export class StreamSamples {
  readonly #giveUp: (signal: AbortSignal) => void;
  readonly #end = new AbortController();
  /** One object for all whose outcomes are not kept. */
  readonly #asked: AskedFor = { signal: this.#end.signal };

  /** @param giveUp gives up what was asked for with this signal, which was aborted */
  constructor(giveUp: (signal: AbortSignal) => void) {
    this.#giveUp = giveUp;
  }

  /** @param kept resolves when the outcome is stored; undefined: it is not */
  askedFor(kept: Promise<void> | undefined): AskedFor {
    return kept === undefined ? this.#asked : { ...this.#asked, kept };
  }

  /** Once; later calls do nothing. */
  giveUp(reason: unknown): void {
    const { signal } = this.#end;
    if (signal.aborted) return;
    this.#end.abort(reason);
    this.#giveUp(signal);
  }
}
