/** What a run would come to: its steps and sizes, and its time, held against the recorded runs of verl's recipe (7B, Megatron; their medians are the phases here). */

import { describe, expect, test } from "vitest";
import {
  expectedStepSeconds,
  loadTrainerConfig,
  planText,
  rewardMakespan,
  trainingPlanOf,
} from "../../src/config/index.ts";
import type { StepTiming } from "../../src/config/index.ts";

const recipe = [
  "algorithm.adv_estimator=grpo",
  "actor_rollout_ref.rollout.n=5",
  "trainer.total_epochs=15",
  "trainer.test_freq=5",
  "trainer.save_freq=20",
  "+max_concurrency=256",
  "rayling.expected_seconds={gen: 39.8, old_log_prob: 45.2, ref: 36.3, adv: 2.6, update_actor: 116.3, testing: 157.8, save_checkpoint: 38, reward: [0, 40]}",
];
const sizes = { train: 7473, validation: 1319 };
const planOf = (...overrides: string[]) => {
  const config = loadTrainerConfig({ overrides: [...recipe, ...overrides] });
  return { config, plan: trainingPlanOf(config, sizes) };
};

test("the recipe has 105 steps of 5,120 samples, four updates each, 22 validations", () => {
  expect(planOf().plan).toMatchObject({
    stepsPerEpoch: 7,
    totalSteps: 105,
    promptsPerStep: 1024,
    samplesPerStep: 5120,
    updatesPerStep: 4,
    samplesPerUpdate: 1280,
    rewardSlots: 256,
    validations: 22,
    samplesPerValidation: 1319,
    checkpoints: 6,
  });
});

test.each([
  [["trainer.total_epochs=null"], "210 (7 in an epoch)"],
  [["trainer.total_epochs=null", "trainer.total_training_steps=400"], "400 (7 in an epoch)"],
  [["trainer.total_training_steps=20"], "20 (7 in an epoch)"],
  [
    ["trainer.total_training_steps=400"],
    "105 (7 in an epoch): trainer.total_epochs, 15, are over before trainer.total_training_steps, 400",
  ],
])("steps and epochs end a run, whichever come first: %s", (overrides, text) => {
  const { config, plan } = planOf(...overrides);
  expect(/^steps +(.*)$/m.exec(planText(config, plan))?.[1]).toBe(text);
});

test("rewards at once are no more than the manager's limit lets through", () => {
  const limited = ["reward.reward_manager.name=rate_limited", "+reward.max_concurrent=8"];
  expect(planOf(...limited).plan.rewardSlots).toBe(8);
  expect(planOf(...limited, "max_concurrency=4").plan.rewardSlots).toBe(4);
});

test("rewards at once are those of the reward that has least room", () => {
  const one = { custom_reward_function: { path: "one.ts" } };
  const limited = (most: number) => ({ ...one, limits: { max_concurrent: most } });
  const slots = (reward: object): number =>
    // In Hydra's grammar keys have no quotes.
    planOf(
      `++reward=${JSON.stringify(reward).replaceAll(/"(\w+)":/g, "$1:")}`,
      "max_concurrency=null",
    ).plan.rewardSlots;
  const all = slots({ num_workers: 8 });
  expect(slots({ num_workers: 8, rewards: { one, other: one } })).toBe(all / 2);
  expect(slots({ rewards: { one: limited(3), other: limited(5) } })).toBe(3);
  expect(slots({ cascade: { one: limited(3), other: limited(5) } })).toBe(8);
});

const hours = (h: number, m: number): number => h * 3600 + m * 60;

// The pipeline's own run took 1.5 % longer than its simulation, for what loading and offloading parts of a model takes (not of a schedule's doing).
test.each([
  ["sync", hours(17, 53), 0.01],
  ["mini-batch-pipeline", hours(15, 41), 0.02],
  ["one-step-pipeline", hours(12, 22), 0.02],
])("the schedule %s comes to what was recorded", (schedule, seconds, within) => {
  const { plan } = planOf(`rayling.schedule=${schedule}`);
  const total = plan.expected?.totalSeconds ?? 0;
  expect(Math.abs(total / seconds - 1)).toBeLessThan(within);
});

