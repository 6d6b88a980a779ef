/**
 * Scores with places in a response: a list of [position, value], or one value for each turn of the
 * policy. Their sum is the score, for callers that need one number. The places are in the extra
 * info, so that they travel, are cached and are logged with it.
 */

import { fieldOf } from "../values/records.ts";

/** A token's position in the response, from 0, and its value. */
export type TokenScore = readonly [position: number, value: number];

/** One score for each turn of the policy, in order. */
export interface TurnScores {
  /** The scores, at least one. */
  readonly turns: readonly number[];
}

/** Their names in the extra info. */
export const byToken = "score_by_token";
export const byTurn = "score_by_turn";

/**
 * Returns undefined for a value that is no list of [position, value]; an empty list is no score.
 */
export function tokenScoresIn(value: unknown): readonly TokenScore[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  // Every place, holes too.
  const scores: unknown[] = Array.from(value);
  return scores.every(isTokenScore) ? scores : undefined;
}

function isTokenScore(value: unknown): value is TokenScore {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [position, score]: readonly unknown[] = value;
  return Number.isSafeInteger(position) && Number(position) >= 0 && Number.isFinite(score);
}

/** Returns undefined for a value that is no `{ turns }`. */
export function turnScoresIn(value: unknown): readonly number[] | undefined {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, "turns"))
    return undefined;
  const turns = fieldOf(value, "turns");
  if (!Array.isArray(turns) || turns.length === 0) return undefined;
  const scores: unknown[] = Array.from(turns);
  return scores.every((one): one is number => Number.isFinite(one)) ? scores : undefined;
}

/** A RewardResult, or a valid outcome. */
export interface PlacedScore {
  /** The score of the whole response. */
  readonly rewardScore: number;
  /** Further values of the score function, with the places of its score. */
  readonly rewardExtraInfo: Readonly<Record<string, unknown>>;
}

/** The size of a response in its batch, in tokens. */
export interface ScoredRow {
  /** The valid tokens of the response. */
  readonly length: number;
  /** The columns of its row. */
  readonly width: number;
}

/**
 * Returns the parts of a score by column of its row; they add up to `rewardScore`. The part that a
 * manager or a group's hook has added is at the last token; so is the whole score if the function
 * named no places. A response without a token has its score in the last column, as in verl (index
 * -1).
 */
export function placesOf(
  { rewardScore, rewardExtraInfo }: PlacedScore,
  { length, width }: ScoredRow,
): readonly TokenScore[] {
  const last = (length === 0 ? width : length) - 1;
  const said = tokenScoresIn(rewardExtraInfo[byToken]) ?? [];
  if (said.length === 0 || said.some(([position]) => position >= length)) {
    return [[last, rewardScore]];
  }
  const values = said.map(([, value]) => value);
  const rest = rewardScore - sumOf(values);
  return Math.abs(rest) <= roundingOf(values) ? said : [...said, [last, rest]];
}

/** The most that a sum of weighted values is off because each step of it is rounded. */
function roundingOf(values: readonly number[]): number {
  const size = sumOf(values.map(Math.abs));
  return 4 * (values.length + 1) * Number.EPSILON * size;
}

/** One of several scores that are added up. */
export interface WeightedScore extends PlacedScore {
  readonly weight: number;
}

/**
 * The extra info that says where the weighted sum of several scores stands: each part of each score
 * times its weight, parts at one position added up. A score without places is not among them, and
 * so stands at the last token (`placesOf`). Empty where none has places.
 */
export function weightedPlaces(
  scores: readonly WeightedScore[],
): Readonly<Record<string, readonly TokenScore[]>> {
  const places = new Map<number, number>();
  for (const { weight, rewardExtraInfo } of scores) {
    for (const [position, value] of tokenScoresIn(rewardExtraInfo[byToken]) ?? []) {
      places.set(position, (places.get(position) ?? 0) + weight * value);
    }
  }
  const inOrder = [...places].toSorted(([a], [b]) => a - b);
  return inOrder.length === 0 ? {} : { [byToken]: inOrder };
}

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
