/**
 * The results of an earlier run in rewards.jsonl, for a run that continues it: the valid record of
 * each sample, and whether the scores have the meaning of new ones.
 *
 * They do if the same functions with the same settings made them. The first line of a run has the
 * parts of its version (`versionParts`), so that the changed ones can be named.
 */

import { stat } from "node:fs/promises";
import { JsonlError } from "@rayling/data-proto";
import {
  isScored,
  outcomesIn,
  readRewardLog,
  RewardLogError,
  rewardVersionsOf,
} from "@rayling/reward-loop";
import type { RewardLoopOptions, RewardRecord, RewardVersions } from "@rayling/reward-loop";
import { isRow } from "@rayling/reward-loop/rows";
import { CliError, refusalOf, StaleRewardsError } from "../../cli-error.ts";
import { plain, tell } from "../../output/output.ts";
import type { ScoreOptions } from "../score-options.ts";

export interface PastRewards {
  /** Records by index. */
  readonly known: ReadonlyMap<number, RewardRecord>;
  /** Whether a score stays, so that its sample is not scored again. */
  readonly isKept: (record: RewardRecord) => boolean;
  /**
   * The current versions of the functions; undefined if they cannot be read, which their loader
   * reports.
   */
  readonly now: RewardVersions | undefined;
}

/**
 * Returns no results for a new run. Throws CliError 2 for a file that is no log, or for stale
 * scores without a flag for them.
 */
export async function readPast(
  options: Pick<
    ScoreOptions,
    "out" | "resume" | "rescoreStale" | "keepStale" | "onlyRecorded" | "replay"
  >,
  meant: RewardLoopOptions,
): Promise<PastRewards> {
  const { out, resume, rescoreStale, keepStale, onlyRecorded, replay } = options;
  const now = await versionsOf(meant);
  const current = new Set([...(now?.versions ?? []), ...(await versionsIn(replay))]);
  const isStale = ({ version }: RewardRecord): boolean => !current.has(version);
  const isKept = (record: RewardRecord): boolean =>
    isScore(record) && (!rescoreStale || !isStale(record));
  if (!resume) {
    await refuseOther(out);
    return { known: new Map(), isKept, now };
  }
  const known = await recordsIn(out, onlyRecorded);
  const scores = [...known.values()].filter(isScore);
  const stale = rescoreStale ? [] : scores.filter(isStale);
  if (now !== undefined && stale.length > 0 && !keepStale) {
    if (!onlyRecorded) {
      const changed = await changedSince(out, stale, now);
      const cause = new StaleRewardsError(out, stale.length, scores.length, changed);
      throw new CliError(2, `--resume: ${cause.message}.`, { cause });
    }
    const which = `${stale.length} of the ${scores.length} scores in ${plain(out)}`;
    tell(
      `${which} are of another version of the reward functions, and stay (--only stale scores them again)\n`,
    );
  }
  return { known, isKept, now };
}

/**
 * Refuses a file of another kind: only earlier rewards may be moved aside when the file is opened.
 * Throws CliError 2.
 */
async function refuseOther(out: string): Promise<void> {
  // This is standard output.
  if (out === "-") return;
  const stats = await stat(out).catch(() => undefined);
  if (stats === undefined || !stats.isFile()) return;
  try {
    // The first line shows the kind of the file.
    for await (const _ of readRewardLog(out)) return;
  } catch (error) {
    if (!(error instanceof RewardLogError) && !(error instanceof JsonlError)) throw error;
    throw new CliError(2, `--out ${out} does not contain rewards: give another file.`, {
      cause: error,
    });
  }
}

/** Whether its function gave a score, whatever its group made of that. */
function isScore(record: RewardRecord): boolean {
  return isScored(record) || typeof record.scoredAs === "number";
}

async function versionsOf(meant: RewardLoopOptions): Promise<RewardVersions | undefined> {
  const { reward, rewards, cascade, replay } = meant;
  const isAsked = [reward, rewards, cascade].some((one) => one !== undefined);
  // Only a log is replayed, and its outcomes have versions of their own.
  if (replay !== undefined && !isAsked) return { versions: ["replay"], parts: {} };
  try {
    return await rewardVersionsOf(meant);
  } catch {
    return undefined;
  }
}

/** Replayed outcomes keep their versions. */
async function versionsIn(log: string | undefined): Promise<ReadonlySet<string>> {
  const versions = new Set<string>();
  if (log === undefined) return versions;
  for await (const { version } of readRewardLog(log, { mayLack: true })) versions.add(version);
  return versions;
}

/** Compares with the parts that the earlier runs recorded. */
async function changedSince(
  path: string,
  stale: readonly RewardRecord[],
  now: RewardVersions,
): Promise<string[]> {
  const wanted = new Set(stale.map(({ index, at }) => `${index} ${at}`));
  const changed = new Set<string>();
  let parts: Readonly<Record<string, unknown>> | undefined;
  for await (const record of readRewardLog(path)) {
    parts = partsOf(record) ?? parts;
    if (parts === undefined || !wanted.has(`${record.index} ${record.at}`)) continue;
    const names = new Set([...Object.keys(parts), ...Object.keys(now.parts)]);
    for (const name of names) if (parts[name] !== now.parts[name]) changed.add(name);
  }
  return [...changed];
}

function partsOf(record: RewardRecord): Readonly<Record<string, unknown>> | undefined {
  const parts = "versionParts" in record ? record.versionParts : undefined;
  return isRow(parts) ? parts : undefined;
}

async function recordsIn(path: string, mustExist: boolean): Promise<Map<number, RewardRecord>> {
  try {
    return await outcomesIn(path);
  } catch (error) {
    const isMissing = error instanceof JsonlError && error.code === "JSONL_NOT_FOUND";
    // There is nothing to continue: the run is new.
    if (isMissing && !mustExist) return new Map();
    throw refusalOf(error, [JsonlError, RewardLogError], "--out");
  }
}
