/**
 * Converts the result of a score function to one finite number and its extra info. Invariant:
 * rewardScore is finite, and where extra info repeats the score (`score`, `acc`) it is that number.
 * Every other result is an InvalidScoreError, never a zero; null is a CannotTellError.
 */

import { CannotTellError, InvalidScoreError } from "../errors.ts";
import { describeValue } from "../value-description.ts";
import { byToken, byTurn, sumOf, tokenScoresIn, turnScoresIn } from "./placed-score.ts";

/** verl `{reward_score, reward_extra_info}`. */
export interface RewardResult {
  /** verl `reward_score`: a finite number. */
  readonly rewardScore: number;
  /** verl `reward_extra_info`: further values of the score function. */
  readonly rewardExtraInfo: Record<string, unknown>;
}

/**
 * Converts a result:
 *
 * - scalar `s` -> extra `{ acc: s }`
 * - `{ score, ...extras }` -> all keys, `score` included
 * - `[score, query, response]`, the last two texts or null -> its score, plus the keys `query` and
 *   `response` (a record's own keys of that name have precedence)
 * - a list of [position, value] in place of a score -> their sum, plus the key `score_by_token`
 * - `{ score: { turns: [...] } }` -> their sum, plus `score_by_turn`
 *
 * Booleans count 1 and 0. Throws CannotTellError for a score of null, InvalidScoreError for every
 * other result.
 */
export function toRewardResult(output: unknown, dataSource: string): RewardResult {
  if (!Array.isArray(output) || tokenScoresIn(output) !== undefined)
    return scalarOrRecord(output, dataSource, "");
  const tuple: readonly unknown[] = output;
  if (tuple.length !== 3) throw new InvalidScoreError(dataSource, describeValue(output));
  const [, query, response] = tuple;
  for (const [name, said] of Object.entries({ query, response })) {
    // An array of three numbers is no score with a query and a response.
    if (said !== undefined && said !== null && typeof said !== "string") {
      const received = `an array of length 3 whose ${name} is ${describeValue(said)}`;
      throw new InvalidScoreError(dataSource, received);
    }
  }
  const { rewardScore, rewardExtraInfo } = scalarOrRecord(
    tuple[0],
    dataSource,
    "[score, query, response] with, as its score, ",
  );
  return {
    rewardScore,
    rewardExtraInfo: { query, response, ...rewardExtraInfo },
  };
}

function scalarOrRecord(output: unknown, dataSource: string, where: string): RewardResult {
  if (output === null) throw new CannotTellError(dataSource, {});
  const bare = scoreIn(output);
  if (bare !== undefined) {
    return { rewardScore: bare.score, rewardExtraInfo: { acc: bare.score, ...bare.places } };
  }
  if (typeof output !== "object" || output === null || !Object.hasOwn(output, "score")) {
    throw new InvalidScoreError(dataSource, where + describeValue(output));
  }
  const record: Record<string, unknown> = { ...output };
  const { score: said, ...extraInfo } = record;
  if (said === null) throw new CannotTellError(dataSource, extraInfo);
  const found = scoreIn(said) ?? turnsIn(said);
  if (found === undefined || !Number.isFinite(found.score)) {
    const received = `${where}an object whose score is ${describeValue(said)}`;
    throw new InvalidScoreError(dataSource, received, extraInfo);
  }
  const { score, places } = found;
  return { rewardScore: score, rewardExtraInfo: { ...record, score, ...places } };
}

interface Found {
  readonly score: number;
  /** The places of the score, for the extra info. */
  readonly places?: Readonly<Record<string, unknown>>;
}

function scoreIn(value: unknown): Found | undefined {
  const scalar = toFiniteNumber(value);
  if (scalar !== undefined) return { score: scalar };
  const tokens = tokenScoresIn(value);
  if (tokens === undefined) return undefined;
  const score = sumOf(tokens.map(([, one]) => one));
  return Number.isFinite(score) ? { score, places: { [byToken]: tokens } } : undefined;
}

function turnsIn(value: unknown): Found | undefined {
  const turns = turnScoresIn(value);
  return turns && { score: sumOf(turns), places: { [byTurn]: turns } };
}

function toFiniteNumber(value: unknown): number | undefined {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value !== "number" && typeof value !== "bigint") return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}
