/** A configuration back as YAML, by verl's names: read again, it is the same. */

import type { ConfigTree } from "@rayling/config-tree";
import { treeOf, withValue, yamlText } from "@rayling/config-tree";
import { snakeTree } from "./camel-keys.ts";
import type { TrainerConfig } from "./options/index.ts";

export function printConfig(config: TrainerConfig): string {
  return yamlText(verlTree(config));
}

/** Returns the configuration by verl's names. */
export function verlTree(config: TrainerConfig): ConfigTree {
  const { reward, ignored: _ignored, notes: _notes, notDone, rayling, ...rest } = config;
  const { policyKwargs, taskKwargs, ...own } = rayling;
  // Without this the name would not follow a change of the trainer's name.
  const isTrainers = reward.experiment_name === config.trainer.experimentName;
  const ownName = isTrainers ? null : reward.experiment_name;
  const tree: ConfigTree = {
    ...snakeTree(rest),
    reward: { ...treeOf(reward), experiment_name: ownName },
    rayling: {
      ...snakeTree(treeOf(own)),
      policy_kwargs: treeOf(policyKwargs),
      task_kwargs: treeOf(taskKwargs),
    },
  };
  return notDone.reduce((result, { key, value }) => withValue(result, key.split("."), value), tree);
}
