/**
 * How well drafts were guessed where the rollout decodes speculatively (verl
 * `compute_spec_decode_metrics`).
 */

import { TrainerInputError } from "../errors.ts";
import { meanOf } from "../values/sums.ts";

/** Counts of the rollout's server, one entry for each row. All three columns, or none. */
export interface SpecDecodeBatch {
  /** Drafted tokens of each row. */
  readonly numDraftTokens?: readonly number[];
  /** Drafted tokens of each row that were accepted. */
  readonly numAcceptedTokens?: readonly number[];
  /** Steps of each row in which drafts were verified. */
  readonly numVerifySteps?: readonly number[];
  /** False for padding. Default: all count. */
  readonly keep?: readonly boolean[];
}

/**
 * The mean of rows, each as long as any other; what has no draft or step is 0. Nothing without
 * rows. Throws TrainerInputError where only some of the three are there.
 */
export function specDecodeMetrics(batch: SpecDecodeBatch): Record<string, number> {
  const { numDraftTokens: drafts, numAcceptedTokens: accepted, numVerifySteps: steps } = batch;
  if (drafts === undefined && accepted === undefined && steps === undefined) return {};
  if (drafts?.length !== accepted?.length || drafts?.length !== steps?.length) {
    throw new TrainerInputError(
      "specDecode",
      `numDraftTokens, numAcceptedTokens and numVerifySteps go together; they have ${drafts?.length ?? "no"}, ${accepted?.length ?? "no"} and ${steps?.length ?? "no"} rows`,
    );
  }
  const rows = (drafts ?? []).map((_, row) => row).filter((row) => batch.keep?.[row] ?? true);
  if (rows.length === 0) return {};
  const ratio = (row: number, counts: readonly number[] | undefined, base: number): number => {
    const count = counts?.[row] ?? 0;
    return count > 0 ? base + (accepted?.[row] ?? 0) / count : 0;
  };
  return {
    "rollout/spec_accept_rate": meanOf(Float64Array.from(rows, (row) => ratio(row, drafts, 0))),
    "rollout/spec_accept_length": meanOf(Float64Array.from(rows, (row) => ratio(row, steps, 1))),
  };
}
