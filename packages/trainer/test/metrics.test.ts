/** Metrics: verl's own numbers (test/golden/metrics.json, and the traces data-metrics and validation-metrics), invalid rows, bad input. */
import { type Tensor, tensor } from "@rayling/data-proto";
import {
  aggregate,
  aggregateDp,
  type Aggregation,
  dataMetrics,
  type DataMetricsBatch,
  lengthsOf,
  type Metric,
  processValidationMetrics,
  reduceMetrics,
  rolloutProbsMetrics,
  specDecodeMetrics,
  throughputMetrics,
  type Timings,
  timingMetrics,
  TrainerInputError,
  validationMetrics,
  type ValidationResults,
  varianceProxyMetrics,
  type VarianceProxyBatch,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { goldenFile } from "../../../test/fixtures/golden.ts";
import { responseMaskOf } from "../src/algorithms/tokens.ts";
import {
  drawPlaces,
  type Draws,
  type Estimate,
  estimateOf,
  extremesOf,
  majoritiesOf,
  valuesAt,
} from "../src/metrics/bootstrap.ts";
import { createMt19937 } from "../src/metrics/mt19937.ts";
import { camelCased, checkGolden, expectClose, type GoldenCase, nestedOf } from "./golden.ts";

type Columns = Readonly<Record<string, unknown>>;

function tensorsOf(batch: Columns): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(camelCased(batch)).map(([name, value]) => [
      name,
      tensor(nestedOf(value), "float32"),
    ]),
  );
}

const widthOf = (rows: unknown): number => (rows as readonly (readonly number[])[])[0]?.length ?? 0;

function dataBatchOf(batch: Columns, others: Columns, useCritic: boolean): DataMetricsBatch {
  const { values, ...rest } = tensorsOf(batch);
  return {
    ...rest,
    ...(useCritic ? { values } : {}),
    responseWidth: widthOf(batch["responses"]),
    ...(others["__num_turns__"] === undefined ? {} : { numTurns: others["__num_turns__"] }),
    ...(others["tool_call_counts"] === undefined
      ? {}
      : { toolCallCounts: others["tool_call_counts"] }),
  } as unknown as DataMetricsBatch;
}

function timingsOf(batch: Columns, timings: Timings): Record<string, number> {
  const { prompt, response } = lengthsOf({
    attentionMask: tensor(nestedOf(batch["attention_mask"]), "float32"),
    responseWidth: widthOf(batch["responses"]),
  });
  const sum = (lengths: Float64Array): number => lengths.reduce((total, one) => total + one, 0);
  return timingMetrics(timings, { promptTokens: sum(prompt), responseTokens: sum(response) });
}

interface Vote {
  readonly val: number;
  readonly pred: string;
}

/** Answers as numbers, and what a draw of them comes to by verl's name of the function. */
function estimate(draws: Draws, data: readonly (number | Vote)[], name: string): Estimate {
  const values = Float64Array.from(data, (one) => (typeof one === "number" ? one : one.val));
  const texts = data.map((one) => (typeof one === "number" ? "" : one.pred));
  const answers = Int32Array.from(texts, (text) => texts.indexOf(text));
  const room = new Float64Array(draws.count);
  const { best, worst } = extremesOf(draws, values, { best: room, worst: new Float64Array(room) });
  const functions: Readonly<Record<string, () => Float64Array>> = {
    max: () => best,
    min: () => worst,
    mean: () => room.map((_, draw) => meanOfDraw(draws, draw, values)),
    maj: () => valuesAt(majoritiesOf(draws, answers), values, room),
  };
  return estimateOf((functions[name] as () => Float64Array)());
}

function meanOfDraw({ places, size }: Draws, draw: number, values: Float64Array): number {
  const drawn = places.subarray(draw * size, (draw + 1) * size);
  return drawn.reduce((sum, place) => sum + (values[place] as number), 0) / size;
}

const resultsOf = ({ inputs }: Pick<GoldenCase, "inputs">): ValidationResults => ({
  dataSources: inputs["data_sources"] as string[],
  sampleUids: inputs["sample_uids"] as string[],
  infos: inputs["infos_dict"] as Record<string, unknown[]>,
});

