/** From the plan of a loop to what scores for it: pipelines at the leaves, and what stands on them. */

import type { RewardPlan } from "./reward-plan.ts";
import { RewardPipeline } from "../manager/reward-pipeline.ts";
import type { RewardSource } from "../manager/reward-source.ts";
import type { InvalidOutcome } from "../outcome.ts";
import { Purse } from "../spend/purse.ts";
import type { PursePlace, SpendSettings, SpendState } from "../spend/purse.ts";
import { Cascade } from "./cascade.ts";
import { ComposedRewards } from "./composed-rewards.ts";
import { DegradingReward } from "./degrading.ts";
import { checkTraits, closeAll, openAll } from "./parts.ts";

export interface SourceContext {
  /** Those that are made, in order. */
  readonly purses: Purse[];
  readonly warn: (state: SpendState) => void;
}

interface Within {
  /** Which rewards these are: "" for all, "correct/judge" for a stage. */
  readonly name: string;
  /** That pays, unless there is one of its own: then what it pays is counted here, too. */
  readonly purse: Purse | undefined;
  /** When that is empty, so is one of its own. */
  readonly limitedBy: Purse | undefined;
}

/** Rejects as RewardPipeline.open, and with RewardLoopOptionError; no actor is left then. */
export async function openSource(
  plan: RewardPlan,
  context: SourceContext,
  { name, purse, limitedBy }: Within = { name: "", purse: undefined, limitedBy: undefined },
): Promise<RewardSource> {
  const own = plan.spend && openPurse(plan.spend, context, { name, countedIn: purse, limitedBy });
  const main = openTree(plan, context, name, own ?? purse);
  const { cheaper } = plan;
  if (cheaper === undefined || own === undefined) return main;
  // Its cost counts where that of the first one does; what is spent there does not keep it from going on.
  const other = openSource({ ...cheaper, spend: cheaper.spend ?? { prices: {} } }, context, {
    name: nameIn(name, "cheaper"),
    purse: own,
    limitedBy,
  });
  const [first, second] = await openAll([main, other]);
  return new DegradingReward(first as RewardSource, second as RewardSource, own);
}

function openPurse(spend: SpendSettings, context: SourceContext, place: PursePlace): Purse {
  const purse = new Purse(spend, { ...place, warn: context.warn });
  context.purses.push(purse);
  return purse;
}

async function openTree(
  plan: RewardPlan,
  context: SourceContext,
  name: string,
  purse: Purse | undefined,
): Promise<RewardSource> {
  if (plan.kind === "function") return RewardPipeline.open(plan.settings, purse);
  const parts: readonly { readonly name: string; readonly plan: RewardPlan }[] =
    plan.kind === "cascade" ? plan.stages : plan.components;
  const sources = await openAll(
    parts.map((part) => {
      const within = { name: nameIn(name, part.name), purse, limitedBy: purse };
      return openSource(part.plan, context, within);
    }),
  );
  try {
    checkTraits(sources);
  } catch (error) {
    await closeAll(sources);
    throw error;
  }
  const sourceAt = (index: number): RewardSource => sources[index] as RewardSource;
  if (plan.kind === "cascade") {
    return new Cascade(
      plan.stages.map(({ name: stage, passOn }, index) => ({
        name: stage,
        source: sourceAt(index),
        passesOn: passOn === "invalid" ? always : cannotTell,
      })),
    );
  }
  const components = plan.components.map((one, index) => ({ ...one, source: sourceAt(index) }));
  return new ComposedRewards(components, plan.combine);
}

function nameIn(outer: string, name: string): string {
  return outer === "" ? name : `${outer}/${name}`;
}

function cannotTell({ error }: InvalidOutcome): boolean {
  return error.code === "CANNOT_TELL";
}

function always(): boolean {
  return true;
}
