/**
 * Supervised warm-up of a loop: its code is slow until the engine has compiled it, in each of its
 * threads. Samples without a ground truth pass through all of it, and are refused in front of the
 * user's function, which is never called.
 */

import type { RewardLoopManager, RewardLoopOptions } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";

const rounds = 12;
const rows = 256;

const refused: RewardSample = {
  dataSource: "warm-up",
  response: "it is refused",
  groundTruth: undefined,
  extraInfo: {},
};

/** Options with which even such a sample would be counted, written down or asked about. */
const noticing = [
  "cascade",
  "limits",
  "manager",
  "record",
  "replay",
  "rewardModel",
  "rewards",
  "spend",
] as const satisfies readonly (keyof RewardLoopOptions)[];

/** Resolves when the loop is warm, or has something else to do. Rejects as computeScore. */
export async function warmUp(
  loop: RewardLoopManager,
  options: RewardLoopOptions,
  isBusy: () => boolean,
): Promise<void> {
  if (noticing.some((name) => options[name] !== undefined)) return;
  for (let round = 0; round < rounds && !isBusy(); round++) {
    await Promise.all(Array.from({ length: rows }, () => loop.computeScore(refused)));
  }
}