checkGolden(goldenFile("metrics.json"), {
  compute_data_metrics({ inputs, params }) {
    const batch = inputs["batch"] as Columns;
    const others = (inputs["non_tensor"] ?? {}) as Columns;
    return { metrics: dataMetrics(dataBatchOf(batch, others, params["use_critic"] !== false)) };
  },

  compute_timing_metrics: ({ inputs }) => ({
    metrics: timingsOf(inputs["batch"] as Columns, inputs["timing_raw"] as Timings),
  }),

  compute_throughout_metrics: ({ inputs, params }) => ({
    metrics: throughputMetrics(
      inputs["global_token_num"] as number[],
      inputs["timing_raw"] as Timings,
      params["n_gpus"] as number,
    ),
  }),

  compute_variance_proxy_metrics: ({ inputs, params }) => ({
    metrics: varianceProxyMetrics(
      tensorsOf(inputs["batch"] as Columns) as unknown as VarianceProxyBatch,
      (params["gradient_norm"] ?? undefined) as number | undefined,
    ),
  }),

  bootstrap_metric({ inputs, params }) {
    const data = inputs["data"] as (number | Vote)[];
    const { subset_size: size, seed, n_bootstrap: count } = params as Record<string, number>;
    const draws = drawPlaces(data.length, size as number, seed, count);
    const head = inputs["bootstrap_indices_head"] as number[][];
    expect([...draws.places.subarray(0, head.flat().length)]).toEqual(head.flat());
    const estimates = (params["fns"] as string[]).map((name) => {
      const { mean, std } = estimate(draws, data, name);
      return [name, [mean, std]];
    });
    return { mean_std: Object.fromEntries(estimates) };
  },

  calc_maj_val({ inputs }) {
    const data = inputs["data"] as Vote[];
    const whole = Int32Array.from(data, (_, place) => place);
    return { value: estimate({ places: whole, count: 1, size: data.length }, data, "maj").mean };
  },

  process_validation_metrics: (golden) => ({
    metrics: processValidationMetrics(resultsOf(golden), {
      seed: (golden.params["seed"] ?? 42) as number,
    }),
  }),

  reduce_metrics: ({ inputs }) => ({
    metrics: reduceMetrics(inputs["metrics"] as Record<string, number[]>),
  }),

  Metric({ inputs, params }) {
    const metrics = (inputs["lists"] as number[][]).map((values): Metric => ({
      aggregation: params["aggregation"] as Aggregation,
      values,
    }));
    return { aggregate_each: metrics.map(aggregate), aggregate_dp: aggregateDp(metrics) };
  },

  compute_spec_decode_metrics({ inputs }) {
    const names = {
      drafts: "numDraftTokens",
      accepts: "numAcceptedTokens",
      verifies: "numVerifySteps",
      keep: "keep",
    };
    const given = Object.entries(names).filter(([theirs]) => inputs[theirs] !== null);
    return {
      metrics: specDecodeMetrics(
        Object.fromEntries(given.map(([theirs, ours]) => [ours, inputs[theirs]])),
      ),
    };
  },

  compute_response_mask: ({ inputs }) => ({
    response_mask: responseMaskOf(
      tensor(nestedOf(inputs["attention_mask"]), "int32"),
      widthOf(inputs["responses"]),
    ),
  }),
});

interface DataTrace {
  readonly cases: readonly {
    readonly name: string;
    readonly use_critic: boolean;
    readonly inputs: Columns;
    readonly num_turns: readonly number[] | null;
    readonly metrics: Columns;
    readonly timing: Columns;
    readonly throughput: Columns;
  }[];
  readonly variance_proxy: {
    readonly inputs: Columns;
    readonly cases: readonly {
      readonly name: string;
      readonly grad: number | null;
      readonly metrics: Columns;
    }[];
  };
}

