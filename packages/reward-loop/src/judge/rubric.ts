/** A judge that gives points by several criteria. */

import { z } from "zod";
import { criterionOptions, rubricOptions } from "../options/defaults/asking.ts";
import type { TableOf } from "../options/defaults/calls.ts";
import { checkOptions } from "../options/read.ts";
import { joined } from "./choice.ts";
import { structuredJudge } from "./judge.ts";
import type { Judge, JudgeOptions } from "./judge.ts";
import { JudgePromptError } from "./judge-error.ts";

export interface Criterion {
  /** The criterion in words for the judge. */
  readonly description: string;
  /** Points for the worst and for the best. Default 1 to 5. */
  readonly points?: readonly [worst: number, best: number] | undefined;
  /** Relative to the other weights. Default 1. */
  readonly weight?: number | undefined;
}

export interface RubricOptions extends JudgeOptions {
  /** Criteria by name. */
  readonly criteria: Readonly<Record<string, Criterion>>;
}

const standardPoints = [1, 5] as const;

/**
 * Makes a judge whose score is the weighted mean of the criteria, each from 0 (worst) to 1 (best),
 * with the points of each as `points` and the `reason`; null where the judge cannot tell one of
 * them. Throws RewardLoopOptionError, and JudgePromptError for criteria without points or weight.
 */
export function rubricJudge(given: RubricOptions): Judge {
  criterionOptions satisfies TableOf<Criterion>;
  checkOptions(rubricOptions satisfies TableOf<RubricOptions>, given, "rubricJudge");
  const { criteria, system = "", ...options } = given;
  const entries = Object.entries(criteria);
  if (entries.length === 0) throw new JudgePromptError("A rubric needs at least one criterion.");
  const shape: Record<string, z.ZodType<number | null>> = {};
  const lines: string[] = [];
  for (const [name, { description, points = standardPoints, weight = 1 }] of entries) {
    if (name === "__proto__") throw new JudgePromptError(`A criterion cannot be named ${name}.`);
    const [worst, best] = points;
    const isScale =
      points.length === 2 && points.every(Number.isFinite) && Number.isFinite(best - worst);
    if (!isScale || worst === best || !Number.isFinite(weight) || weight <= 0) {
      throw new JudgePromptError(
        `The criterion ${JSON.stringify(name)} needs two different numbers of points and a weight above 0; it has ${JSON.stringify(points)} and ${JSON.stringify(weight)}.`,
      );
    }
    shape[name] = z.number().min(Math.min(worst, best)).max(Math.max(worst, best)).nullable();
    lines.push(`- ${name}, from ${worst} (worst) to ${best} (best): ${description}`);
  }
  const instructions = `Give points by these criteria, and null for one that you cannot tell. Give the reason first.\n${lines.join("\n")}`;
  return structuredJudge({
    ...options,
    system: joined(system, instructions),
    schema: z.object({ reason: z.string(), points: z.object(shape) }),
    scoreOf: ({ reason, points }) => ({ score: meanOf(criteria, points), points, reason }),
  });
}

function meanOf(
  criteria: Readonly<Record<string, Criterion>>,
  given: Readonly<Record<string, number | null>>,
): number | null {
  let sum = 0;
  let weights = 0;
  for (const [name, { points = standardPoints, weight = 1 }] of Object.entries(criteria)) {
    const said = given[name] ?? null;
    if (said === null) return null;
    const [worst, best] = points;
    sum += (weight * (said - worst)) / (best - worst);
    weights += weight;
  }
  return sum / weights;
}