test("in the bypass nobody is asked for log-probabilities before the update", () => {
  const bypass = "algorithm.rollout_correction.bypass_mode=True";
  // Where rewards take longer, it is not seen.
  const fast = "rayling.expected_seconds.reward=0";
  const seconds = (...overrides: string[]): number =>
    planOf(fast, ...overrides).plan.expected?.stepSeconds ?? 0;
  const without = seconds("rayling.expected_seconds.old_log_prob=0");
  expect(seconds(bypass)).toBe(without);
  expect(seconds()).toBeGreaterThan(without);
  const { config, plan } = planOf(bypass);
  expect(planText(config, plan)).toMatch(/^algorithm +grpo, loss bypass_mode \(ppo_clip\)$/m);
});

test("a limit of staleness saves nothing where nothing is generated ahead", () => {
  const streaming = ["rayling.schedule=streaming", "rayling.staleness.limit=1"];
  const seconds = (...overrides: string[]): number =>
    planOf(...overrides).plan.expected?.stepSeconds ?? 0;
  const onPolicy = seconds("rayling.schedule=streaming");
  expect(seconds(...streaming)).toBeLessThan(onPolicy);
  expect(seconds(...streaming, "rayling.staleness.num_warmup_batches=0")).toBe(onPolicy);
});

describe("rewards", () => {
  test("of the recipe take what was measured: 421 to 432 s", () => {
    const makespan = rewardMakespan({ samples: 5120, slots: 256, seconds: [0, 40] });
    expect(makespan).toBeGreaterThan(421);
    expect(makespan).toBeLessThan(432);
  });

  test.each([
    [{ samples: 10, slots: 4, seconds: 2 }, 6],
    [{ samples: 4, slots: 4, seconds: 2 }, 2],
    [{ samples: 1, slots: 4, seconds: [0, 10] as const }, 5],
    [{ samples: 10, slots: 4, seconds: 0 }, 0],
    [{ samples: 10, slots: 4, seconds: [0, 0] as const }, 0],
  ])("of %j take %d s", (load, seconds) => {
    expect(rewardMakespan(load)).toBe(seconds);
  });
});

describe("a step", () => {
  const timing = (change: Partial<StepTiming>): number =>
    expectedStepSeconds({
      schedule: "sync",
      seconds: {
        gen: 10,
        oldLogProb: 2,
        ref: 3,
        values: 1,
        adv: 1,
        updateActor: 6,
        updateCritic: 2,
      },
      makespan: 20,
      miniBatches: 4,
      isStale: false,
      also: 0,
      ...change,
    });

  test.each([
    // 10 + max(6, 20) + 1 + 8
    [{}, 39],
    [{ makespan: 4 }, 25],
    // The last quarter is there at 30, its update takes 2.
    [{ schedule: "mini-batch-pipeline" }, 33],
    // Nothing to wait for: 10 + 6 + 8 + 1.
    [{ schedule: "mini-batch-pipeline", makespan: 0 }, 25],
    [{ schedule: "one-step-off-policy" }, 25],
    [{ schedule: "one-step-pipeline", makespan: 60 }, 60],
    // A validation that fits into the wait, and one that does not.
    [{ schedule: "one-step-pipeline", makespan: 60, also: 30 }, 60],
    [{ schedule: "one-step-pipeline", makespan: 60, also: 40 }, 65],
    [{ also: 30 }, 69],
    // The last quarter is there at 20, and takes 3.5.
    [{ schedule: "streaming" }, 25],
    [{ schedule: "streaming", makespan: 60 }, 64.5],
    [{ schedule: "streaming", makespan: 60, isStale: true }, 60],
  ] as const)("with %j takes %d s", (change, seconds) => {
    expect(timing(change)).toBeCloseTo(seconds, 9);
  });
});

