/**
 * The places of a resumed run's samples in its reward log, matched by the samples' content, in any
 * order. Each place is used once, so that equal samples have different places; an unknown sample
 * has none.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { RewardRecord } from "./reward-record.ts";
import { olderSampleKeys, sampleKey } from "../sample/sample-key.ts";

/** Places of a resumed run's samples in its reward log. */
export class RecordedPlaces {
  readonly #records: ReadonlyMap<number, RewardRecord>;
  /**
   * Unused places by the samples' content, the last one first. Some may be used by their own index.
   */
  readonly #free: Map<string, number[]>;
  readonly #given: Set<number> = new Set();

  /** @param records what counts of the log, by index */
  constructor(records: ReadonlyMap<number, RewardRecord>) {
    this.#records = records;
    const inOrder = [...records.keys()].toSorted((a, b) => b - a);
    this.#free = Map.groupBy(inOrder, (index) => records.get(index)?.sample ?? "");
  }

  /**
   * @param at where it stands now: that place, if it is its own, before others
   *
   * @returns undefined: the log does not know it, or only as often as was asked before
   */
  take(sample: RewardSample, at?: number): RewardRecord | undefined {
    const keys = [sampleKey(sample), ...olderSampleKeys(sample)];
    const there = at === undefined ? undefined : this.#records.get(at);
    if (there !== undefined && keys.includes(there.sample) && !this.#given.has(there.index)) {
      return this.#give(there.index);
    }
    for (const key of keys) {
      const free = this.#free.get(key) ?? [];
      for (let index = free.pop(); index !== undefined; index = free.pop()) {
        if (!this.#given.has(index)) return this.#give(index);
      }
    }
    return undefined;
  }

  /** Records of samples that were not asked for, by index. */
  get left(): RewardRecord[] {
    return [...this.#records.values()].filter(({ index }) => !this.#given.has(index));
  }

  #give(index: number): RewardRecord | undefined {
    this.#given.add(index);
    return this.#records.get(index);
  }
}
