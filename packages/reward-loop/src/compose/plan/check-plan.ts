/**
 * Finds, without a loop, everything that a reward loop would refuse before its first sample:
 * modules and managers are loaded in this thread, and no endpoint is asked.
 */

import { loadFunctions, type UserCode } from "../../executor/user-functions.ts";
import { rewardModelsOf } from "../../reward-model/loop-models.ts";
import type { RewardLoopSettings } from "../../settings/settings.ts";
import type { RewardLoopOptions } from "./loop-options.ts";
import { readLogs, readPlan } from "./read-plan.ts";
import { mapPlan, withRewardModels } from "./reward-plan.ts";

/** A tracker without any run. */
const nobody: UserCode = {
  timed:
    (work) =>
    (...args) => {
      const result = work(...args);
      return result instanceof Promise ? result : (result as Awaited<typeof result>);
    },
  clock: () => ({ enter: () => undefined, leave: () => undefined }),
  current: undefined,
  signal: new AbortController().signal,
};

/**
 * Rejects as `RewardLoopManager.create` does for its options, for modules that cannot be loaded and
 * for their exports. Runs the top level of the user's modules in this thread.
 */
export async function checkRewardLoop(options: RewardLoopOptions): Promise<void> {
  const found: RewardLoopSettings[] = [];
  mapPlan(withRewardModels(readPlan(options), rewardModelsOf(options)), (settings) => {
    found.push(settings);
    return settings;
  });
  readLogs(options);
  for (const { pipeline } of found) await loadFunctions(pipeline, nobody);
}