describe("the text", () => {
  test("says which servers a reward model has", () => {
    const textOf = (...more: string[]): string => {
      const { config, plan } = planOf(
        "reward_model.enable=true",
        "reward_model.model.path=m",
        ...more,
      );
      return planText(config, plan);
    };
    expect(textOf("trainer.n_gpus_per_node=4")).toMatch(
      /^servers +2 x vllm, 2 GPUs each \(GPUs 0 to 3\), started by vllm$/m,
    );
    expect(textOf("+reward.reward_model.servers=[a:1,b:2]")).toMatch(
      /^servers +a:1, b:2 \(vllm\)$/m,
    );
  });

  test("says which servers each of several reward models has", () => {
    const { config, plan } = planOf(
      "reward.custom_reward_function.path=mine.ts",
      "+reward.reward_models.judge={model_path: m, nnodes: 1, n_gpus_per_node: 4}",
      "+reward.reward_models.safety={model_path: n, nnodes: 1, n_gpus_per_node: 1}",
      "+reward.reward_models.safety.rollout.tensor_model_parallel_size=1",
      "+reward.reward_models.other={model_path: o, servers: ['a:1', 'b:2']}",
    );
    const text = planText(config, plan);
    for (const wanted of [
      /^rewards +mine\.ts by naive, 256 at once$/m,
      /^servers of judge +2 x vllm, 2 GPUs each \(GPUs 0 to 3\), started by vllm$/m,
      /^servers of safety +1 x vllm, 1 GPU each \(GPU 4\), started by vllm$/m,
      /^servers of other +a:1, b:2 \(vllm\)$/m,
    ]) {
      expect(text).toMatch(wanted);
    }
    const scoring = planOf("+reward.reward_models.judge={model_path: m, servers: ['a:1']}");
    expect(planText(scoring.config, scoring.plan)).toMatch(
      /^rewards +the reward model m by naive, 256 at once$/m,
    );
  });

  test("tells steps, sizes, schedule, time, and what is not used", () => {
    const { config, plan } = planOf("rayling.schedule=one-step-pipeline", "trainer.nnodes=2");
    const text = planText(config, plan);
    for (const wanted of [
      /^schedule +one-step-pipeline$/m,
      /^steps +105 \(7 in an epoch\)$/m,
      /^step +1024 prompts x 5 = 5120 samples$/m,
      /^updates +4 in a step, of 1280 samples$/m,
      /^validation +22 times, 1319 samples$/m,
      /^checkpoints +6 in checkpoints\/verl_examples\/gsm8k$/m,
      /^rewards of a step +424 s$/m,
      /^expected step +424 s, 27\.\d % less than sync \(58\d s\)$/m,
      /^expected in all +12h\d\d$/m,
      /^not used +trainer\.nnodes$/m,
    ]) {
      expect(text).toMatch(wanted);
    }
  });

  test("says what it does not know", () => {
    const config = loadTrainerConfig();
    const plan = trainingPlanOf(config, { train: undefined, validation: undefined });
    expect(plan).toMatchObject({ totalSteps: undefined, expected: undefined });
    const text = planText(config, plan);
    expect(text).toMatch(/^steps +as many as the data have$/m);
    expect(text).toMatch(/^expected +not known/m);
    expect(text).toMatch(/^checkpoints +none$/m);
  });

  test("counts no steps where a run only validates", () => {
    const config = loadTrainerConfig({ overrides: ["trainer.val_only=True"] });
    expect(trainingPlanOf(config, sizes)).toMatchObject({ totalSteps: 0, validations: 1 });
    const overrides = ["trainer.val_only=True", "trainer.val_before_train=False"];
    const without = trainingPlanOf(loadTrainerConfig({ overrides }), sizes);
    expect(without).toMatchObject({ totalSteps: 0, validations: 1 });
  });
});
