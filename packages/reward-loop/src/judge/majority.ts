/** A judge that is asked several times: what more than half of them say counts. */

import { textPartOf } from "../faults/error-tree.ts";
import type { Judge, JudgeScore } from "./judge.ts";
import { countIn, sumOf, withCount } from "./judge-count.ts";
import type { JudgeCount } from "./judge-count.ts";
import { JudgePromptError } from "./judge-error.ts";

/**
 * Asks as many times as needed at once, and then one by one while the result is open. The score is
 * the one that more than half of `k` gave, with the other fields of the first of them; null where
 * there is none. `votes` are all scores, null for an answer that cannot tell or has no text.
 * Rejects as the judge does, and with REFUSED_ANSWER or TRUNCATED_ANSWER where no answer has a
 * text. Throws JudgePromptError unless `k` is a whole number of at least 1
 * and the judge is a function.
 */
export function majorityOf(k: number, judge: Judge): Judge {
  if (!Number.isInteger(k) || k < 1) {
    throw new JudgePromptError(
      `A majority is of a whole number of judges, at least 1; not of ${k}.`,
    );
  }
  if (typeof judge !== "function") {
    throw new JudgePromptError(
      `A majority asks a judge, which is a function; not ${typeof judge}.`,
    );
  }
  const needed = Math.floor(k / 2) + 1;
  return async (values, call) => {
    const votes: Vote[] = [];
    const ask = async (count: number): Promise<void> => {
      const asking = Array.from({ length: count }, () => voteOf(judge(values, call)));
      votes.push(...(await Promise.all(asking)));
      const failure = votes.find((vote) => vote.failure !== undefined)?.failure;
      if (failure !== undefined) throw withCountOf(votes, failure.error, call?.signal);
    };
    await ask(needed);
    while (!isDecided(votes, k, needed)) await ask(1);
    const first = votes.find(({ said }) => said !== undefined)?.said;
    if (first === undefined) throw withCountOf(votes, votes[0]?.silence, call?.signal);
    return resultOf(votes, needed, first);
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

/** @param first the first that has a score, or cannot tell */
function resultOf(votes: readonly Vote[], needed: number, first: JudgeScore): JudgeScore {
  const { usage, asked, cost } = sumOf(votes.map(countOf));
  const winner = [...countsOf(votes)].find(([, count]) => count >= needed)?.[0] ?? null;
  const speaker = votes.find(({ said }) => said?.score === winner)?.said ?? first;
  return {
    ...speaker,
    score: winner,
    votes: votes.map((vote) => vote.said?.score ?? null),
    usage,
    asked,
    ...(cost === undefined ? {} : { cost }),
  };
}

function countOf({ said, silence, failure }: Vote): JudgeCount {
  return said ?? countIn(silence ?? failure?.error);
}

/** Returns the error of one vote with the count of all: several may have failed with it. */
function withCountOf(
  votes: readonly Vote[],
  error: unknown,
  signal: AbortSignal | undefined,
): unknown {
  const at = votes.findIndex((vote) => (vote.silence ?? vote.failure?.error) === error);
  const counted = votes.filter(
    ({ failure }, place) => place === at || failure === undefined || failure.error !== error,
  );
  return withCount(error, sumOf(counted.map(countOf)), signal);
}
