/** What a reward loop is made of: a tree whose leaves are the settings of one function each. */

import type { RewardLoopSettings } from "../settings.ts";
import type { SpendSettings } from "../spend/purse.ts";

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

/** The settings of all functions, changed alike. */
export function mapPlan(
  plan: RewardPlan,
  change: (settings: RewardLoopSettings) => RewardLoopSettings,
): RewardPlan {
  const cheaper = plan.cheaper && mapPlan(plan.cheaper, change);
  if (plan.kind === "function") return { ...plan, cheaper, settings: change(plan.settings) };
  const changed = <Part extends { readonly plan: RewardPlan }>(part: Part): Part => ({
    ...part,
    plan: mapPlan(part.plan, change),
  });
  return plan.kind === "cascade"
    ? { ...plan, cheaper, stages: plan.stages.map(changed) }
    : { ...plan, cheaper, components: plan.components.map(changed) };
}
