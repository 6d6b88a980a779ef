/** A configuration back as YAML, by verl's names: read again, it is the same. */

import { stringify } from "yaml";
import type { ConfigTree, ConfigValue } from "@rayling/reward-loop/config";
import { snakeTree } from "./camel-keys.ts";
import type { TrainerConfig } from "./trainer-config.ts";

export function printConfig(config: TrainerConfig): string {
  const { reward, ignored: _ignored, rayling, ...rest } = config;
  const { policyKwargs, taskKwargs, ...own } = rayling;
  const tree: ConfigTree = {
    ...snakeTree(rest as unknown as ConfigValue),
    reward: reward as unknown as ConfigTree,
    rayling: {
      ...snakeTree(own as unknown as ConfigValue),
      policy_kwargs: policyKwargs as ConfigTree,
      task_kwargs: taskKwargs as ConfigTree,
    },
  };
  return stringify(tree);
}
