import { ConfigError } from "@rayling/config-tree";

/** Rewards that are configured wrongly. Code "REWARD_CONFIG". */
export class RewardConfigError extends ConfigError {
  override readonly name = "RewardConfigError";
  override readonly code = "REWARD_CONFIG";
}

/**
 * Translates an error in the tree to RewardConfigError: it is a mistake in the configuration of
 * rewards, too.
 */
export function asRewardError<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError) || error instanceof RewardConfigError) throw error;
    throw new RewardConfigError(error.key, error.problem, error.value, error.nearest);
  }
}
