/** verl's metrics of a step that only a run can feed. */

import { PromptLoader } from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { silentTracker } from "../../src/tracking/step-tracker.ts";
import { rewardsPath, scoredTrainings } from "../fixtures/scored-training.ts";

const { dataset, trained } = await scoredTrainings();

/** Of each step, those whose names begin so, without that. */
function metricsOf(
  metrics: readonly Readonly<Record<string, number>>[],
  prefix: string,
): Record<string, number>[] {
  return metrics.map((one) =>
    Object.fromEntries(
      Object.entries(one).flatMap(([name, value]) =>
        name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
      ),
    ),
  );
}

const all = (value: number): object => ({ mean: value, max: value, min: value });

describe("off-policy", () => {
  test("staleness of the newest and of the oldest tokens, and versions of a rollout", async () => {
    const { report } = await trained("halves", {
      schedule: "one-step-off-policy",
      run: { totalTrainingSteps: 2 },
    });
    for (const [name, values] of [
      ["trajectory_spans", [1, 1]],
      ["trajectory_staleness", [0, 1]],
      ["trajectory_staleness_worst", [0, 1]],
    ] as const) {
      expect(metricsOf(report.metrics, `training/off_policy/${name}/`)).toEqual(values.map(all));
    }
  });

  test("samples that were too old, and evicted", async () => {
    const shared = new SharedArrayBuffer(4);
    const view = new Int32Array(shared);
    const { report } = await trained("", {
      reward: {
        reward: { path: rewardsPath, name: "firstWaits", rewardKwargs: { shared } },
        workers: 1,
        executors: 1,
      },
      schedule: "streaming",
      staleness: { limit: 1, numWarmupBatches: 1, strategy: "drop" },
      run: { totalTrainingSteps: 3 },
      tracking: {
        ...silentTracker,
        log: (_metrics, step) => {
          if (step === 2) {
            Atomics.store(view, 0, 1);
            Atomics.notify(view, 0);
          }
        },
      },
    });
    const evicted = metricsOf(report.metrics, "training/off_policy/evicted_");
    // The group that waits, whose step came and went; its prompt came in both batches that were generated at first.
    expect(evicted.slice(0, 2)).toEqual([{ samples: 0 }, { samples: 4 }]);
  });
});

test("generations of a step, where groups are filtered", async () => {
  const { report } = await trained("evenSame", {
    schedule: "streaming",
    algorithm: { filterGroups: {} },
  });
  // Two of four groups are left of each.
  expect(report.metrics[0]?.["train/num_gen_batches"]).toBe(2);
  const plain = await trained("evenSame");
  expect(plain.report.metrics[0]?.["train/num_gen_batches"]).toBeUndefined();
});

describe("components of gdpo", () => {
  const algorithm = { advEstimator: "gdpo", gdpoRewardKeys: ["score", "half"] };

  test("each by itself", async () => {
    const { report } = await trained("halves", { algorithm });
    expect(metricsOf(report.metrics, "gdpo/")).toEqual([
      {
        "score/mean": 0.5,
        "score/max": 1,
        "score/min": 0,
        "score/std": expect.closeTo(0.5, 9),
        "half/mean": 0.25,
        "half/max": 0.5,
        "half/min": 0,
        "half/std": expect.closeTo(0.25, 9),
      },
    ]);
  });

  test("of valid rows; where there is none nothing is told", async () => {
    const { report } = await trained("firstThrows", { algorithm });
    expect(report.metrics[0]?.["gdpo/half/min"]).toBe(0.5);
    const none = await trained("allThrow", { algorithm });
    expect(metricsOf(none.report.metrics, "gdpo/")).toEqual([{}]);
  });
});

