/** verl's configuration of rewards, for `@rayling/reward-loop/config`: by itself, because what reads it takes time to load. */

export {
  defaultRewardConfig,
  loadRewardConfig,
  readRewardConfig,
  rewardLoopOptionsOf,
} from "./reward-config.ts";
export type { RewardConfig } from "./reward-config.ts";
export { applyOverrides } from "./overrides.ts";
export { RewardConfigError } from "./tree.ts";
export type { ConfigTree, ConfigValue } from "./tree.ts";
