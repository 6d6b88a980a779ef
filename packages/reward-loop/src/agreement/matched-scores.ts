/**
 * The samples of several reward logs with the scores that each log has for them: a sample is the
 * same by its content, wherever it stands, and equal samples of one log match one by one.
 */

import { isRow, valueAt } from "../rows/value-at.ts";
import { outcomesIn } from "../record/reward-log-file.ts";
import { isScored } from "../record/reward-record.ts";
import type { RewardRecord } from "../record/reward-record.ts";

/** A label says whether a sample is right, or grades it. */
export type SampleLabel = boolean | number;

/** One sample of several logs. */
export interface MatchedScores {
  /** The sample's place in its input, by the first log that has it. */
  readonly index: number;
  /** The sample by its content. */
  readonly sample: string;
  /** The score of each log, in their order: null if invalid, undefined where the log lacks it. */
  readonly scores: readonly (number | null | undefined)[];
  /** Undefined where no log has one. */
  readonly label: SampleLabel | undefined;
  /** The values of the fields that may tell samples apart; undefined where no log has one. */
  readonly sources: readonly (string | undefined)[];
}

/** How samples get their labels and sources. */
export interface MatchOptions {
  /**
   * Returns the label of a sample. Default: the label in the log.
   *
   * @param before the number of equal samples before it in its log
   */
  readonly labelOf?:
    | ((record: RewardRecord, before: number) => SampleLabel | undefined)
    | undefined;
  /** Fields of the records, or paths in them. */
  readonly by: readonly string[];
}

/** Rejects as readRewardLog. */
export async function matchedScores(
  paths: readonly string[],
  { labelOf = ({ label }) => label, by }: MatchOptions,
): Promise<MatchedScores[]> {
  interface Matching extends Omit<MatchedScores, "scores"> {
    readonly scores: (number | null | undefined)[];
  }
  const byKey = new Map<string, Matching>();
  for (const [log, path] of paths.entries()) {
    const seen = new Map<string, number>();
    const records = [...(await outcomesIn(path)).values()].toSorted((a, b) => a.index - b.index);
    for (const record of records) {
      const { index, sample } = record;
      const before = seen.get(sample) ?? 0;
      seen.set(sample, before + 1);
      const key = `${sample} ${before}`;
      const known = byKey.get(key);
      const scores = known?.scores ?? paths.map(() => undefined);
      scores[log] = isScored(record) ? record.score : null;
      const label = known?.label ?? labelIn(labelOf(record, before));
      const sources = by.map((field, at) => known?.sources[at] ?? sourceOf(record, field));
      byKey.set(key, { index: known?.index ?? index, sample, scores, label, sources });
    }
  }
  return [...byKey.values()].toSorted((a, b) => a.index - b.index);
}

/** A log may come from elsewhere. */
function labelIn(value: unknown): SampleLabel | undefined {
  if (typeof value === "boolean") return value;
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

function sourceOf(record: unknown, by: string): string | undefined {
  const value = isRow(record) ? valueAt(record, by) : undefined;
  if (value === undefined) return undefined;
  return typeof value === "string" ? value : JSON.stringify(value);
}