describe("data-metrics.json", () => {
  const trace = goldenFile("data-metrics.json") as DataTrace;
  const golden = (name: string, expected: Columns): GoldenCase => ({
    name,
    fn: "",
    inputs: {},
    params: {},
    expected,
  });

  test.each(trace.cases)("$name, critic: $use_critic", (one) => {
    const others = one.num_turns === null ? {} : { __num_turns__: one.num_turns };
    const metrics = dataMetrics(dataBatchOf(one.inputs, others, one.use_critic));
    expectClose(golden(one.name, one.metrics), metrics);
    const seconds = Object.entries(one.timing)
      .filter(([name]) => name.startsWith("timing_s/"))
      .map(([name, value]) => [name.slice("timing_s/".length), value]);
    const timings = Object.fromEntries(seconds) as Timings;
    expectClose(golden(one.name, one.timing), timingsOf(one.inputs, timings));
    const lengths = tensor(nestedOf(one.inputs["attention_mask"]), "float32").data;
    const throughput = throughputMetrics(Array.from(lengths), timings, 8);
    expectClose(golden(one.name, one.throughput), throughput);
  });

  test.each(trace.variance_proxy.cases)("variance proxies, $name", ({ name, grad, metrics }) => {
    const { rollout_is_weights: weights, ...plain } = trace.variance_proxy.inputs;
    const batch = name.startsWith("IS") ? { ...plain, rollout_is_weights: weights } : plain;
    const got = varianceProxyMetrics(
      tensorsOf(batch) as unknown as VarianceProxyBatch,
      grad ?? undefined,
    );
    expectClose(golden(name, metrics), got);
  });
});

describe("how far the policy is from its rollouts", () => {
  const matrix = (rows: readonly (readonly number[])[]): Tensor => tensor(rows, "float32");
  const rolloutLogProbs = matrix([
    [-0.1, -0.7, -1.5],
    [-2, -0.3, -0.05],
  ]);
  const oldLogProbs = matrix([
    [-0.2, -0.5, -1.6],
    [-2.4, -0.3, -0.02],
  ]);
  const told = (mask: readonly (readonly number[])[], sampled = rolloutLogProbs): object =>
    rolloutProbsMetrics({ rolloutLogProbs: sampled, oldLogProbs, responseMask: matrix(mask) });

  test("is numpy's max, mean, std by n - 1 and corrcoef of the probabilities", () => {
    const whole = told([
      [1, 1, 1],
      [1, 1, 1],
    ]);
    expect(whole).toEqual({
      "training/rollout_probs_diff_valid": 1,
      "training/rollout_probs_diff_max": expect.closeTo(0.1099453559212239, 6),
      "training/rollout_probs_diff_mean": expect.closeTo(0.048478706964369574, 6),
      "training/rollout_probs_diff_std": expect.closeTo(0.04167018102270478, 6),
      "training/rollout_actor_probs_pearson_corr": expect.closeTo(0.9816522396462828, 6),
    });
  });

  test("is of tokens that count, whatever stands elsewhere", () => {
    const mask = [
      [1, 1, 0],
      [1, 0, 0],
    ];
    const noisy = matrix([
      [-0.1, -0.7, Number.NaN],
      [-2, 5, Infinity],
    ]);
    expect(told(mask, noisy)).toEqual(told(mask));
    expect(told(mask)).toMatchObject({
      "training/rollout_probs_diff_max": expect.closeTo(Math.exp(-0.5) - Math.exp(-0.7), 6),
    });
  });

  test("is not told of no token, and how they go together not of one", () => {
    expect(
      told([
        [0, 0, 0],
        [0, 0, 0],
      ]),
    ).toEqual({ "training/rollout_probs_diff_valid": 0 });
    expect(
      told([
        [0, 0, 0],
        [0, 1, 0],
      ]),
    ).toEqual({
      "training/rollout_probs_diff_valid": 1,
      "training/rollout_probs_diff_max": 0,
      "training/rollout_probs_diff_mean": 0,
      "training/rollout_probs_diff_std": 0,
      "training/rollout_actor_probs_pearson_corr": Number.NaN,
    });
  });

  test("cannot be of matrices of another shape", () => {
    expect(() => told([[1, 1]])).toThrow("rolloutLogProbs must have shape [1, 2]; it has [2, 3]");
  });
});

interface ValidationTrace {
  readonly rng: {
    readonly first_raw_uint32: readonly number[];
    readonly choice: Readonly<Record<string, readonly (readonly number[])[]>>;
  };
  readonly cases: readonly {
    readonly name: string;
    readonly data_sources: readonly string[];
    readonly sample_uids: readonly string[];
    readonly infos: Readonly<Record<string, readonly unknown[]>>;
    readonly result?: Columns;
    readonly error?: string;
  }[];
}

