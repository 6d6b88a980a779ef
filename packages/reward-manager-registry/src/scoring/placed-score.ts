/**
 * Scores that stand at several places of a response: a list of [position, value], or one value for each turn of the policy. Their sum is the score, for whoever needs one number; where they
 * stand is kept among the extra info, so that it travels, is cached and logged as everything else that was said.
 */

/** Of a token of the response, from 0. */
export type TokenScore = readonly [position: number, value: number];

/** One for each turn of the policy, in their order. */
export interface TurnScores {
  readonly turns: readonly number[];
}

/** Names under which extra info has them. */
export const byToken = "score_by_token";
export const byTurn = "score_by_turn";

/** Undefined for what is no list of [position, value]; nobody's score is an empty one. */
export function tokenScoresIn(value: unknown): readonly TokenScore[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  return Array.from(value as unknown[]).every(isTokenScore)
    ? (value as readonly TokenScore[])
    : undefined;
}

function isTokenScore(value: unknown): value is TokenScore {
  if (!Array.isArray(value) || value.length !== 2) return false;
  const [position, score] = value as unknown[];
  return Number.isSafeInteger(position) && Number(position) >= 0 && Number.isFinite(score);
}

/** Undefined for what is no `{ turns }`. */
export function turnScoresIn(value: unknown): readonly number[] | undefined {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, "turns"))
    return undefined;
  const { turns } = value as { readonly turns: unknown };
  if (!Array.isArray(turns) || turns.length === 0) return undefined;
  return Array.from(turns as unknown[]).every(Number.isFinite) ? (turns as number[]) : undefined;
}

/** Of a RewardResult, or a valid outcome. */
export interface PlacedScore {
  readonly rewardScore: number;
  readonly rewardExtraInfo: Readonly<Record<string, unknown>>;
}

export interface ScoredRow {
  /** Valid tokens of the response. */
  readonly length: number;
  /** Columns of its row. */
  readonly width: number;
}

/**
 * Which columns of a row have which part of its score: all of it together is `rewardScore`. What a manager or a group's hook has added stands at the last token; so does the whole where
 * the function named no places. A response without a token has its score in the last column, as in verl (index -1).
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
  const rest = rewardScore - sumOf(said.map(([, value]) => value));
  return rest === 0 ? said : [...said, [last, rest]];
}

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
