/**
 * Which places of a reward log samples have that a run goes on with: by what they say, wherever
 * they stand now. Each place is given once, so that samples which say the same have places of
 * their own; what the log does not know has none.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { RewardRecord } from "./reward-record.ts";
import { olderSampleKeys, sampleKey } from "./sample-key.ts";

export class RecordedPlaces {
  readonly #records: ReadonlyMap<number, RewardRecord>;
  /**
   * By what samples say, the last first: those that are not given. Some may be, by their own
   * index.
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

  /** Records of samples that nobody asked for, by index. */
  get left(): RewardRecord[] {
    return [...this.#records.values()].filter(({ index }) => !this.#given.has(index));
  }

  #give(index: number): RewardRecord | undefined {
    this.#given.add(index);
    return this.#records.get(index);
  }
}
