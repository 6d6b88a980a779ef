/**
 * Unused keys of a function and of its policies: in `reward` itself, in one of several rewards, in
 * a stage.
 */

import { loopOptions, partOptions } from "../../options/defaults/functions.ts";
import { partsOf } from "../part-keys.ts";
import type { PartConfig, StageConfig } from "../part-keys.ts";
import { isRateLimited } from "../reward-keys.ts";
import type { RewardConfig } from "../reward-keys.ts";
import type { UnusedKey } from "./unused-key.ts";
import { unusedKeysOf } from "./unused-table-keys.ts";

export function unusedPartKeys(config: RewardConfig): UnusedKey[] {
  const { max_rpm: rpm, max_tpm: tpm } = config;
  // Adds the limits of the manager rate_limited, which hold for every function.
  const whole = <Part extends Pick<PartConfig, "limits">>(part: Part): Part =>
    isRateLimited(config)
      ? {
          ...part,
          limits: {
            ...part.limits,
            max_rpm: part.limits.max_rpm ?? rpm,
            max_tpm: part.limits.max_tpm ?? tpm,
          },
        }
      : part;
  return [
    ...unusedKeysOf(loopOptions, whole(config), "reward"),
    ...partsOf(config).flatMap(([place, part]) => unusedKeysOf(partOptions, whole(part), place)),
    ...unusedLastStage("reward.cascade", config.cascade),
    ...Object.entries(config.rewards).flatMap(([name, { cascade }]) =>
      unusedLastStage(`reward.rewards.${name}.cascade`, cascade),
    ),
  ];
}

function unusedLastStage(at: string, stages: Readonly<Record<string, StageConfig>>): UnusedKey[] {
  const [name, stage] = Object.entries(stages).at(-1) ?? [];
  if (stage?.pass_on !== "invalid") return [];
  const why = "and no stage comes after this one";
  return [{ key: `${at}.${name}.pass_on`, value: stage.pass_on, why }];
}
