/**
 * The versions that the outcomes of a loop will have, and the digests that they depend on. They are
 * known before anything is started, so that a resumed run can tell whether its logged scores are
 * still valid.
 */

import { rewardVersion, rewardVersionParts } from "../../settings/reward-version.ts";
import { rewardModelsOf } from "../../reward-model/loop-models.ts";
import type { RewardLoopOptions } from "./loop-options.ts";
import { readPlan } from "./read-plan.ts";
import { withRewardModels } from "./reward-plan.ts";
import type { RewardPlan } from "./reward-plan.ts";
import { aboutCascade, aboutRewards, versionOfSeveral } from "../several-sources.ts";

/** Versions of the reward functions, with the parts that they depend on. */
export interface RewardVersions {
  /** The version of the loop as it begins, followed by those of the substitute judges at a cap. */
  readonly versions: readonly string[];
  /**
   * Digests by name ("rewardKwargs.factor", "judge: the reward module") that the versions depend
   * on.
   */
  readonly parts: Readonly<Record<string, string>>;
}

/** Rejects with RewardLoopOptionError, InvalidRewardSpecError, or why a module cannot be read. */
export async function rewardVersionsOf(options: RewardLoopOptions): Promise<RewardVersions> {
  // The address of a reward model changes no score.
  return versionsOf(withRewardModels(readPlan(options), rewardModelsOf(options)));
}

/**
 * Rejects with why a module cannot be read.
 *
 * @param plan whose functions know their reward model, if there is one
 */
export async function versionsOf(plan: RewardPlan): Promise<RewardVersions> {
  const main = plan.kind === "function" ? await ofFunction(plan) : await ofSeveral(plan);
  if (plan.cheaper === undefined) return main;
  const cheaper = await versionsOf(plan.cheaper);
  return {
    versions: [...main.versions, ...cheaper.versions],
    parts: { ...main.parts, ...within("cheaper", cheaper.parts) },
  };
}

async function ofFunction({
  settings: { pipeline },
}: Extract<RewardPlan, { kind: "function" }>): Promise<RewardVersions> {
  const parts = rewardVersionParts(pipeline);
  return { versions: [rewardVersion(pipeline).version], parts };
}

async function ofSeveral(plan: Exclude<RewardPlan, { kind: "function" }>): Promise<RewardVersions> {
  const children = plan.kind === "cascade" ? plan.stages : plan.components;
  const known = await Promise.all(
    children.map(async ({ name, plan: child }) => ({ name, ...(await versionsOf(child)) })),
  );
  const about =
    plan.kind === "cascade"
      ? aboutCascade(plan.stages)
      : aboutRewards(plan.combine, plan.components);
  // Each of them may be at its cap or not.
  let combinations: readonly (readonly string[])[] = [[]];
  for (const { versions } of known) {
    combinations = combinations.flatMap((before) => versions.map((one) => [...before, one]));
  }
  const parts = known.map((one) => within(one.name, one.parts));
  const how: Readonly<Record<string, string>> = {
    [plan.kind]: versionOfSeveral(about, []).slice(0, 8),
  };
  return {
    versions: combinations.map((versions) => versionOfSeveral(about, versions)),
    parts: parts.reduce((all, one) => ({ ...all, ...one }), how),
  };
}

function within(name: string, parts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parts).map(([part, digest]) => [`${name}: ${part}`, digest]),
  );
}