test("what score functions tell beside their scores is told of training steps, by name", async () => {
  const { report } = await trained("halves");
  expect(metricsOf(report.metrics, "reward_extra/")).toEqual([
    {
      "score/mean": 0.5,
      "score/max": 1,
      "score/min": 0,
      "half/mean": 0.25,
      "half/max": 0.5,
      "half/min": 0,
    },
  ]);
  // Of two prompts in four, and once of all.
  const some = await trained("tellsSome");
  expect(some.report.metrics[0]).toMatchObject({
    "reward_extra/half/mean": 0.25,
    "reward_extra/half/max": 0.5,
    "reward_extra/first/mean": 1,
  });
  const penalized = await trained("", {
    reward: {
      reward: { path: rewardsPath, name: "halves" },
      manager: "dapo",
      managerOptions: {
        maxRespLen: 2,
        overlongBuffer: { len: 2, penaltyFactor: 1, log: true },
      },
      workers: 1,
      executors: 1,
    },
  });
  expect(penalized.report.metrics[0]).toMatchObject({
    "reward_extra/overlong_reward/mean": -0.5,
    "reward_extra/overlong/mean": 1,
    "reward_extra/score/mean": 0.5,
  });
  const none = await trained("allThrow");
  expect(metricsOf(none.report.metrics, "reward_extra/")).toEqual([{}]);
});

test("how much of the gradient is noise, of valid rows", async () => {
  const whole = await trained("halves");
  // Advantages of scores 0 and 1: -+0.5 / 0.7071; each token adds 1 - 2 + 1.5.
  expect(metricsOf(whole.report.metrics, "variance_proxy/")).toEqual([
    {
      proxy1_signal_strength: 0,
      proxy2_total_power: expect.closeTo(0.25, 5),
      proxy3_pure_noise: expect.closeTo(0.25 / 7, 5),
      expected_a_squared: expect.closeTo(0.5, 5),
      expected_w: 0.5,
    },
  ]);
  // Two of three have a score, and the same advantages.
  const rollout = { n: 3, maxResponseLength: 1 };
  const some = await trained("firstThrows", { rollout });
  expect(some.report.metrics[0]?.["variance_proxy/expected_a_squared"]).toBeCloseTo(0.5, 5);
  const none = await trained("allThrow");
  expect(metricsOf(none.report.metrics, "variance_proxy/")).toEqual([{}]);
});

test("how far the policy is from its rollouts, of all rows; nothing where one of them does not tell", async () => {
  const same = { diff_valid: 1, diff_max: 0, diff_mean: 0, diff_std: 0 };
  for (const scores of ["halves", "allThrow"]) {
    const { report } = await trained(scores);
    expect(metricsOf(report.metrics, "training/rollout_probs_")).toEqual([same]);
  }
  const bypassed = await trained("halves", {
    algorithm: { rolloutCorrection: { bypassMode: true } },
  });
  expect(metricsOf(bypassed.report.metrics, "training/rollout_probs_")).toEqual([{}]);
});

test("what is cut off is as long as it may be, and not as long as the longest of the batch", async () => {
  const promptLengths = (prompts: readonly unknown[]): number[] => prompts.map(() => 1);
  const ratiosOf = async (maxPromptLength: number, maxResponseLength: number): Promise<unknown> => {
    const limited = await dataset().limited({ maxPromptLength, promptLengths });
    const { report } = await trained(
      "halves",
      {
        prompts: new PromptLoader(limited, { batchSize: 4 }),
        rollout: { maxResponseLength },
      },
      2,
    );
    return ["prompt_length", "response_length", "response_length_non_aborted"].map(
      (name) => report.metrics[0]?.[`${name}/clip_ratio`],
    );
  };
  // Prompts of one token, and answers of two.
  expect(await ratiosOf(4, 3)).toEqual([0, 0, 0]);
  expect(await ratiosOf(1, 2)).toEqual([1, 1, 1]);
});

test("tokens of the one process that works on all rows", async () => {
  const { report } = await trained("halves", { rollout: { maxResponseLength: 3 } }, 3);
  // 8 rows of one token and three.
  expect(metricsOf(report.metrics, "global_seqlen/")).toEqual([
    { min: 32, max: 32, minmax_diff: 0, balanced_min: 32, balanced_max: 32, mean: 32 },
  ]);
});
