/** Every policy loss and way to put losses together: verl's own numbers and gradients (test/golden/policy-losses.json), finite differences, bad input. */
import { type Tensor, tensor } from "@rayling/data-proto";
import {
  aggLoss,
  createPolicyLossRegistry,
  decoupled,
  type DecoupledBatch,
  type DecoupledSettings,
  type GlobalBatchInfo,
  type PolicyLoss,
  type PolicyLossBatch,
  type PolicyLossResult,
  type PolicyLossSettings,
  reinforce,
  TrainerInputError,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { matrixOf, tensorOf } from "../src/algorithms/matrix.ts";
import { camelCased, expectClose, type GoldenCase, goldenCases, nestedOf } from "./golden.ts";

const cases = goldenCases("policy-losses.json");
const registry = createPolicyLossRegistry();

/** They come with rollout correction, or are 0.5.0's, of whose agg_loss one mode is another. */
const later = new Set(["bypass_mode", "compute_decoupled_policy_loss"]);
const own = [
  "compute_policy_loss_reinforce",
  "compute_policy_loss",
  "agg_loss",
  "get_policy_loss_fn",
];
const newest = "compute_decoupled_policy_loss@newest_agg_loss";

function tensorsOf({ inputs }: GoldenCase): Record<string, Tensor> {
  return Object.fromEntries(
    Object.entries(camelCased(inputs))
      .filter(([key, value]) => key !== "randperm" && value !== null)
      .map(([key, value]) => [key, tensor(nestedOf(value), "float32")]),
  );
}

function settingsOf({ params, inputs }: GoldenCase): PolicyLossSettings {
  const { config = {}, ...rest } = params as { config?: Readonly<Record<string, unknown>> };
  const {
    policy_loss: policyLoss = {},
    global_batch_info: info,
    ...actor
  } = config as {
    policy_loss?: Readonly<Record<string, unknown>>;
    global_batch_info?: Readonly<Record<string, unknown>>;
  };
  return {
    ...camelCased({ ...rest, ...actor, ...policyLoss }),
    ...(info === undefined ? {} : { globalBatchInfo: camelCased(info) }),
    ...(inputs["randperm"] === undefined
      ? {}
      : { permutation: () => inputs["randperm"] as number[] }),
  };
}

function check(golden: GoldenCase, run: () => PolicyLossResult): void {
  if (golden.expected["error"] !== undefined) {
    expect(run).toThrow(TrainerInputError);
    return;
  }
  const { loss, gradLogProb, metrics } = run();
  expectClose(golden, { loss, grad_log_prob: gradLogProb, metrics });
}

test("every fn of the file is checked or listed as later", () => {
  const there = new Set(cases.map(({ fn }) => fn));
  expect([...there].toSorted()).toEqual([...registry.names(), ...own, newest, ...later].toSorted());
});

describe.each(registry.names())("%s", (name) => {
  test.each(cases.filter(({ fn }) => fn === name))("$name", (golden) => {
    check(golden, () =>
      registry.get(name)(tensorsOf(golden) as unknown as PolicyLossBatch, settingsOf(golden)),
    );
  });
});

test.each(cases.filter(({ fn }) => fn === "compute_policy_loss_reinforce"))("$name", (golden) => {
  check(golden, () =>
    reinforce(tensorsOf(golden) as unknown as PolicyLossBatch, settingsOf(golden)),
  );
});

/** The older functions name their ranges otherwise; without an own one, both sides have the same. */
function rangesOf({ params }: GoldenCase): DecoupledSettings {
  const { cliprange, cliprange_low: low, cliprange_high: high, ...rest } = params;
  return {
    ...camelCased(rest),
    clipRatio: cliprange as number,
    clipRatioLow: (low ?? null) as number | null,
    clipRatioHigh: (high ?? null) as number | null,
  };
}

test.each(cases.filter(({ fn }) => fn === "compute_policy_loss"))("$name", (golden) => {
  const batch = tensorsOf(golden) as unknown as PolicyLossBatch;
  const { loss, gradLogProb, metrics } = registry.get("vanilla")(batch, rangesOf(golden));
  const plain = Object.entries(metrics).map(([key, value]) => [key.replace("actor/", ""), value]);
  expectClose(golden, { loss, grad_log_prob: gradLogProb, metrics: Object.fromEntries(plain) });
});

test.each(cases.filter(({ fn }) => fn === newest))("$name", (golden) => {
  check(golden, () => decoupled(tensorsOf(golden) as unknown as DecoupledBatch, rangesOf(golden)));
});

test.each(cases.filter(({ fn }) => fn === "agg_loss"))("$name", (golden) => {
  const { lossMat, lossMask } = tensorsOf(golden) as Record<"lossMat" | "lossMask", Tensor>;
  const { lossAggMode, ...info } = camelCased(golden.params) as { lossAggMode: never };
  const run = (): object => {
    const { loss, weights } = aggLoss(
      matrixOf("lossMat", lossMat),
      matrixOf("lossMask", lossMask),
      lossAggMode,
      Object.fromEntries(
        Object.entries(info).filter(([, value]) => value !== null),
      ) as GlobalBatchInfo,
    );
    return { loss, grad_loss_mat: tensorOf(weights) };
  };
  if (golden.expected["error"] === undefined) expectClose(golden, run() as Record<string, unknown>);
  else expect(run).toThrow(TrainerInputError);
});

test.each(cases.filter(({ fn }) => fn === "get_policy_loss_fn"))("$name", ({ params }) => {
  expect(() => registry.get(params["name"] as string)).toThrow(
    `there is no policy loss "${String(params["name"])}"; there are vanilla`,
  );
});

/** Those without a part that is kept from the gradient on purpose. */
const smooth: Readonly<Record<string, PolicyLoss>> = {
  ...Object.fromEntries(
    ["vanilla", "sapo", "gpg", "kl_cov", "geo_mean", "dro"].map((name) => [
      name,
      registry.get(name),
    ]),
  ),
  reinforce,
};

describe("gradients are finite differences", () => {
  const batch = (logProb: number[][]): PolicyLossBatch => ({
    logProb: tensor(logProb, "float64"),
    oldLogProb: tensor(
      [
        [-1, -2, -0.5],
        [-0.7, -1.4, -3],
      ],
      "float64",
    ),
    advantages: tensor(
      [
        [0.5, 0.5, 0.5],
        [-1.5, -0.5, -1],
      ],
      "float64",
    ),
    responseMask: tensor(
      [
        [1, 1, 0],
        [1, 1, 1],
      ],
      "int32",
    ),
    rolloutIsWeights: tensor(
      [
        [1, 0.5, 2],
        [1.5, 1, 0.7],
      ],
      "float64",
    ),
  });
  const settings: PolicyLossSettings = {
    droBeta: 0.5,
    klCovRatio: 0.4,
    ppoKlCoef: 0.3,
    lossAggMode: "seq-mean-token-sum",
  };
  const at = [
    [-1.1, -1.7, -0.4],
    [-0.75, -1.1, -3.4],
  ];

  test.each(Object.entries(smooth))("%s", (_name, loss) => {
    const { gradLogProb } = loss(batch(at), settings);
    const step = 1e-5;
    for (const [row, values] of at.entries()) {
      for (const column of values.keys()) {
        const moved = (by: number): number =>
          loss(batch(at.with(row, values.with(column, (values[column] as number) + by))), settings)
            .loss;
        const slope = (moved(step) - moved(-step)) / (2 * step);
        expect(gradLogProb.data[3 * row + column]).toBeCloseTo(slope, 5);
      }
    }
  });
});

describe("bad input", () => {
  test("of another shape, or out of range, is named", () => {
    const batch = {
      logProb: tensor([[1, 2]], "float32"),
      oldLogProb: tensor([[1]], "float32"),
      advantages: tensor([[1, 2]], "float32"),
      responseMask: tensor([[1, 1]], "int32"),
    };
    expect(() => registry.get("vanilla")(batch)).toThrow(
      "oldLogProb must have shape [1, 2]; it has [1, 1]",
    );
    const whole = { ...batch, oldLogProb: batch.logProb };
    expect(() => registry.get("vanilla")(whole, { clipRatioC: 1 })).toThrow(TrainerInputError);
    expect(() => registry.get("dro")(whole, {})).toThrow(
      "droBeta must be above 0 for dro; it is missing",
    );
    expect(() => registry.get("kl_cov")(whole, { klCovRatio: 0 })).toThrow("klCovRatio");
    expect(() => registry.get("gpg")(whole, { lossAggMode: "mean" as never })).toThrow(
      'loss_agg_mode "mean"',
    );
    expect(() => registry.register("vanilla", registry.get("gpg"))).toThrow('"vanilla"');
  });

  test("no token at all: NaN where there is nothing to divide by, and no gradient", () => {
    const empty = {
      logProb: tensor([[1, 2]], "float32"),
      oldLogProb: tensor([[1, 2]], "float32"),
      advantages: tensor([[1, 2]], "float32"),
      responseMask: tensor([[0, 0]], "int32"),
    };
    const { loss, gradLogProb } = registry.get("vanilla")(empty);
    expect(loss).toBeNaN();
    expect([...gradLogProb.data]).toEqual([0, 0]);
    expect(registry.get("gpg")(empty, { lossAggMode: "token-sum" }).loss).toBe(0);
  });
});
