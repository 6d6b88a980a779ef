/**
 * Outcomes of an earlier run by what their samples say, out of its reward log: what a run is
 * replayed from.
 *
 * Samples that say the same may have had different outcomes: they are given in the order of their
 * indices, those without a score behind all others (a log that was written by two runs has
 * failures of the first that the second has scored), and from the first one again when all were
 * given. Of several lines for one index the one that counts is given. Parts of an outcome
 * (several rewards, stages of a cascade) come back with it.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome } from "../outcome.ts";
import { countedWholes, givenOutcomeOfWhole, outcomeOfWhole } from "./records-with-parts.ts";
import type { RecordedWhole } from "./records-with-parts.ts";
import { keysOfRecord, olderSampleKeys, sampleKey } from "../sample/sample-key.ts";

interface Known {
  readonly inOrder: readonly RecordedWhole[];
  given: number;
}

export class RecordedOutcomes {
  readonly #known: Map<string, Known> = new Map();

  /** Rejects with JsonlError, or RewardLogError for a line that is no record. */
  static async read(path: string): Promise<RecordedOutcomes> {
    const outcomes = new RecordedOutcomes();
    const wholes = [...(await countedWholes(path)).values()];
    const inOrder = wholes.toSorted(
      ({ record: a }, { record: b }) => Number(b.valid) - Number(a.valid) || a.index - b.index,
    );
    const byKey = inOrder.flatMap((whole) =>
      keysOfRecord(whole.record).map((key) => ({ key, whole })),
    );
    for (const [key, own] of Map.groupBy(byKey, (one) => one.key)) {
      outcomes.#known.set(key, { inOrder: own.map(({ whole }) => whole), given: 0 });
    }
    return outcomes;
  }

  /**
   * @param isGiven whether it is to be what its functions gave, for a group that is put right again
   *
   * @returns undefined: the log does not know it
   */
  next(sample: RewardSample, isGiven: boolean = false): SampleOutcome | undefined {
    const known = this.#find(sample);
    const whole = known?.inOrder[known.given++ % known.inOrder.length];
    return whole && (isGiven ? givenOutcomeOfWhole(whole) : outcomeOfWhole(whole));
  }

  #find(sample: RewardSample): Known | undefined {
    const known = this.#known.get(sampleKey(sample));
    if (known !== undefined) return known;
    const older = olderSampleKeys(sample).find((key) => this.#known.has(key));
    return older === undefined ? undefined : this.#known.get(older);
  }
}
