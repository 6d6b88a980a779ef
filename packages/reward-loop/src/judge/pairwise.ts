/**
 * A judge that compares two answers. It is asked twice, with the sides swapped, because many judges
 * prefer the first side.
 */

import { judgeOptions } from "../options/defaults/asking.ts";
import type { TableOf } from "../options/defaults/calls.ts";
import { checkOptions } from "../options/read.ts";
import { choiceJudge } from "./choice.ts";
import { priceOf } from "../spend/cost-budget.ts";
import type { Judge, JudgeCall, JudgeOptions, JudgeScore } from "./judge.ts";
import { countIn, sumOf, withCount } from "./judge-count.ts";
import { JudgePromptError } from "./judge-error.ts";
import { hasPlace } from "./template.ts";
import type { PromptValues } from "./template.ts";

/**
 * The prompt has places `{{first}}` and `{{second}}`, which are filled with the values `a` and `b`,
 * and then the other way round. The score is 1 where `a` is better both times, 0 where `b` is, 0.5
 * where neither is or the judge contradicts itself (`consistent`: false), null where it cannot tell
 * one of the times. Throws RewardLoopOptionError, and JudgePromptError for a prompt without one of
 * the places.
 */
export function pairwiseJudge(
  options: JudgeOptions,
): (
  values: PromptValues & { readonly a: unknown; readonly b: unknown },
  call?: JudgeCall,
) => ReturnType<Judge> {
  checkOptions(judgeOptions satisfies TableOf<JudgeOptions>, options, "pairwiseJudge");
  const { prices, prompt, system = "" } = options;
  for (const place of ["first", "second"]) {
    if (!hasPlace(prompt + system, place)) {
      throw new JudgePromptError(`The prompt of a comparison has no place {{${place}}}.`);
    }
  }
  const judge = choiceJudge({ ...options, choices: { first: 1, second: 0, neither: 0.5 } });
  return async ({ a, b, ...values }, call) => {
    const straight = judge({ ...values, first: a, second: b }, call);
    const swapped = judge({ ...values, first: b, second: a }, call);
    const [one, other] = await bothOf(straight, swapped, call?.signal);
    const { usage, asked } = sumOf([one, other]);
    const reasons = [one["reason"], other["reason"]];
    const cost = prices && priceOf(prices, { attempts: asked, usage });
    const counted = { usage, asked, ...(cost === undefined ? {} : { cost }) };
    if (one.score === null || other.score === null) {
      return { score: null, consistent: null, reasons, ...counted };
    }
    const consistent = one.score === 1 - other.score;
    return { score: consistent ? one.score : 0.5, consistent, reasons, ...counted };
  };
}

/** Rejects when both are over, with what both of them used. */
async function bothOf(
  first: Promise<JudgeScore>,
  second: Promise<JudgeScore>,
  signal: AbortSignal | undefined,
): Promise<readonly [JudgeScore, JudgeScore]> {
  const [one, other] = await Promise.allSettled([first, second]);
  if (one.status === "fulfilled" && other.status === "fulfilled") return [one.value, other.value];
  const [failed, beside] = one.status === "rejected" ? [one, other] : [other, one];
  const error: unknown = failed.status === "rejected" ? failed.reason : undefined;
  if (beside.status === "fulfilled") {
    throw withCount(error, sumOf([countIn(error), beside.value]), signal);
  }
  // Both may have failed with one error, which has the count of both then.
  if (beside.reason === error) throw error;
  throw withCount(error, sumOf([error, beside.reason].map(countIn)), signal);
}