describe("validation-metrics.json", () => {
  const trace = goldenFile("validation-metrics.json") as ValidationTrace;

  test("numpy's random numbers of seed 42", () => {
    const generator = createMt19937(42);
    expect(trace.rng.first_raw_uint32.map(() => generator.next())).toEqual(
      trace.rng.first_raw_uint32,
    );
    for (const [rows, places] of Object.entries(trace.rng.choice)) {
      const size = places[0]?.length ?? 0;
      const drawn = drawPlaces(Number(rows), size, 42, places.length);
      expect([...drawn.places]).toEqual(places.flat());
    }
  });

  test("a value that is null, at which verl throws, is left out", () => {
    const cases = trace.cases.filter(({ name }) => name === "None value");
    const results = cases.map(({ data_sources, sample_uids, infos }) =>
      processValidationMetrics({ dataSources: data_sources, sampleUids: sample_uids, infos }),
    );
    expect(cases.map(({ error }) => error)).toEqual(["TypeError"]);
    expect(results).toEqual([{ a: { acc: { "mean@1": 1 } } }]);
  });

  test.each(trace.cases.filter(({ name }) => name !== "None value"))(
    "$name",
    ({ name, data_sources, sample_uids, infos, result, error }) => {
      const run = (): object =>
        processValidationMetrics({ dataSources: data_sources, sampleUids: sample_uids, infos });
      if (error !== undefined) expect(run).toThrow(TrainerInputError);
      else
        expectClose(
          { name, fn: "", inputs: {}, params: {}, expected: result ?? {} },
          run() as Columns,
        );
    },
  );
});

