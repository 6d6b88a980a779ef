/** Input and output of the advantage estimators. */

import { asTensor, type Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import { type GroupId, groupsOf } from "../groups.ts";
import { type Whitening, whiteningOf } from "../masked-sums.ts";
import { type MatrixView, type RowSource, unboxed, viewOf } from "../matrix.ts";
import { runsOf, type TokenRuns } from "../runs.ts";
import { validMask } from "../invalid-scores.ts";

/** Columns of a batch by verl's names in camelCase. All matrices are [rows, tokens]. */
export interface AdvantageBatch {
  /** Rewards of tokens; of an outcome, at its last one. */
  readonly tokenLevelRewards: Tensor;
  /** 1 for tokens of the response, 0 for padding and observations. */
  readonly responseMask: Tensor;
  /** verl `index`, `uid`: rows with the same one answer the same prompt. */
  readonly groups?: readonly GroupId[];
  /**
   * False for a row whose score is invalid: all statistics leave it out, and its advantages are 0.
   * Default: all rows are valid.
   */
  readonly valid?: readonly boolean[];
  /** Values of the critic; needed by gae. */
  readonly values?: Tensor;
  /** Rewards of the greedy answers, one for each row; needed by remax. */
  readonly rewardBaselines?: Tensor;
  /** Needed by the optimal token baselines. */
  readonly oldLogProbs?: Tensor;
  /** Sums of squared probabilities over the vocabulary; needed by the optimal token baselines. */
  readonly sumPiSquared?: Tensor;
  /**
   * Importance weights of the rollout correction, used by the optimal token baselines. Default:
   * none.
   */
  readonly rolloutIsWeights?: Tensor;
  /** Scores of each row by component; used by gdpo. */
  readonly rewardComponents?: Readonly<Record<string, readonly number[]>>;
}

/** verl's `algorithm.*`. */
export interface AdvantageSettings {
  /** Default 1. */
  readonly gamma?: number;
  /** Default 1. */
  readonly lam?: number;
  /** `norm_adv_by_std_in_grpo`. Default true. */
  readonly normAdvByStdInGrpo?: boolean;
  /** Beside the standard deviation of a group. Default 1e-6. */
  readonly epsilon?: number;
  /** Divisor of gpg. Default 1. */
  readonly fNorm?: number;
  /** The rewards that gdpo combines, by their keys in the extra info. */
  readonly gdpoRewardKeys?: readonly string[];
  /** Weights of `gdpoRewardKeys`, one for each. Default: 1 each. */
  readonly gdpoRewardWeights?: readonly number[];
  /**
   * Whether the optimal token baselines use no baseline where only the longest row of a group goes
   * on. Default true.
   */
  readonly handleZeroTail?: boolean;
}

/** Result of an advantage estimator. Both tensors are [rows, tokens]. */
export interface Advantages {
  /** Advantage of each token. */
  readonly advantages: Tensor<"float32">;
  /** Return of each token, the target of a critic. */
  readonly returns: Tensor<"float32">;
}

/** Throws TrainerInputError for inputs that are missing, of another shape, or too few. */
export type AdvantageEstimator = (
  batch: AdvantageBatch,
  settings?: AdvantageSettings,
) => Advantages;

/** The batch as matrices. */
export interface Rows {
  readonly rewards: MatrixView;
  /** Response mask, 0 in invalid rows. */
  readonly mask: MatrixView;
  /** The tokens that count. */
  readonly runs: TokenRuns;
  readonly isValid: (row: number) => boolean;
}

export function rowsOf({ tokenLevelRewards, responseMask, valid }: AdvantageBatch): Rows {
  const rewards = viewOf("tokenLevelRewards", tokenLevelRewards);
  const given = viewOf("responseMask", responseMask, rewards);
  const isValid = (row: number): boolean => valid?.[row] ?? true;
  const mask = validMask(given, valid);
  return { rewards, mask, runs: runsOf(mask), isValid };
}

export interface GroupedRows extends Rows {
  /** Valid rows by the prompt that they answer. */
  readonly groups: ReadonlyMap<GroupId, readonly number[]>;
}

/**
 * For estimators that compare the rows of a group: one that invalid rows have left alone has
 * nothing to be compared with, and is left out as they are.
 *
 * @throws TrainerInputError as groupIdsOf
 */
export function groupedRowsOf(batch: AdvantageBatch): GroupedRows {
  const rows = rowsOf(batch);
  const ids = groupIdsOf(batch, rows);
  const groups = groupsOf(ids, rows.isValid);
  if (batch.valid?.includes(false) !== true) return { ...rows, groups };
  const whole = groupsOf(ids, () => true);
  for (const [id, group] of groups) {
    if (group.length === 1 && whole.get(id)?.length !== 1) groups.delete(id);
  }
  const used = new Set([...groups.values()].flat());
  const isValid = (row: number): boolean => used.has(row);
  const mask = validMask(rows.mask, [...ids.keys()].map(isValid));
  const runs = mask === rows.mask ? rows.runs : runsOf(mask);
  return { ...rows, mask, runs, isValid, groups };
}

/** @throws TrainerInputError when there are none, or not one for each row */
export function groupIdsOf({ groups }: AdvantageBatch, { rewards }: Rows): readonly GroupId[] {
  if (groups?.length === rewards.rows) return groups;
  const problem = groups === undefined ? "are missing" : `are ${groups.length}`;
  throw new TrainerInputError("groups", `groups of ${rewards.rows} rows ${problem}`);
}

/** @throws TrainerInputError when it is missing */
export function neededView(
  name: keyof AdvantageBatch,
  tensor: Tensor | undefined,
  { rewards }: Rows,
): MatrixView {
  if (tensor !== undefined) return viewOf(name, tensor, rewards);
  throw new TrainerInputError(name, `${name} is missing, which this estimator needs`);
}

/** Puts one value for each row at each of its tokens that count. */
export function broadcastInto(data: Float32Array, values: Float64Array, runs: TokenRuns): void {
  const { firsts, starts, ends, weights } = runs;
  for (const [row, value] of values.entries()) {
    const last = firsts[row + 1] ?? NaN;
    for (let run = firsts[row] ?? NaN; run < last; run++) {
      data.fill(value * (weights[run] ?? NaN), starts[run], ends[run]);
    }
  }
}

/** Returns room for one number of each token, all 0. */
export function newColumn({ mask }: Rows): Float32Array<ArrayBuffer> {
  return new Float32Array(mask.data.length);
}

/**
 * Whether there are tokens enough to whiten by. verl refuses a batch with fewer than two, and so
 * ends a training whose policy says nothing for once, or whose correction rejects all it said.
 */
export function hasSpread({ runs }: Pick<Rows, "runs">): boolean {
  return runs.count >= 2;
}

/** @param returns default: a copy of the advantages */
export function advantagesOf(
  { mask: { rows, columns } }: Rows,
  advantages: Float32Array<ArrayBuffer>,
  returns: Float32Array<ArrayBuffer> = new Float32Array(advantages),
): Advantages {
  const shape = [rows, columns];
  return { advantages: asTensor(advantages, shape), returns: asTensor(returns, shape) };
}

/**
 * Whitened over the tokens that count, and 0 at others. Fewer than two of them have no spread to
 * scale by: all 0.
 */
export function whitened(values: RowSource, rows: Rows): Float32Array<ArrayBuffer> {
  const { mask, runs } = rows;
  const column = newColumn(rows);
  if (!hasSpread(rows)) return column;
  const whitening = whiteningOf(values, runs);
  for (let row = 0; row < mask.rows; row++) whitenRow(column, { row, values, runs }, whitening);
  return column;
}

function whitenRow(
  column: Float32Array,
  {
    row,
    values,
    runs: { columns, firsts, starts, ends, weights },
  }: { readonly row: number; readonly values: RowSource; readonly runs: TokenRuns },
  whitening: Whitening,
): void {
  const { data } = values;
  const shift = values.startOf(row) - row * columns;
  const last = firsts[row + 1] ?? NaN;
  const mean = unboxed(whitening.mean);
  const scale = unboxed(whitening.scale);
  for (let run = firsts[row] ?? NaN; run < last; run++) {
    const weight = unboxed(weights[run] ?? NaN);
    const end = ends[run] ?? NaN;
    for (let at = starts[run] ?? NaN; at < end; at++) {
      column[at] = ((data[at + shift] ?? NaN) - mean) * scale * weight;
    }
  }
}
