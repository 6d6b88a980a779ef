/** A configuration back as YAML, by verl's names: read again, it is the same. */

import { stringify } from "yaml";
import type { ConfigTree, ConfigValue } from "@rayling/config-tree";
import { withValue } from "@rayling/config-tree";
import { snakeTree } from "./camel-keys.ts";
import type { TrainerConfig } from "./options/index.ts";

export function printConfig(config: TrainerConfig): string {
  const { reward, ignored: _ignored, notes: _notes, notDone, rayling, ...rest } = config;
  const { policyKwargs, taskKwargs, ...own } = rayling;
  // Without this the name would not follow a change of the trainer's name.
  const isTrainers = reward.experiment_name === config.trainer.experimentName;
  const ownName = isTrainers ? null : reward.experiment_name;
  const tree: ConfigTree = {
    ...snakeTree(rest),
    reward: { ...(reward as unknown as ConfigTree), experiment_name: ownName },
    rayling: {
      ...snakeTree(own as unknown as ConfigValue),
      policy_kwargs: policyKwargs as ConfigTree,
      task_kwargs: taskKwargs as ConfigTree,
    },
  };
  return stringify(
    notDone.reduce((result, { key, value }) => withValue(result, key.split("."), value), tree),
  );
}
