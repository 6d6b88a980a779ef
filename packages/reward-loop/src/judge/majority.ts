/** A judge that is asked several times: what more than half of them say counts. */

import { together, usageOf } from "../spend/usage.ts";
import type { TokenUsage } from "../outcome.ts";
import { partOf, textPartOf } from "../faults/error-tree.ts";
import type { Judge, JudgeScore } from "./judge.ts";
import { JudgePromptError } from "./judge-error.ts";
import { withUsage } from "./structured.ts";

/**
 * Asks as many times as needed at once, and then one by one while the result is open. The score is
 * the one that more than half of `k` gave, with the other fields of the first of them; null where
 * there is none. `votes` are all scores, null for an answer that cannot tell or has no text.
 * Rejects as the judge does, and with REFUSED_ANSWER or TRUNCATED_ANSWER where no answer has a
 * text. Throws JudgePromptError unless `k` is a whole number of at least 1.
 */
export function majorityOf(k: number, judge: Judge): Judge {
  if (!Number.isInteger(k) || k < 1) {
    throw new JudgePromptError(
      `A majority is of a whole number of judges, at least 1; not of ${k}.`,
    );
  }
  const needed = Math.floor(k / 2) + 1;
  return async (values, call) => {
    const votes: Vote[] = [];
    const ask = async (count: number): Promise<void> => {
      const asking = Array.from({ length: count }, () => voteOf(judge(values, call)));
      votes.push(...(await Promise.all(asking)));
      const failure = votes.find((vote) => vote.failure !== undefined)?.failure;
      if (failure !== undefined) throw withUsage(failure.error, usageOfAll(votes, failure.error));
    };
    await ask(needed);
    while (!isDecided(votes, k, needed)) await ask(1);
    return resultOf(votes, needed);
  };
}

interface Vote {
  /** Undefined: it said nothing. */
  readonly said: JudgeScore | undefined;
  readonly silence: unknown;
  readonly failure: { readonly error: unknown } | undefined;
}

async function voteOf(asked: Promise<JudgeScore>): Promise<Vote> {
  try {
    return { said: await asked, silence: undefined, failure: undefined };
  } catch (error) {
    const isSilent = /^(REFUSED|TRUNCATED)_ANSWER$/.test(textPartOf(error, "code"));
    return isSilent
      ? { said: undefined, silence: error, failure: undefined }
      : { said: undefined, silence: undefined, failure: { error } };
  }
}

function isDecided(votes: readonly Vote[], k: number, needed: number): boolean {
  const left = k - votes.length;
  const most = Math.max(0, ...countsOf(votes).values());
  return left === 0 || most >= needed || most + left < needed;
}

function countsOf(votes: readonly Vote[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const { said } of votes) {
    const score = said?.score ?? null;
    if (score !== null) counts.set(score, (counts.get(score) ?? 0) + 1);
  }
  return counts;
}

function resultOf(votes: readonly Vote[], needed: number): JudgeScore {
  const usage = usageOfAll(votes);
  const said = votes.flatMap((vote) => vote.said ?? []);
  const [first] = said;
  if (first === undefined) throw withUsage(votes[0]?.silence, usageOfAll(votes.slice(1)));
  const winner = [...countsOf(votes)].find(([, count]) => count >= needed)?.[0] ?? null;
  const speaker = said.find(({ score }) => score === winner) ?? first;
  const costs = said.flatMap(({ cost }) => cost ?? []);
  return {
    ...speaker,
    score: winner,
    votes: votes.map((vote) => vote.said?.score ?? null),
    usage,
    asked: said.reduce((sum, { asked }) => sum + asked, votes.length - said.length),
    ...(costs.length === 0 ? {} : { cost: costs.reduce((sum, cost) => sum + cost, 0) }),
  };
}

/** @param but the error that says its own */
function usageOfAll(votes: readonly Vote[], but?: unknown): TokenUsage | undefined {
  return votes.reduce<TokenUsage | undefined>((sum, { said, silence, failure }) => {
    const error = silence ?? failure?.error;
    if (error !== undefined && error === but) return sum;
    return together(sum, said?.usage ?? usageOf({ usage: partOf(error, "usage") }));
  }, undefined);
}
