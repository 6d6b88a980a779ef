/** Several sources behind one: opens, reloads and closes them together. */

import { RewardLoopOptionError } from "../errors.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { PreparedReload, RewardSource } from "../pipeline/reward-source.ts";

/** Opens all sources; if one fails the others are closed. Rejects with the reason. */
export async function openAll<Source extends RewardSource>(
  opening: readonly Promise<Source>[],
): Promise<Source[]> {
  const opened = await Promise.allSettled(opening);
  const sources = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failed = opened.find((one) => one.status === "rejected");
  if (failed === undefined) return sources;
  await closeAll(sources);
  throw failed.reason;
}

export async function closeAll(sources: readonly RewardSource[]): Promise<void> {
  await Promise.all(sources.map((source) => source.close()));
}

/** Prepares the reload of all sources, or of none. */
export async function prepareAll(sources: readonly RewardSource[]): Promise<PreparedReload> {
  const preparing = await Promise.allSettled(sources.map((source) => source.prepareReload()));
  const prepared = preparing.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const discard = async (): Promise<void> => {
    await Promise.all(prepared.map((one) => one.discard()));
  };
  const failed = preparing.find((one) => one.status === "rejected");
  if (failed !== undefined) {
    await discard();
    throw failed.reason;
  }
  return { commit: () => prepared.forEach((one) => one.commit()), discard };
}

export function onRoomOfAny(sources: readonly RewardSource[], listener: () => void): () => void {
  const stops = sources.map((source) => source.onRoom(listener));
  return () => stops.forEach((stop) => stop());
}

/**
 * Throws RewardLoopOptionError for several functions of which one post-processes or assembles
 * scores: such a function must have given all of the scores itself.
 */
export function checkTraits(sources: readonly RewardSource[]): void {
  const refuse = (expected: string): never => {
    throw new RewardLoopOptionError("rewards", expected, "a class with it");
  };
  if (sources.some(({ traits }) => traits.postProcesses)) {
    refuse("functions without postProcessScores, which is for groups that one function scored");
  }
  if (sources.some(({ traits }) => traits.assembles)) {
    refuse("managers without assembleRmScores, which is for batches that one function scored");
  }
}

/** The outcome of a log that nobody keeps. */
export const nothingToLog: SampleOutcome = {
  valid: true,
  rewardScore: 0,
  rewardExtraInfo: {},
  latencyMs: 0,
  attempts: 0,
  waitedMs: 0,
};
