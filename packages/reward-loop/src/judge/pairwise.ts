/**
 * A judge that compares two answers. It is asked twice, with the sides swapped, because many judges
 * prefer the first side.
 */

import { fieldOf } from "@rayling/reward-manager-registry/values";
import { choiceJudge } from "./choice.ts";
import { priceOf } from "../spend/cost-budget.ts";
import { together, usageOf } from "../spend/usage.ts";
import type { Judge, JudgeCall, JudgeOptions, JudgeScore } from "./judge.ts";
import { JudgePromptError } from "./judge-error.ts";
import { withUsage } from "./structured.ts";
import { hasPlace } from "./template.ts";
import type { PromptValues } from "./template.ts";

/**
 * The prompt has places `{{first}}` and `{{second}}`, which are filled with the values `a` and `b`,
 * and then the other way round. The score is 1 where `a` is better both times, 0 where `b` is, 0.5
 * where neither is or the judge contradicts itself (`consistent`: false), null where it cannot tell
 * one of the times. Throws JudgePromptError for a prompt without one of the places.
 */
export function pairwiseJudge(
  options: JudgeOptions,
): (
  values: PromptValues & { readonly a: unknown; readonly b: unknown },
  call?: JudgeCall,
) => ReturnType<Judge> {
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
    const [one, other] = await bothOf(straight, swapped);
    const usage = together(one.usage, other.usage);
    const asked = one.asked + other.asked;
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

function usedIn(score: PromiseSettledResult<JudgeScore>): JudgeScore["usage"] {
  if (score.status === "fulfilled") return score.value.usage;
  return usageOf({ usage: fieldOf(score.reason, "usage") });
}

/** Rejects when both are over, with what the one that went well used. */
async function bothOf(
  first: Promise<JudgeScore>,
  second: Promise<JudgeScore>,
): Promise<readonly [JudgeScore, JudgeScore]> {
  const [one, other] = await Promise.allSettled([first, second]);
  if (one.status === "rejected") throw withUsage(one.reason, usedIn(other));
  if (other.status === "rejected") throw withUsage(other.reason, one.value.usage);
  return [one.value, other.value];
}
