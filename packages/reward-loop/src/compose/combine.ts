/** How the outcomes of several functions become one. Pure. */

import { weightedPlaces } from "@rayling/reward-manager-registry";
import { itemAt, present } from "@rayling/reward-manager-registry/values";
import type { ComponentPlan } from "./plan/reward-plan.ts";
import type { SampleOutcome, ScoreFailure } from "../outcome.ts";
import { together, wholeUsageOf } from "../spend/usage.ts";
import type { TokenUsage } from "../outcome.ts";

type Component = Pick<ComponentPlan, "name" | "weight" | "onInvalid">;
type Measures = Omit<Extract<SampleOutcome, { valid: false }>, "valid" | "error">;

/**
 * Returns the sum of weight x score, or the mean. Extra info: `score` is that value, each
 * component's own score stands under its name (null where it has none), and its other extra info
 * under `{name}/{key}`; `usage` is the total, and `score_by_token` holds the sum's parts at their
 * places. Invalid if a component with onInvalid mask is invalid, or all are.
 *
 * @param outcomes in order of the components
 */
export function combined(
  components: readonly Component[],
  outcomes: readonly SampleOutcome[],
  combine: "sum" | "mean",
): SampleOutcome {
  const parts = Object.fromEntries(
    components.map(({ name }, index) => [name, itemAt(outcomes, index)]),
  );
  const measured = { ...atOnce(outcomes), components: parts };
  const scores = components.map(({ onInvalid }, index) => scoreOf(outcomes[index], onInvalid));
  const masking = components.findIndex(
    ({ onInvalid }, index) => onInvalid === "mask" && scores[index] === undefined,
  );
  const isEmpty = scores.every((score) => score === undefined);
  const culprit = masking === -1 && isEmpty ? 0 : masking;
  const failed = outcomes[culprit];
  if (failed?.valid === false) {
    const name = components[culprit]?.name ?? "";
    return { valid: false, error: failureOf(name, failed.error), ...measured };
  }
  let sum = 0;
  let weights = 0;
  for (const [index, { weight }] of components.entries()) {
    const score = scores[index];
    if (score === undefined) continue;
    sum += weight * score;
    weights += weight;
  }
  const rewardScore = combine === "sum" ? sum : sum / weights;
  if (!Number.isFinite(rewardScore)) {
    const message = `the weights of the rewards that are left sum up to ${weights}`;
    const error = { code: "INVALID_SCORE", name: "InvalidScoreError", message } as const;
    return { valid: false, error, ...measured };
  }
  const share = combine === "sum" ? 1 : 1 / weights;
  const rewardExtraInfo = {
    score: rewardScore,
    ...extraOf(components, outcomes, scores),
    ...placesOfSum(components, outcomes, share),
  };
  return { valid: true, rewardScore, rewardExtraInfo, ...measured };
}

/**
 * Returns the outcome of the last source that was asked, with the times and usage of all of them.
 *
 * @param asked by name, in order
 */
export function answered(asked: Readonly<Record<string, SampleOutcome>>): SampleOutcome {
  const entries = Object.entries(asked);
  const [name, last] = present(entries.at(-1), "an answer");
  const measured = { ...oneByOne(entries.map(([, outcome]) => outcome)), components: asked };
  // The components say what was used, and it is cached where all of them are.
  const { usageBefore: _, used: __, cached: ___, ...own } = last;
  if (!own.valid) return { ...own, ...measured, error: failureOf(name, own.error) };
  return saidBy(name, { ...own, ...measured });
}

/** Adds what an outcome of the same sample has cost that does not count: it was paid for, too. */
export function behind(before: SampleOutcome, outcome: SampleOutcome): SampleOutcome {
  if (before.attempts === 0) return outcome;
  const usageBefore = together(wholeUsageOf(before), outcome.usageBefore);
  const { attempts, cost, hedges } = spent([before, outcome]);
  return {
    ...outcome,
    attempts,
    waitedMs: before.waitedMs + outcome.waitedMs,
    ...(usageBefore === undefined ? {} : { usageBefore }),
    ...(cost === undefined ? {} : { cost }),
    ...(hedges === undefined ? {} : { hedges }),
  };
}

/**
 * Adds the answering source to the extra info: "judge", or "judge/cheaper" where the source stands
 * for several itself.
 */
export function saidBy(name: string, outcome: SampleOutcome): SampleOutcome {
  if (!outcome.valid) return outcome;
  const answeredBy = outcome.answeredBy === undefined ? name : `${name}/${outcome.answeredBy}`;
  const rewardExtraInfo = { ...outcome.rewardExtraInfo, answeredBy };
  return { ...outcome, rewardExtraInfo, answeredBy };
}