describe("validation metrics", () => {
  const results: ValidationResults = {
    dataSources: ["a", "a", "a", "a", "b"],
    sampleUids: ["1", "1", "2", "2", "3"],
    infos: { acc: [true, false, true, true, false], reward: [2, 1, 0, 1, -1] },
    numTurns: [2, 2, 4, 2, 2],
  };

  test("are core where as many answers as there are tell of acc; turns are told of, too", () => {
    const metrics = validationMetrics(results);
    expect(metrics["val-core/a/acc/mean@2"]).toBe(0.75);
    expect(metrics["val-core/b/acc/mean@1"]).toBe(0);
    expect(metrics["val-aux/a/reward/mean@2"]).toBe(1);
    expect(metrics["val-aux/num_turns/mean"]).toBe(2.4);
    const core = Object.keys(metrics).filter((name) => name.startsWith("val-core/a"));
    expect(core.toSorted()).toEqual([
      "val-core/a/acc/best@2/mean",
      "val-core/a/acc/best@2/std",
      "val-core/a/acc/mean@2",
    ]);
    const { acc: _, ...rewarded } = results.infos;
    expect(validationMetrics({ ...results, infos: rewarded })).toHaveProperty(
      ["val-core/a/reward/mean@2"],
      1,
    );
  });

  const votesOn = (pred: readonly unknown[], reward: readonly (number | null)[]) => {
    const of = { dataSources: pred.map(() => "a"), sampleUids: pred.map(() => "1") };
    const { a } = processValidationMetrics({ ...of, infos: { reward, pred } });
    return a?.["reward"] as Readonly<Record<string, number>>;
  };
  const majorityNames = (votes: object): string[] =>
    Object.keys(votes).filter((name) => name.startsWith("maj"));

  test.each<[string, readonly unknown[], readonly unknown[]]>([
    ["1 and true", [1, true, 2], ["x", "x", "y"]],
    ["0 and false", [0, false, 1], ["x", "x", "y"]],
    [
      "objects with other orders of keys",
      [{ a: 1, b: [true] }, { b: [1], a: true }, 2],
      ["x", "x", "y"],
    ],
    [
      "no text and no number, though they are written alike",
      ["1", 1, "[1]", [1]],
      ["a", "b", "c", "d"],
    ],
  ])("a majority takes answers that are equal in Python for one: %s", (_, pred, alike) => {
    const reward = [1, 0.5, 0, 0.25].slice(0, pred.length);
    expect(votesOn(pred, reward)).toEqual(votesOn(alike, reward));
    expect(majorityNames(votesOn(pred, reward))).not.toEqual([]);
  });

  test("there is no majority where an answer that counts has no pred, as in verl 0.9.1", () => {
    expect(majorityNames(votesOn(["A", null, "A"], [1, 0, 1]))).toEqual([]);
    expect(majorityNames(votesOn(["A", undefined, "A"], [1, 0, 1]))).toEqual([]);
    // The second does not count.
    expect(majorityNames(votesOn(["A", null, "A"], [1, null, 1]))).not.toEqual([]);
  });

  test("leave out an answer whose score is invalid", () => {
    const valid = [true, false, true, true, true];
    const acc = [true, null, true, true, false];
    const metrics = validationMetrics({ ...results, infos: { acc }, valid });
    expect(metrics["val-core/a/acc/mean@2"]).toBe(1);
    expect(metrics["val-aux/a/acc/mean@1"]).toBe(1);
  });

  test("leave a question out of a variable that is mixed there, if somebody is told; else name both", () => {
    const mixed = { ...results, infos: { acc: [true, "no", true, true, false] } };
    expect(() => validationMetrics(mixed)).toThrow('"acc" of an answer to 1 is no');
    const told: string[][] = [];
    const metrics = validationMetrics(mixed, { onMixed: (...both) => void told.push(both) });
    expect(told).toEqual([["acc", "1"]]);
    expect(metrics["val-core/a/acc/mean@2"]).toBe(1);
  });

  test("are of those answers that tell the variable", () => {
    const acc = [true, null, true, true, false];
    const metrics = validationMetrics({
      ...results,
      infos: {
        ...results.infos,
        acc,
        rare: [null, null, null, 3, null],
        never: acc.map(() => null),
      },
    });
    const alone = validationMetrics({
      ...results,
      infos: { ...results.infos, acc },
      valid: acc.map((one) => one !== null),
    });
    const ofAcc = Object.entries(metrics).filter(([name]) => name.includes("/acc/"));
    expect(ofAcc.length).toBeGreaterThan(0);
    expect(ofAcc).toEqual(Object.entries(alone).filter(([name]) => name.includes("/acc/")));
    expect(Object.keys(metrics).filter((name) => /rare|never/.test(name))).toEqual([
      expect.stringMatching(/^val-aux\/.\/rare\/mean@1$/),
    ]);
    // Every answer has a reward.
    expect(metrics["val-aux/a/reward/mean@2"]).toBeDefined();
  });

  test("refuse what is neither a number nor missing", () => {
    const acc = [true, "yes", true, true, false];
    expect(() => validationMetrics({ ...results, infos: { acc } })).toThrow(
      '"acc" of an answer to 1 is yes',
    );
  });

  test("need columns of one length", () => {
    expect(() => validationMetrics({ ...results, infos: { acc: [1] } })).toThrow(
      "acc must have one entry for each of 5 answers; it has 1",
    );
  });
});

describe("data metrics", () => {
  const batch: DataMetricsBatch = {
    tokenLevelScores: tensor([[1], [5], [3]], "float32"),
    tokenLevelRewards: tensor([[1], [Number.NaN], [3]], "float32"),
    advantages: tensor([[1], [0], [-1]], "float32"),
    returns: tensor([[1], [0], [-1]], "float32"),
    responseMask: tensor([[1], [1], [1]], "int32"),
    attentionMask: tensor(
      [
        [1, 1],
        [1, 1],
        [0, 1],
      ],
      "int32",
    ),
    responseWidth: 1,
  };

  test("tell nothing of a score that is invalid, but of its tokens", () => {
    const metrics = dataMetrics({ ...batch, valid: [true, false, true] });
    expect(metrics["critic/score/max"]).toBe(3);
    expect(metrics["critic/rewards/mean"]).toBe(2);
    expect(metrics["critic/advantages/mean"]).toBe(0);
    expect(metrics["response_length/mean"]).toBe(1);
    expect(metrics["prompt_length/mean"]).toBeCloseTo(2 / 3, 9);
  });

  test("need a width that fits", () => {
    expect(() => dataMetrics({ ...batch, responseWidth: 3 })).toThrow("responseWidth");
  });
});
