/**
 * The places of a resumed run's samples in its reward log, matched by the samples' content, in any
 * order. Each place is used once, so that equal samples have different places; an unknown sample
 * has none.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { RewardRecord } from "./reward-record.ts";
import { keysOfRecord, olderSampleKeys, sampleKey } from "../sample/sample-key.ts";

/** Places of a resumed run's samples in its reward log. */
export class RecordedPlaces {
  readonly #records: ReadonlyMap<number, RewardRecord>;
  /**
   * Unused places by the samples' content, the last one first. Some may be used by their own index.
   */
  readonly #free: Map<string, number[]>;
  /** These places by keys with the name of a group, for samples of older logs. */
  #freeInGroups: Map<string, number[]> | undefined;
  readonly #given: Set<number> = new Set();

  /** @param records what counts of the log, by index */
  constructor(records: ReadonlyMap<number, RewardRecord>) {
    this.#records = records;
    this.#free = this.#placesBy(({ sample }) => sample);
  }

  /**
   * @param at where it stands now: that place, if it is its own, before others
   *
   * @returns undefined: the log does not know it, or only as often as was asked before
   */
  take(sample: RewardSample, at?: number): RewardRecord | undefined {
    const keys = [sampleKey(sample), ...olderSampleKeys(sample)];
    const there = at === undefined ? undefined : this.#records.get(at);
    const isThere = there !== undefined && keysOfRecord(there).some((key) => keys.includes(key));
    if (isThere && !this.#given.has(there.index)) return this.#give(there.index);
    for (const key of keys) {
      const free = this.#freeAt(key);
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

  #freeAt(key: string): number[] {
    const free = this.#free.get(key);
    if (free !== undefined || !key.includes(" ")) return free ?? [];
    this.#freeInGroups ??= this.#placesBy((record) => keysOfRecord(record).at(-1));
    return this.#freeInGroups.get(key) ?? [];
  }

  #placesBy(keyOf: (record: RewardRecord) => string | undefined): Map<string, number[]> {
    const inOrder = [...this.#records.values()].toSorted((a, b) => b.index - a.index);
    return new Map(
      [...Map.groupBy(inOrder, (record) => keyOf(record) ?? "")].map(([key, own]) => [
        key,
        own.map(({ index }) => index),
      ]),
    );
  }

  #give(index: number): RewardRecord | undefined {
    this.#given.add(index);
    return this.#records.get(index);
  }
}
