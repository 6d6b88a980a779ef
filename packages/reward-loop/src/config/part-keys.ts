/**
 * Keys of several functions that score a sample: `rewards`, combined by their weights, or a
 * `cascade`, in which the next is asked when one cannot tell. Each part has a function as verl
 * names one, and its own policies; it inherits the rest from `reward`.
 */

import type { componentOptions, partOptions, stageOptions } from "../options/defaults/functions.ts";
import type { FileOf } from "../options/table.ts";
import { RewardConfigError } from "./reward-config-error.ts";
import { optionsOf } from "./table-options.ts";
import { limitsOptions, pricesOptions } from "../options/defaults/policies.ts";

export interface PartConfig extends FileOf<typeof partOptions> {}
export interface StageConfig extends FileOf<typeof stageOptions> {}
export interface ComponentConfig extends FileOf<typeof componentOptions> {
  readonly cascade: Readonly<Record<string, StageConfig>>;
}
export interface RewardPartsConfig {
  readonly rewards: Readonly<Record<string, ComponentConfig>>;
  readonly cascade: Readonly<Record<string, StageConfig>>;
}

type Whole = RewardPartsConfig & Pick<PartConfig, "limits" | "spend" | "custom_reward_function">;

/** Whether several functions score a sample. */
export function hasParts(config: RewardPartsConfig): boolean {
  return kindOf(config) !== undefined;
}

function kindOf({
  rewards,
  cascade: stages,
}: RewardPartsConfig): "rewards" | "cascade" | undefined {
  if (Object.keys(rewards).length > 0) return "rewards";
  return Object.keys(stages).length > 0 ? "cascade" : undefined;
}

/** All parts by their places; a part that is a cascade comes before its stages. */
export function partsOf({ rewards, cascade: stages }: RewardPartsConfig): [string, PartConfig][] {
  return [
    ...Object.entries(rewards).flatMap(([key, one]): [string, PartConfig][] => {
      const place = `reward.rewards.${key}`;
      return [[place, one], ...stagesAt(place, one.cascade)];
    }),
    ...stagesAt("reward", stages),
  ];
}

/** Parts with a function, or with the scorers by data source; not cascades. */
export function functionPartsOf(config: RewardPartsConfig): [string, PartConfig][] {
  return partsOf(config).filter(([, one]) => !isCascade(one));
}

function stagesAt(
  place: string,
  stages: Readonly<Record<string, StageConfig>>,
): [string, PartConfig][] {
  return Object.entries(stages).map(([key, one]) => [`${place}.cascade.${key}`, one]);
}

function isCascade({ cascade: stages = {} }: PartConfig & Partial<ComponentConfig>): boolean {
  return Object.keys(stages).length > 0;
}

/** Throws RewardConfigError for what contradicts, or would be refused when the loop is made. */
export function checkParts(config: Whole): void {
  const kind = kindOf(config);
  checkCap("reward", config);
  if (kind === undefined) return;
  const [stage] = kind === "rewards" ? Object.keys(config.cascade) : [];
  if (stage !== undefined) {
    throw new RewardConfigError(
      `reward.cascade.${stage}`,
      "stands beside reward.rewards; a cascade may be one of these",
    );
  }
  checkOuter("reward", `reward.${kind}`, config);
  for (const [key, one] of Object.entries(config.rewards)) {
    const place = `reward.rewards.${key}`;
    if (isCascade(one)) checkOuter(place, `${place}.cascade`, one);
  }
  for (const [place, one] of partsOf(config)) checkCap(place, one);
}

function checkCap(place: string, { spend }: Pick<PartConfig, "spend">): void {
  if (spend.cap === null || Object.keys(optionsOf(pricesOptions, spend.prices)).length > 0) return;
  throw new RewardConfigError(
    `${place}.spend.cap`,
    `is ${spend.cap}, and without ${place}.spend.prices nobody knows what is spent`,
    spend.cap,
  );
}

/** Keys of a single function are refused beside several. */
function checkOuter(
  place: string,
  parts: string,
  outer: Pick<PartConfig, "limits" | "custom_reward_function">,
): void {
  const { path } = outer.custom_reward_function;
  if (path !== null) {
    throw new RewardConfigError(
      `${place}.custom_reward_function.path`,
      `is ${path}, and there are ${parts}, which have functions of their own`,
      path,
    );
  }
  if (Object.keys(optionsOf(limitsOptions, outer.limits)).length > 0) {
    throw new RewardConfigError(
      `${place}.limits`,
      `belong to one endpoint: say them of those of ${parts} that call it`,
      outer.limits,
    );
  }
}
