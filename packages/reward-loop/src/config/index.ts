/** verl's configuration of rewards, for `@rayling/reward-loop/config`: by itself, because what reads it takes time to load. */

export { defaultRewardConfig, hasOwnReward } from "./reward-keys.ts";
export type { RewardConfig } from "./reward-keys.ts";
export {
  knownRewardKeys,
  loadRewardConfig,
  readRewardConfig,
  rewardLoopOptionsOf,
  rewardPathsOf,
} from "./reward-config.ts";
export { applyOverrides, parseOverride } from "./overrides.ts";
export type { Override } from "./overrides.ts";
export {
  isTree,
  keysOf,
  merged,
  nearestOf,
  RewardConfigError,
  valueAt,
  withoutValue,
  withValue,
} from "./tree.ts";
export type { ConfigTree, ConfigValue } from "./tree.ts";
