/** Opens the sources of a plan: pipelines at the leaves, and combinations on top of them. */

import { itemAt } from "@rayling/reward-manager-registry/values";
import type { RewardPlan } from "./plan/reward-plan.ts";
import { RewardPipeline } from "../pipeline/reward-pipeline.ts";
import type { RewardSource } from "../pipeline/reward-source.ts";
import { SharedLimiter } from "../pipeline/shared-limiter.ts";
import type { RecordedCosts } from "../record/recorded-costs.ts";
import { Budget } from "../spend/cost-budget.ts";
import type { BudgetPlace, SpendSettings, SpendState } from "../spend/cost-budget.ts";
import { Cascade } from "./cascade.ts";
import { ComposedRewards } from "./composed-rewards.ts";
import { DegradingReward } from "./cheaper-judge.ts";
import { checkTraits, closeAll, openAll } from "./parts.ts";

export interface SourceContext {
  /** Budgets that have been opened, in order. */
  readonly budgets: Budget[];
  /** Likewise; several may be of the same endpoint. */
  readonly limiters: SharedLimiter[];
  readonly warn: (state: SpendState) => void;
  /** Costs of the run that is resumed. */
  readonly spentBefore: RecordedCosts;
}

interface Within {
  /** Which rewards these are: "" for all, "correct/judge" for a stage. */
  readonly name: string;
  /** The budget that pays, unless the part has its own: the part's payments count here, too. */
  readonly budget: Budget | undefined;
  /** The budget that limits the part's own. */
  readonly limitedBy: Budget | undefined;
  /** The cost of these sources in the run that is resumed. */
  readonly before: number;
}

/** Rejects as RewardPipeline.open, and with RewardLoopOptionError; no actor is left then. */
export async function openSource(
  plan: RewardPlan,
  context: SourceContext,
  { name, budget, limitedBy, before }: Within = atTop(context),
): Promise<RewardSource> {
  const place = { name, countedIn: budget, limitedBy };
  const own = plan.spend && openBudget(plan.spend, context, place, before);
  const main = openTree(plan, context, name, own ?? budget);
  const { cheaper } = plan;
  if (cheaper === undefined || own === undefined) return main;
  // Its cost counts with the main judge's; spending there does not stop it.
  const other = openSource({ ...cheaper, spend: cheaper.spend ?? { prices: {} } }, context, {
    name: nameIn(name, "cheaper"),
    budget: own,
    limitedBy,
    before: context.spentBefore.of(name).cheaper,
  });
  const opened = await openAll([main, other]);
  return new DegradingReward(itemAt(opened, 0), itemAt(opened, 1), own);
}

function atTop({ spentBefore }: SourceContext): Within {
  return { name: "", budget: undefined, limitedBy: undefined, before: spentBefore.of("").total };
}

function openBudget(
  spend: SpendSettings,
  context: SourceContext,
  place: BudgetPlace,
  before: number,
): Budget {
  const budget = new Budget(spend, { ...place, warn: context.warn }, before);
  context.budgets.push(budget);
  return budget;
}

async function openTree(
  plan: RewardPlan,
  context: SourceContext,
  name: string,
  budget: Budget | undefined,
): Promise<RewardSource> {
  if (plan.kind === "function") {
    const limiter = SharedLimiter.of(plan.settings.policy);
    if (limiter !== undefined) context.limiters.push(limiter);
    return RewardPipeline.open(plan.settings, budget, limiter);
  }
  const parts: readonly { readonly name: string; readonly plan: RewardPlan }[] =
    plan.kind === "cascade" ? plan.stages : plan.components;
  const sources = await openAll(
    parts.map((part) => {
      const partName = nameIn(name, part.name);
      const before = context.spentBefore.of(partName).total;
      const within = { name: partName, budget, limitedBy: budget, before };
      return openSource(part.plan, context, within);
    }),
  );
  try {
    checkTraits(sources);
  } catch (error) {
    await closeAll(sources);
    throw error;
  }
  const sourceAt = (index: number): RewardSource => itemAt(sources, index);
  if (plan.kind === "cascade") {
    return new Cascade(plan.stages.map((stage, index) => ({ ...stage, source: sourceAt(index) })));
  }
  const components = plan.components.map((one, index) => ({ ...one, source: sourceAt(index) }));
  return new ComposedRewards(components, plan.combine);
}

function nameIn(outer: string, name: string): string {
  return outer === "" ? name : `${outer}/${name}`;
}
