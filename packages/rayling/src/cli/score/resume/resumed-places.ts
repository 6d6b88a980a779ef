/**
 * The place in the log of each input sample, for a run that continues: samples match by content,
 * even if the input has changed. Known samples keep their places wherever they are now; new ones
 * take their own place, that of a removed sample, or one behind all others.
 */

import { RecordedPlaces } from "@rayling/reward-loop";
import type { RewardRecord } from "@rayling/reward-loop";
import { CliError } from "../../cli-error.ts";
import { grouped } from "../../output/numbers.ts";
import { plain, tell } from "../../output/output.ts";
import type { PastRewards } from "./past-rewards.ts";
import type { ScoreOptions } from "../score-options.ts";
import type { Solutions } from "../../inputs/solutions.ts";

export interface ResumedPlaces {
  /**
   * Returns the index in the log.
   *
   * @param place the place of a sample in its input
   */
  indexOf(place: number): number;
  /**
   * Returns the sample's valid record in the log.
   *
   * @param place the place of a sample in its input
   */
  recordOf(place: number): RewardRecord | undefined;
  /** The number of input samples that the log has. */
  readonly known: number;
  /** Counts these samples by their records. */
  count(is: (record: RewardRecord) => boolean): number;
}

/** A new run uses the places of its input. */
const allNew: ResumedPlaces = {
  indexOf: (place) => place,
  recordOf: () => undefined,
  known: 0,
  count: () => 0,
};

/**
 * Reads the input once. Reports new, removed and kept samples. Throws CliError 2 when the log has
 * none of the samples.
 */
export async function resumedPlaces(
  { known: records }: Pick<PastRewards, "known">,
  { total, read }: Solutions,
  { out, onlyRecorded }: Pick<ScoreOptions, "out" | "onlyRecorded">,
): Promise<ResumedPlaces> {
  if (records.size === 0) return allNew;
  const places = new RecordedPlaces(records);
  const known = new Map<number, RewardRecord>();
  const fresh: number[] = [];
  for await (const sample of read()) {
    const { index } = sample.place;
    const record = places.take(sample, index);
    if (record === undefined) fresh.push(index);
    else known.set(index, record);
  }
  const gone = places.left.map(({ index }) => index).toSorted((a, b) => a - b);
  if (known.size === 0) {
    const flag = onlyRecorded ? "" : "--resume: ";
    throw new CliError(
      2,
      `${flag}the rewards in ${out} are of other samples, first at index ${gone[0]}; give another --out.`,
    );
  }
  const isSame = gone.length === 0 && [...known].every(([place, { index }]) => place === index);
  // Samples without a score yet are no change.
  if (!isSame) tellChange(out, known.size, fresh, gone);
  const own = ownPlaces(fresh, records, new Set(gone), total);
  return {
    indexOf: (place) => known.get(place)?.index ?? own.get(place) ?? place,
    recordOf: (place) => known.get(place),
    known: known.size,
    count: (is) => [...known.values()].filter(is).length,
  };
}

/** Finds places for new samples whose own place is taken. */
function ownPlaces(
  fresh: readonly number[],
  records: ReadonlyMap<number, RewardRecord>,
  gone: ReadonlySet<number>,
  total: number,
): ReadonlyMap<number, number> {
  let behind = total;
  for (const index of records.keys()) behind = Math.max(behind, index + 1);
  const taken = fresh.filter((place) => records.has(place) && !gone.has(place));
  return new Map(taken.map((place) => [place, behind++]));
}

function tellChange(
  out: string,
  kept: number,
  fresh: readonly number[],
  gone: readonly number[],
): void {
  tell(
    `the input has changed since ${plain(out)} was written: ${grouped(kept)} of its samples are known, ${some(fresh)} are new, and ${some(gone)} of the log are no longer in it\n`,
  );
}

/** Returns the count and the first places. */
function some(places: readonly number[]): string {
  if (places.length === 0) return "none";
  const shown = places.slice(0, 5).join(", ");
  return `${grouped(places.length)} (${shown}${places.length > 5 ? ", ..." : ""})`;
}
