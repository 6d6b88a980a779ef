/** Columns of samples that are trained on together, by verl's names. */

import { asTensor, DataProto, zeros } from "@rayling/data-proto";
import type { SampleOutcome } from "@rayling/reward-loop";
import { placesOf } from "@rayling/reward-manager-registry";
import { present } from "@rayling/reward-manager-registry/values";
import type { TokenRows } from "../policy/policy.ts";
import type { TrainingSample } from "./training-sample.ts";

/** Returns the extra info of the score functions by key; null where an outcome lacks it. */
export function extraInfoColumns(outcomes: readonly SampleOutcome[]): Record<string, unknown[]> {
  const keys = new Set(
    outcomes.flatMap((one) => (one.valid ? Object.keys(one.rewardExtraInfo) : [])),
  );
  const ofKey = (key: string): unknown[] =>
    outcomes.map((one) => (one.valid ? (one.rewardExtraInfo[key] ?? null) : null));
  return Object.fromEntries([...keys].map((key) => [key, ofKey(key)]));
}

/**
 * Columns by verl's names: prompts [rows, P] padded on the left, responses, response_mask [rows,
 * R], attention_mask [rows, P + R]; rollout_log_probs [rows, R] if all rows have them; and uid.
 */
export function columnsOf(samples: readonly TrainingSample[], padTokenId: number): DataProto {
  const rows = samples.length;
  const promptWidth = widest(samples, ({ rollout }) => rollout.promptIds);
  const width = widest(samples, ({ rollout }) => rollout.responseIds);
  const prompts = new Int32Array(rows * promptWidth).fill(padTokenId);
  const responses = new Int32Array(rows * width).fill(padTokenId);
  const responseMask = new Int32Array(rows * width);
  const attentionMask = new Int32Array(rows * (promptWidth + width));
  const rolloutLogProbs = new Float32Array(rows * width);
  for (const [row, { rollout }] of samples.entries()) {
    const { promptIds, responseIds } = rollout;
    prompts.set(promptIds, (row + 1) * promptWidth - promptIds.length);
    responses.set(responseIds, row * width);
    responseMask.fill(1, row * width, row * width + responseIds.length);
    const promptEnd = row * (promptWidth + width) + promptWidth;
    attentionMask.fill(1, promptEnd - promptIds.length, promptEnd + responseIds.length);
    if (rollout.rolloutLogProbs !== undefined) {
      rolloutLogProbs.set(rollout.rolloutLogProbs, row * width);
    }
  }
  const hasLogProbs = samples.every(({ rollout }) => rollout.rolloutLogProbs !== undefined);
  return DataProto.fromDict({
    tensors: {
      prompts: asTensor(prompts, [rows, promptWidth]),
      responses: asTensor(responses, [rows, width]),
      response_mask: asTensor(responseMask, [rows, width]),
      attention_mask: asTensor(attentionMask, [rows, promptWidth + width]),
      ...(hasLogProbs ? { rollout_log_probs: asTensor(rolloutLogProbs, [rows, width]) } : {}),
    },
    nonTensors: { uid: samples.map(({ uid }) => uid) },
  });
}

/** At least one: a tensor of rows needs columns. */
function widest(
  samples: readonly TrainingSample[],
  ids: (sample: TrainingSample) => Int32Array,
): number {
  return samples.reduce((most, sample) => Math.max(most, ids(sample).length), 1);
}

/** Returns the columns that a policy or a critic reads. */
export function tokenRowsOf(data: DataProto, temperature: number): TokenRows {
  return {
    prompts: tensorIn(data, "prompts"),
    responses: tensorIn(data, "responses"),
    attentionMask: tensorIn(data, "attention_mask"),
    temperature,
  };
}

export function tensorIn(data: DataProto, name: string): NonNullable<DataProto["batch"]>[string] {
  const tensor = data.batch?.[name];
  if (tensor === undefined) throw new TypeError(`the batch has no column ${name}`);
  return tensor;
}

/** Rows without a valid score are left out of every mean that a loss takes. */
export function validIn(data: DataProto): readonly boolean[] {
  return Array.from(present(data.nonTensorBatch["valid"], "the column valid"), Boolean);
}

/**
 * token_level_scores [rows, R] with each valid score at its row's last token, or where the function
 * has put its parts, and `valid` by row.
 *
 * A response without a token has its score in the last column, as in verl (index -1): nothing is
 * learned from it, and its group is compared with it.
 */
export function scoreColumnsOf(
  samples: readonly TrainingSample[],
  outcomes: readonly SampleOutcome[],
  width: number,
): { readonly scores: NonNullable<DataProto["batch"]>[string]; readonly valid: boolean[] } {
  const scores = zeros([samples.length, width], "float32");
  const valid = samples.map(({ rollout }, row) => {
    const outcome = outcomes[row];
    const length = rollout.responseIds.length;
    if (outcome?.valid !== true) return false;
    for (const [column, value] of placesOf(outcome, { length, width })) {
      scores.data[row * width + column] = (scores.data[row * width + column] ?? NaN) + value;
    }
    return true;
  });
  return { scores, valid };
}
