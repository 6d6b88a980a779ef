/** Keys that would do nothing of a function and of its policies, wherever it stands: of `reward` itself, of one of several rewards, of a stage. */

import { partsOf } from "../part-keys.ts";
import type { PartConfig, RewardPartsConfig, StageConfig } from "../part-keys.ts";
import { noFunction } from "../policy-keys.ts";
import type { FunctionConfig, PartPolicyConfig } from "../policy-keys.ts";
import { isRateLimited } from "../reward-keys.ts";
import type { RewardConfig } from "../reward-keys.ts";
import type { IdleKey } from "./idle-key.ts";

export function idlePartKeys(config: RewardConfig): IdleKey[] {
  const { max_rpm: rpm, max_tpm: tpm } = config;
  const isRated = isRateLimited(config) && (rpm ?? tpm) !== null;
  const parts: [string, Omit<PartConfig, "num_workers">][] = [
    ["reward", config],
    ...partsOf(config),
  ];
  return [
    ...parts.flatMap(([place, one]) => [
      ...idleFunctionKeys(`${place}.custom_reward_function`, one.custom_reward_function),
      ...idleSpendKeys(`${place}.spend`, one.spend),
      ...(isRated ? [] : idleMinute(`${place}.limits`, one.limits)),
    ]),
    ...idleLastStages(config),
  ];
}

function idleFunctionKeys(at: string, { path, name, reward_kwargs }: FunctionConfig): IdleKey[] {
  if (path !== null) return [];
  const why = `and there is no ${at}.path that it is for`;
  return [
    ...(name === noFunction.name ? [] : [{ key: `${at}.name`, value: name, why }]),
    ...Object.entries(reward_kwargs).map(([key, value]) => ({
      key: `${at}.reward_kwargs.${key}`,
      value,
      why,
    })),
  ];
}

function idleSpendKeys(at: string, spend: PartPolicyConfig["spend"]): IdleKey[] {
  const { cap, warn_at: warnAt, when_reached: judge } = spend;
  const prices = Object.entries(judge.prices).filter(([, price]) => price !== null);
  return [
    ...(warnAt === null || cap !== null
      ? []
      : [
          {
            key: `${at}.warn_at`,
            value: warnAt,
            why: `and there is no ${at}.cap, by ${at}.prices, that it is a share of`,
          },
        ]),
    ...idleFunctionKeys(`${at}.when_reached`, judge),
    ...(judge.path === null
      ? prices.map(([key, value]) => ({
          key: `${at}.when_reached.prices.${key}`,
          value,
          why: `and there is no ${at}.when_reached.path that it is for`,
        }))
      : []),
  ];
}

function idleMinute(at: string, limits: PartPolicyConfig["limits"]): IdleKey[] {
  const { minute_ms: value, max_rpm: rpm, max_tpm: tpm } = limits;
  if (value === null || (rpm ?? tpm) !== null) return [];
  const why = `and there is neither ${at}.max_rpm nor ${at}.max_tpm, which are of that minute`;
  return [{ key: `${at}.minute_ms`, value, why }];
}

function idleLastStages({ cascade, rewards }: RewardPartsConfig): IdleKey[] {
  return [
    ...idleLastStage("reward.cascade", cascade),
    ...Object.entries(rewards).flatMap(([name, one]) =>
      idleLastStage(`reward.rewards.${name}.cascade`, one.cascade),
    ),
  ];
}

function idleLastStage(at: string, stages: Readonly<Record<string, StageConfig>>): IdleKey[] {
  const [name, stage] = Object.entries(stages).at(-1) ?? [];
  if (stage?.pass_on !== "invalid") return [];
  const why = "and no stage comes after this one";
  return [{ key: `${at}.${name}.pass_on`, value: stage.pass_on, why }];
}
