/** The keys of a reward model in verl's configuration, with verl's defaults, and ours besides. */

import { nested, option } from "@rayling/config-tree/options";
import { z } from "zod";
import { routerOptions, type RouterTable } from "../../options/defaults/reward-model.ts";
import { keysOf } from "../table-keys.ts";
import { rolloutDefaults } from "./engine-flags.ts";

const fromZero = z.number().int().min(0);
const text = z.string().min(1);

/** All keys of `reward.reward_model` but `enable`. */
export const modelKeys = {
  enable_resource_pool: option(z.boolean(), false, "Whether the reward model has GPUs of its own."),
  n_gpus_per_node: option(fromZero, 8, "GPUs of this machine for the reward model."),
  nnodes: option(
    fromZero,
    0,
    "Machines for the reward model: 1 is this one; 0: it shares the GPUs of the policy.",
  ),
  shared_gpus: option(
    z.number().int().min(1).nullable(),
    null,
    "The GPUs of the policy, which a reward model with nnodes 0 shares; null: trainer.n_gpus_per_node, or 8. (Ours.)",
  ),
  model_path: option(text.nullable(), null, "The reward model: its folder, or its name."),
  servers: option(z.array(text), [], "host:port of servers that run already. (Ours.)"),
  allowed_paths: option(
    z.array(text),
    [],
    "Paths of the servers that the router lets through besides those of inference. (Ours.)",
  ),
  router: nested(keysOf<RouterTable>(routerOptions)),
  rollout: option(
    z.record(z.string(), z.unknown()),
    { ...rolloutDefaults },
    "verl's settings of the engine, as flags of the servers; its name: vllm (null) or sglang.",
  ),
};
