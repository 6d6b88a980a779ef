/**
 * Rejection of tokens and rows that are too far from the rollout to learn from (verl
 * `compute_rollout_rejection_mask`).
 *
 * Bounds of k1 are bounds of the ratio r and are compared as logarithms, with the sign of k1:
 * "0.5_2.0" passes tokens whose -log r is from log 0.5 to log 2.
 */

import { present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../../errors.ts";
import { divisorOf } from "../masked-sums.ts";
import type { MatrixView } from "../matrix.ts";
import { eachRatioRow, type RatioBatch, type RatioRow } from "./ratio-rows.ts";
import { newRejectionTest, type RejectionOption, rejectionOptions } from "./rejection-test.ts";
import { type Band, rejectionBandsOf } from "./thresholds.ts";

export interface Rejection {
  /** The given one where nothing is taken away. */
  readonly mask: MatrixView;
  /** Without a prefix. */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * @throws TrainerInputError for an unknown option, for bounds that do not fit, and where no token
 * counts
 */
export function rejectRollouts(
  batch: RatioBatch,
  rolloutRs: string,
  rolloutRsThreshold: unknown,
): Rejection {
  const collector = newRejectionCollector(batch.mask, rolloutRs, rolloutRsThreshold);
  eachRatioRow(batch, collector.add);
  return collector.rejection();
}

/** Looks at rows that are shown to it one after the other. */
export interface RejectionCollector {
  readonly add: (row: RatioRow) => void;
  readonly rejection: () => Rejection;
}

/** @throws TrainerInputError as rejectRollouts */
export function newRejectionCollector(
  mask: MatrixView,
  rolloutRs: string,
  rolloutRsThreshold: unknown,
): RejectionCollector {
  if (mask.rows === 0) return { add: () => undefined, rejection: () => ({ mask, metrics: {} }) };
  const wanted = optionsOf(rolloutRs);
  const bands = rejectionBandsOf(wanted, rolloutRsThreshold);
  checkTokens(mask);
  const tests = wanted.map((option, index) =>
    newRejectionTest(
      option,
      boundsOf(present(bands[index], `the bound of ${option}`)),
      mask.columns,
    ),
  );
  let kept = mask;
  const passed = new Uint8Array(mask.columns);
  const lost = { count: 0, tokens: 0, rows: 0 };
  return {
    add(row) {
      passed.fill(1, 0, row.length);
      let isLosing = false;
      for (const test of tests) isLosing = test.add(row, passed) || isLosing;
      lost.count += row.count;
      if (!isLosing) return;
      if (kept === mask) kept = { ...mask, data: mask.data.slice() };
      lost.tokens += dropRejected(kept, row, passed);
      lost.rows += 1;
    },
    rejection: () => ({
      mask: kept,
      metrics: {
        ...Object.assign({}, ...tests.map((test) => test.metrics())),
        rollout_rs_masked_fraction: lost.tokens / divisorOf(lost.count),
        rollout_rs_seq_masked_fraction: lost.rows / mask.rows,
      },
    }),
  };
}

/** @throws TrainerInputError */
export function checkTokens(mask: MatrixView): void {
  if (mask.data.some((weight) => weight !== 0)) return;
  throw new TrainerInputError("responseMask", "at least one token of responseMask must count");
}

function isOption(name: string): name is RejectionOption {
  return rejectionOptions.some((option) => option === name);
}

function optionsOf(rolloutRs: string): readonly RejectionOption[] {
  const wanted = [
    ...new Set(
      rolloutRs
        .split(",")
        .map((one) => one.trim())
        .filter((one) => one !== ""),
    ),
  ];
  const known = wanted.filter(isOption);
  const unknown = wanted.find((one) => !isOption(one));
  if (unknown === undefined && known.length > 0) return known;
  throw new TrainerInputError(
    "rolloutRs",
    `there is no rollout_rs "${unknown ?? rolloutRs}"; there are ${rejectionOptions.join(", ")}`,
  );
}

/** Returns bounds of k1 as logarithms, and other bounds as they are. */
function boundsOf({ lower, upper }: Band): Band {
  return lower === null ? { lower, upper } : { lower: Math.log(lower), upper: Math.log(upper) };
}

/** Takes the tokens of a row that have not passed out of the mask. Returns how many count. */
function dropRejected(
  { data }: MatrixView,
  { length, places, mask }: RatioRow,
  passed: Uint8Array,
): number {
  let counted = 0;
  for (let index = 0; index < length; index++) {
    if (passed[index] === 1) continue;
    counted += mask[index] ?? NaN;
    data[places[index] ?? 0] = 0;
  }
  return counted;
}