/** Adds the name of the failed component; a part of a part has both names. */
function failureOf(name: string, error: ScoreFailure): ScoreFailure {
  const component = error.component === undefined ? name : `${name}/${error.component}`;
  const message =
    error.component === undefined ? `${name}: ${error.message}` : `${name}/${error.message}`;
  return { ...error, message, component };
}

/**
 * Says where the parts of the sum stand, if a component says where its own do.
 *
 * @param share of the sum that the score is
 */
function placesOfSum(
  components: readonly Component[],
  outcomes: readonly SampleOutcome[],
  share: number,
): Readonly<Record<string, unknown>> {
  return weightedPlaces(
    components.flatMap(({ weight }, index) => {
      const outcome = outcomes[index];
      return outcome?.valid === true ? [{ ...outcome, weight: weight * share }] : [];
    }),
  );
}

function scoreOf(
  outcome: SampleOutcome | undefined,
  onInvalid: Component["onInvalid"],
): number | undefined {
  if (outcome?.valid === true) return outcome.rewardScore;
  return typeof onInvalid === "object" ? onInvalid.score : undefined;
}

function extraOf(
  components: readonly Component[],
  outcomes: readonly SampleOutcome[],
  scores: readonly (number | undefined)[],
): Record<string, unknown> {
  const extra: Record<string, unknown> = {};
  for (const [index, { name }] of components.entries()) extra[name] = scores[index] ?? null;
  for (const [index, { name }] of components.entries()) {
    const outcome = outcomes[index];
    if (outcome?.valid === false) extra[`${name}/error`] = outcome.error.code;
    if (outcome?.valid !== true) continue;
    for (const [key, value] of Object.entries(outcome.rewardExtraInfo)) {
      // The score stands under the component's name; usage is the total.
      if (key !== "score" && key !== "usage" && !isItsScore(key, value, outcome.rewardScore)) {
        extra[`${name}/${key}`] = value;
      }
    }
  }
  const usage = usageOfAll(outcomes);
  return usage === undefined ? extra : { ...extra, usage };
}

/** A function that returns a number has it among its extra info as `acc`. */
function isItsScore(key: string, value: unknown, score: number): boolean {
  return key === "acc" && value === score;
}

function usageOfAll(outcomes: readonly SampleOutcome[]): TokenUsage | undefined {
  return outcomes.reduce<TokenUsage | undefined>(
    (sum, outcome) => together(sum, wholeUsageOf(outcome)),
    undefined,
  );
}

/** Begun together: the slowest says how long it took. */
function atOnce(outcomes: readonly SampleOutcome[]): Measures {
  const most = (valueOf: (outcome: SampleOutcome) => number): number =>
    Math.max(...outcomes.map(valueOf));
  return {
    latencyMs: most(({ latencyMs }) => latencyMs),
    waitedMs: most(({ waitedMs }) => waitedMs),
    ...spent(outcomes),
  };
}

function oneByOne(outcomes: readonly SampleOutcome[]): Measures {
  return {
    latencyMs: sumOf(outcomes, ({ latencyMs }) => latencyMs),
    waitedMs: sumOf(outcomes, ({ waitedMs }) => waitedMs),
    ...spent(outcomes),
  };
}

function spent(outcomes: readonly SampleOutcome[]): Omit<Measures, "latencyMs" | "waitedMs"> {
  const hasPrice = outcomes.some(({ cost }) => cost !== undefined);
  return {
    attempts: sumOf(outcomes, ({ attempts }) => attempts),
    ...(hasPrice ? { cost: sumOf(outcomes, ({ cost = 0 }) => cost) } : {}),
    ...(outcomes.every(({ cached }) => cached === true) ? { cached: true } : {}),
    ...hedgesOf(outcomes),
  };
}

/** Returns their sum. A cached outcome keeps the measurements of another sample. */
function hedgesOf(outcomes: readonly SampleOutcome[]): Pick<Measures, "hedges"> {
  const own = outcomes.flatMap(({ hedges, cached }) =>
    hedges === undefined || cached === true ? [] : [hedges],
  );
  if (own.length === 0) return {};
  return {
    hedges: { begun: sumOf(own, ({ begun }) => begun), won: sumOf(own, ({ won }) => won) },
  };
}

function sumOf<Item>(items: readonly Item[], valueOf: (item: Item) => number): number {
  return items.reduce((total, item) => total + valueOf(item), 0);
}
