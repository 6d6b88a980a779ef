/** Masked sums, logits, padding, learning rates: verl's own numbers (test/golden/torch-functional.json), bad input. */
import { type Tensor, tensor } from "@rayling/data-proto";
import {
  entropyFromLogits,
  fitRows,
  type FitOptions,
  learningRateSchedule,
  type LearningRateSettings,
  logProbsFromLogits,
  packingOf,
  padRows,
  responseMaskByEos,
  sumPiSquaredFromLogits,
  TrainerInputError,
  unpaddedRows,
  warmupSteps,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { goldenFile } from "../../../test/fixtures/golden.ts";
import {
  maskedMean,
  maskedRowMeans,
  maskedRowSums,
  maskedSum,
  maskedVariance,
  maskedWhiten,
} from "../src/algorithms/masked-sums.ts";
import { clamp, filled, type Matrix, matrixOf, tensorOf } from "../src/algorithms/matrix.ts";
import {
  type Adapter,
  camelCased,
  checkGolden,
  type GoldenCase,
  nestedOf,
  tensorAt,
} from "./golden.ts";

const matrixAt = (golden: GoldenCase, name: string): Matrix =>
  matrixOf(name, tensorAt(golden, name));
const integers = (golden: GoldenCase, name: string): Tensor =>
  tensor(nestedOf(golden.inputs[name]), "int32");

function transposed({ rows, columns, data }: Matrix): Matrix {
  return filled(
    { rows: columns, columns: rows },
    (row, column) => data[column * columns + row] as number,
  );
}

type OfAll = (values: Matrix, mask: Matrix) => number;
type OfRows = (values: Matrix, mask: Matrix) => Float64Array;

/** Axis -1 is each row; axis 0, which nothing here needs, each row of what is turned round. */
const overAxis =
  (ofAll: OfAll, ofRows: OfRows): Adapter =>
  (golden) => {
    const values = matrixAt(golden, "values");
    const mask = matrixAt(golden, "mask");
    switch (golden.params["axis"] ?? null) {
      case -1:
        return { out: [...ofRows(values, mask)] };
      case 0:
        return { out: [...ofRows(transposed(values), transposed(mask))] };
      default:
        return { out: ofAll(values, mask) };
    }
  };

const entropy: Adapter = (golden) => {
  const { values, gradLogits } = entropyFromLogits(tensorAt(golden, "logits"));
  return { entropy: values, grad_logits_of_sum: gradLogits };
};

checkGolden(
  goldenFile("torch-functional.json"),
  {
    masked_sum: overAxis(maskedSum, maskedRowSums),
    masked_mean: overAxis(maskedMean, maskedRowMeans),

    masked_var: (golden) => ({
      out: maskedVariance(
        matrixAt(golden, "values"),
        matrixAt(golden, "mask"),
        camelCased(golden.params),
      ),
    }),

    masked_whiten: (golden) => ({
      out: tensorOf(
        maskedWhiten(
          matrixAt(golden, "values"),
          matrixAt(golden, "mask"),
          camelCased(golden.params),
        ),
      ),
    }),

    clip_by_value(golden) {
      const [values, low, high] = ["x", "tensor_min", "tensor_max"].map((name) =>
        matrixAt(golden, name),
      );
      const at = (matrix: Matrix | undefined, place: number): number =>
        matrix?.data[place] as number;
      const out = filled(values as Matrix, (_row, _column, place) =>
        // Where the bounds are the wrong way round, verl's lower one is the stronger.
        Math.max(clamp(at(values, place), at(low, place), at(high, place)), at(low, place)),
      );
      return { out: tensorOf(out) };
    },

    entropy_from_logits: entropy,
    /** In pieces, to spare memory: here it is row by row in any case. */
    entropy_from_logits_with_chunking: (golden) => ({ entropy: entropy(golden)["entropy"] }),

    /** Its variants differ in how they are worked out. */
    logprobs_from_logits(golden) {
      const { values, gradLogits } = logProbsFromLogits(
        tensorAt(golden, "logits"),
        integers(golden, "labels"),
      );
      return { logprobs: values, grad_logits_of_sum: gradLogits };
    },

    log_probs_from_logits_response(golden) {
      const length = golden.params["response_length"] as number;
      const logits = (golden.inputs["logits"] as number[][][]).map((row) =>
        row.slice(-length - 1, -1),
      );
      const labels = (golden.inputs["input_ids"] as number[][]).map((row) => row.slice(-length));
      const { values } = logProbsFromLogits(tensor(logits, "float32"), tensor(labels, "int32"));
      return { response_log_prob: values };
    },

    calculate_sum_pi_squared_from_logits: (golden) => ({
      sum_pi_squared: sumPiSquaredFromLogits(tensorAt(golden, "logits")).values,
    }),

    get_response_mask: (golden) => ({
      mask: responseMaskByEos(
        integers(golden, "response_id"),
        golden.params["eos_token"] as number | number[],
      ),
    }),

    pad_2d_list_to_length: ({ inputs, params }) => ({
      out: padRows(inputs["rows"] as number[][], {
        padTokenId: params["pad_token_id"] as number,
        maxLength: (params["max_length"] ?? 0) as number,
      }),
    }),

    pad_sequence_to_length: ({ inputs, params }) => ({
      out: padRows(inputs["tensors"] as number[][], {
        padTokenId: params["pad_token_id"] as number,
        maxLength: params["max_seq_len"] as number,
        leftPad: params["left_pad"] as boolean,
      }),
    }),

    postprocess_data({ inputs, params }) {
      const { inputIds, attentionMask } = fitRows(
        inputs["input_ids"] as number[][],
        camelCased(params) as unknown as FitOptions,
      );
      return { input_ids: inputIds, attention_mask: attentionMask };
    },

    remove_pad_token: (golden) => ({
      rows: unpaddedRows(integers(golden, "input_ids"), integers(golden, "attention_mask")),
    }),

    get_unpad_data(golden) {
      const { indices, cuSeqlens, maxSeqlen } = packingOf(integers(golden, "attention_mask"));
      return { indices: [...indices], cu_seqlens: [...cuSeqlens], max_seqlen: maxSeqlen };
    },

    lr_schedule({ params }) {
      const { kind, steps, ...settings } = params;
      const schedule = learningRateSchedule({
        ...camelCased(settings),
        lrSchedulerType: kind as NonNullable<LearningRateSettings["lrSchedulerType"]>,
      });
      return {
        factor_at_step: Array.from({ length: steps as number }, (_, step) => schedule(step)),
      };
    },
  },
  {},
  // The log of a sum less a mean of logits: float32 has lost what is left of it.
  { entropy_from_logits_with_chunking: 1e-5 },
);

describe("learning rates", () => {
  test("go down in a line, and stay where they end", () => {
    const schedule = learningRateSchedule({
      lrSchedulerType: "linear",
      numWarmupSteps: 2,
      numTrainingSteps: 6,
      minLrRatio: 0.5,
    });
    expect([0, 1, 2, 4, 6, 9].map(schedule)).toEqual([0, 0.5, 1, 0.75, 0.5, 0.5]);
  });

  test("warm up for a number of steps, or a share of them", () => {
    expect(warmupSteps(105, { lrWarmupStepsRatio: 0.1 })).toBe(10);
    expect(warmupSteps(105, { lrWarmupSteps: 3, lrWarmupStepsRatio: 0.1 })).toBe(3);
    expect(warmupSteps(105)).toBe(0);
  });

  test("need steps to go down in, and a type that there is", () => {
    expect(() => learningRateSchedule({ lrSchedulerType: "cosine" })).toThrow("numTrainingSteps");
    expect(() => learningRateSchedule({ lrSchedulerType: "step" as never })).toThrow(
      'there is no lr_scheduler_type "step"; there are constant, linear, cosine, wsd',
    );
  });
});

test("labels outside of the vocabulary, and logits of none, are refused", () => {
  const logits = tensor([[1, 2]], "float32");
  expect(() => logProbsFromLogits(logits, tensor([2], "int32"))).toThrow("label 2");
  expect(() => logProbsFromLogits(logits, tensor([0, 1], "int32"))).toThrow(TrainerInputError);
  expect(() => entropyFromLogits(tensor([[]], "float32"))).toThrow("[..., vocabulary]");
});
