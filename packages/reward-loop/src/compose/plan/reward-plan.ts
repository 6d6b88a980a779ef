/** The plan of a reward loop: a tree whose leaves are the settings of one function each. */

import { notAnOption, placeOf } from "../../options/read.ts";
import { askingSettings } from "../../settings/asked-models.ts";
import type { NamedModel, Router } from "../../reward-model/loop-models.ts";
import type { RewardLoopSettings } from "../../settings/settings.ts";
import type { SpendSettings } from "../../spend/cost-budget.ts";

/** A tree of what is asked for a score. */
export type RewardPlan = {
  readonly spend: SpendSettings | undefined;
  /** Takes over when that is spent. */
  readonly cheaper: RewardPlan | undefined;
} & (
  | { readonly kind: "function"; readonly settings: RewardLoopSettings }
  | { readonly kind: "cascade"; readonly stages: readonly StagePlan[] }
  | {
      readonly kind: "rewards";
      readonly combine: "sum" | "mean";
      readonly components: readonly ComponentPlan[];
    }
);

export interface StagePlan {
  readonly name: string;
  readonly passOn: "cannotTell" | "invalid";
  readonly plan: RewardPlan;
}

export interface ComponentPlan {
  readonly name: string;
  readonly weight: number;
  readonly onInvalid: "mask" | "leaveOut" | { readonly score: number };
  readonly plan: RewardPlan;
}

/**
 * The settings of all functions, changed alike.
 *
 * @param change gets the place of a function's options, too: "rewards.style", "" for those of the
 *   loop
 */
export function mapPlan(
  plan: RewardPlan,
  change: (settings: RewardLoopSettings, place: string) => RewardLoopSettings,
  place: string = "",
): RewardPlan {
  const within = (name: string, inner: RewardPlan): RewardPlan =>
    mapPlan(inner, change, placeOf(place, name));
  const cheaper = plan.cheaper && within("spend.whenReached", plan.cheaper);
  if (plan.kind === "function") {
    return { ...plan, cheaper, settings: change(plan.settings, place) };
  }
  const changed = <Part extends { readonly name: string; readonly plan: RewardPlan }>(
    part: Part,
  ): Part => ({
    ...part,
    plan: within(`${plan.kind}.${part.name}`, part.plan),
  });
  return plan.kind === "cascade"
    ? { ...plan, cheaper, stages: plan.stages.map(changed) }
    : { ...plan, cheaper, components: plan.components.map(changed) };
}

/**
 * The plan whose functions know their reward models. Throws RewardLoopOptionError, also for a
 * reward model that no function asks.
 *
 * @param routers by name; empty as long as nothing runs
 */
export function withRewardModels(
  plan: RewardPlan,
  models: readonly NamedModel[],
  routers: ReadonlyMap<string, Router> = new Map(),
): RewardPlan {
  const asked = new Set<string>();
  const known = mapPlan(plan, (settings, place) => {
    const asking = askingSettings(settings, place, models, routers);
    for (const name of asking.asked) asked.add(name);
    return asking.settings;
  });
  const idle = models.find(({ name }) => !asked.has(name));
  if (idle !== undefined) {
    notAnOption(idle.option, "one that a function asks (askedModels)", "asked by none");
  }
  return known;
}
