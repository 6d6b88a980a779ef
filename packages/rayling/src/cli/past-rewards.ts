/**
 * What a run before left in rewards.jsonl, for one that goes on with it: what counts of each sample, and whether the scores mean the same as those to come.
 *
 * They do if the same functions with the same settings gave them. The first line that a run writes says what its version hangs on (`versionParts`), so that it can be told what has changed.
 */

import { stat } from "node:fs/promises";
import { JsonlError } from "@rayling/data-proto";
import { outcomesIn, readRewardLog, RewardLogError, rewardVersionsOf } from "@rayling/reward-loop";
import type { RewardLoopOptions, RewardRecord, RewardVersions } from "@rayling/reward-loop";
import { CliError, StaleRewardsError } from "./cli-error.ts";
import { plain, tell } from "./output.ts";
import type { ScoreOptions } from "./score-options.ts";

export interface PastRewards {
  /** By index. */
  readonly known: ReadonlyMap<number, RewardRecord>;
  /** Whether its score stays, and the sample is not scored again. */
  readonly isKept: (record: RewardRecord) => boolean;
  /** Of the functions that are asked now; undefined where they cannot be read, which whoever loads them tells. */
  readonly now: RewardVersions | undefined;
}

/** With a run that begins there is none. Throws CliError 2 where what is there is no log, or its scores mean something else and nobody has said what is to become of them. */
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
 * Refuses a file of something else: only rewards of before are ours to move aside, when the file
 * is opened. Throws CliError 2.
 */
async function refuseOther(out: string): Promise<void> {
  // Standard output.
  if (out === "-") return;
  const stats = await stat(out).catch(() => undefined);
  if (stats === undefined || !stats.isFile()) return;
  try {
    // Its first line says what it is.
    for await (const _ of readRewardLog(out)) return;
  } catch (error) {
    if (!(error instanceof RewardLogError) && !(error instanceof JsonlError)) throw error;
    throw new CliError(2, `--out ${out} holds something else than rewards: give another file.`, {
      cause: error,
    });
  }
}

/** A fallback is what a sample got that has none. */
function isScore({ valid, extra }: RewardRecord): boolean {
  return valid && !(extra["fallback"] === true && typeof extra["error"] === "string");
}

async function versionsOf(meant: RewardLoopOptions): Promise<RewardVersions | undefined> {
  const { reward, rewards, cascade, replay } = meant;
  const isAsked = [reward, rewards, cascade].some((one) => one !== undefined);
  // A log alone is asked, whose outcomes have versions of their own.
  if (replay !== undefined && !isAsked) return { versions: ["replay"], parts: {} };
  try {
    return await rewardVersionsOf(meant);
  } catch {
    return undefined;
  }
}

/** Outcomes that are replayed keep theirs. */
async function versionsIn(log: string | undefined): Promise<ReadonlySet<string>> {
  const versions = new Set<string>();
  if (log === undefined) return versions;
  for await (const { version } of readRewardLog(log, { mayLack: true })) versions.add(version);
  return versions;
}

/** By what the runs said that wrote these lines. */
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
  const { versionParts } = record as { readonly versionParts?: unknown };
  return typeof versionParts === "object" && versionParts !== null
    ? (versionParts as Readonly<Record<string, unknown>>)
    : undefined;
}

async function recordsIn(path: string, mustExist: boolean): Promise<Map<number, RewardRecord>> {
  try {
    return await outcomesIn(path);
  } catch (error) {
    const isMissing = error instanceof JsonlError && error.code === "JSONL_NOT_FOUND";
    // Nothing to go on with: the run begins.
    if (isMissing && !mustExist) return new Map();
    const isOfFile = error instanceof JsonlError || error instanceof RewardLogError;
    if (!isOfFile) throw error;
    throw new CliError(2, `--out: ${error.message}`, { cause: error });
  }
}
