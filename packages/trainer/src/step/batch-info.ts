/** Divisors of the losses of a mini-batch, those of the policy and that of the critic. */

import type { DataProto } from "@rayling/data-proto";
import type { GlobalBatchInfo } from "../algorithms/losses/aggregation.ts";
import { countOf } from "../algorithms/masked-sums.ts";
import { matrixOf } from "../algorithms/matrix.ts";
import { validMask } from "../algorithms/invalid-scores.ts";
import { tensorIn, validIn } from "../samples/columns.ts";

/**
 * Returns the divisors of a mini-batch's losses: its rows with a valid score, and their tokens. As
 * in verl (`batch_num_tokens`, `global_batch_size`) they are counted before a loss, or a rollout
 * correction ahead of it, rejects any, and a row without a token is a row: a rejected token has no
 * part in the sum, and does not raise the weight of the others.
 *
 * @param part with verl's `loss_mask`, which is the response_mask of the rollouts (verl
 *   `agent_loop_tq`): a correction changes response_mask alone, and verl's engines count the other
 */
export function batchInfoOf(part: DataProto, given?: GlobalBatchInfo): GlobalBatchInfo {
  const valid = validIn(part);
  const mask = validMask(matrixOf("lossMask", tensorIn(part, "loss_mask")), valid);
  return {
    ...given,
    batchNumTokens: countOf(mask),
    globalBatchSize: valid.filter(Boolean).length,
  };
}
