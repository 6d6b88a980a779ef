/**
 * Public names of @rayling/reward-loop/config: verl's configuration of rewards. A separate entry,
 * because its reader takes time to load.
 */

export { defaultRewardConfig, hasOwnReward, oldManagers, rewardOptions } from "./reward-keys.ts";
export type { RewardConfig } from "./reward-keys.ts";
export {
  knownRewardKeys,
  loadRewardConfig,
  readRewardConfig,
  rewardLoopOptionsOf,
  rewardPathsOf,
} from "./reward-config.ts";
export { isFreeLegacyKey } from "./legacy-keys.ts";
export { asksScorers, rewardModelsIn } from "./model/named-models.ts";
export type { ModelConfig, NamedModelConfig } from "./model/named-models.ts";
export { runKeys } from "./run-keys.ts";
export { RewardConfigError } from "./reward-config-error.ts";
