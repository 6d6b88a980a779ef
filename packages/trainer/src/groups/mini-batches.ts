/** How many groups the next mini-batch has, and how long the training waits for them. */

import type { StepRecord } from "../record/step-record.ts";
import type { TrainingSettings } from "../settings/training-settings.ts";
import { AdaptiveMiniBatchSize } from "./mini-batch-size.ts";
import type { GroupRange } from "./mini-batch-size.ts";

export class MiniBatches {
  readonly #size: number;
  /** Undefined: all mini-batches have the configured size. */
  readonly #adaptive: AdaptiveMiniBatchSize | undefined;
  readonly #now: () => number;

  /**
   * @param startSize groups of the next mini-batch in a resumed run whose size adapts
   * @param now milliseconds, for updates
   */
  constructor(
    { actor, adaptiveMiniBatch }: TrainingSettings,
    startSize: number | undefined,
    now: () => number,
  ) {
    this.#size = actor.ppoMiniBatchSize;
    this.#adaptive = adaptiveMiniBatch
      ? new AdaptiveMiniBatchSize(this.#size, startSize)
      : undefined;
    this.#now = now;
  }

  /** Groups of the next mini-batch where the size adapts, else undefined. */
  get adaptiveSize(): number | undefined {
    return this.#adaptive?.size;
  }

  /** @param left groups that the step still takes */
  next(left: number): GroupRange {
    const size = Math.min(this.#size, left);
    return this.#adaptive?.next(left) ?? { least: size, most: size };
  }

  /** Waits for rewards, and counts the time as exposed wait of the step. */
  async waitFor<Result>(record: StepRecord, run: () => Promise<Result>): Promise<Result> {
    const before = record.exposedWaitMs;
    const result = await record.clock.time("adv", () => record.waitFor(run));
    this.#adaptive?.waited(record.exposedWaitMs - before);
    return result;
  }

  /** Runs an update and measures it. */
  async update(run: () => Promise<void>): Promise<void> {
    const startMs = this.#now();
    await run();
    this.#adaptive?.worked(this.#now() - startMs);
  }
}
