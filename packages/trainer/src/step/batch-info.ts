/** Divisors of the losses of a mini-batch, those of the policy and that of the critic. */

import type { DataProto } from "@rayling/data-proto";
import type { GlobalBatchInfo } from "../algorithms/losses/aggregation.ts";
import { countOf } from "../algorithms/masked-sums.ts";
import { matrixOf } from "../algorithms/matrix.ts";
import { validMask } from "../algorithms/invalid-scores.ts";
import { tensorIn, validIn } from "../samples/columns.ts";

/**
 * Returns the divisors of a mini-batch's losses: its rows with a valid score, and their tokens. As
 * in verl (`batch_num_tokens`, `global_batch_size`) they are counted before a loss rejects any, and
 * a row without a token is a row: a rejected token has no part in the sum, and does not raise the
 * weight of the others against divergence and entropy, which do not know of it.
 */
export function batchInfoOf(part: DataProto, given?: GlobalBatchInfo): GlobalBatchInfo {
  const valid = validIn(part);
  const mask = validMask(matrixOf("responseMask", tensorIn(part, "response_mask")), valid);
  return {
    ...given,
    batchNumTokens: countOf(mask),
    globalBatchSize: valid.filter(Boolean).length,
  };
}
