/** A configuration is run: verl's keys become the trainer's options, the data are found, and every way to name a policy works, with real actors and rewards. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { WriterMark } from "@rayling/reward-loop";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { loadTrainerConfig, TrainerConfigError } from "../../src/config/index.ts";
import { DatasetError } from "../../src/index.ts";
import { OutputFolders } from "../../src/record/output-folders.ts";
import { CheckpointRuns, runOfCheckpoint } from "../../src/run/checkpoint-runs.ts";
import { runFolder, runTraining, trainerOptionsOf } from "../../src/run/index.ts";
import type { TrainingRun } from "../../src/run/index.ts";
import { startJudge } from "../../../../test/servers/judge.ts";
import { folder, jsonlFile, rowsOf } from "../data/rows.ts";
import { inFull } from "../../../../test/fixtures/suite.ts";

const bandit = new URL("../fixtures/bandit.ts", import.meta.url).href;

describe("the trainer's options", () => {
  const optionsOf = (...overrides: string[]) =>
    trainerOptionsOf(loadTrainerConfig({ overrides }), "/base");

  test("are verl's keys by the library's names", () => {
    const options = optionsOf(
      "algorithm.adv_estimator=grpo",
      "algorithm.norm_adv_by_std_in_grpo=False",
      "algorithm.rollout_correction.rollout_is=token",
      "actor_rollout_ref.actor.policy_loss.loss_mode=gspo",
      "actor_rollout_ref.actor.policy_loss.clip_cov_lb=0.5",
      "actor_rollout_ref.actor.policy_loss.behav_imp_weight_cap=3",
      "actor_rollout_ref.actor.clip_ratio_high=0.28",
      "actor_rollout_ref.actor.loss_scale_factor=100",
      "actor_rollout_ref.rollout.n=5",
      "actor_rollout_ref.rollout.val_kwargs.temperature=0.6",
      "actor_rollout_ref.rollout.val_kwargs.do_sample=True",
      "critic.cliprange_value=0.3",
      "trainer.save_freq=20",
      "trainer.max_actor_ckpt_to_keep=2",
      "trainer.max_critic_ckpt_to_keep=3",
      "trainer.resume_mode=disable",
      "rayling.schedule=streaming",
      "rayling.staleness.limit=2",
      "rayling.staleness.strategy=drop",
    );
    expect(options).toMatchObject({
      schedule: "streaming",
      rollout: {
        n: 5,
        maxResponseLength: 512,
        validation: { n: 1, doSample: true, temperature: 0.6 },
      },
      algorithm: {
        advEstimator: "grpo",
        normAdvByStdInGrpo: false,
        rolloutCorrection: { rolloutIs: "token", rolloutIsThreshold: 2 },
      },
      actor: {
        ppoMiniBatchSize: 256,
        lossMode: "gspo",
        clipCovLb: 0.5,
        behavImpWeightCap: 3,
        clipRatio: 0.2,
        clipRatioLow: null,
        clipRatioHigh: 0.28,
        lossScaleFactor: 100,
      },
      criticOptions: { cliprangeValue: 0.3, lossScaleFactor: 100 },
      staleness: { limit: 2, strategy: "drop" },
      run: { totalEpochs: null, saveFreq: 20 },
      checkpoints: {
        folder: "checkpoints/verl_examples/gsm8k",
        keep: 2,
        resumeMode: "disable",
      },
    });
    expect(options.algorithm?.filterGroups).toMatchObject({ enable: false });
    expect(options.actor).toHaveProperty("droBeta", null);
  });

  test.each([
    ["grpo", 1, 3, 1],
    ["grpo", 1, null, 1],
    ["grpo", null, 1, null],
    ["gae", 1, 3, 3],
    ["gae", 3, 1, 3],
    // A critic that nothing is said of has the policy's number: one folder has both.
    ["gae", 1, null, 1],
    // null is all of them.
    ["gae", null, 1, null],
    ["gae", null, null, null],
  ])(
    "keep a checkpoint as long as the policy, or a critic, of %s is to be kept (%s, %s)",
    (...row) => {
      const [advEstimator, ofActor, ofCritic, keep] = row;
      const { checkpoints } = optionsOf(
        `algorithm.adv_estimator=${advEstimator}`,
        `trainer.max_actor_ckpt_to_keep=${ofActor}`,
        `trainer.max_critic_ckpt_to_keep=${ofCritic}`,
      );
      expect(checkpoints?.keep).toBe(keep);
    },
  );

  test.each([
    [[], { workers: 8 }],
    [["+max_concurrency=256"], { workers: 8, concurrency: 32 }],
    [["+max_concurrency=10"], { workers: 8, concurrency: 2, limits: { concurrency: 10 } }],
    [["reward.custom_reward_function.path=./r.ts"], { reward: { path: "./r.ts" } }],
    [
      ["reward.custom_reward_function.path=./r.ts", "reward.custom_reward_function.name=mine"],
      { reward: { path: "./r.ts", name: "mine" } },
    ],
    [
      ["rayling.task=arithmetic"],
      { reward: { path: expect.stringContaining("arithmetic-reward") as string } },
    ],
    [["rayling.task=arithmetic", "custom_reward_function.path=a.ts"], { reward: { path: "a.ts" } }],
    [["reward.retry.enable=True", "reward.retry.max_ms=2000"], { retry: { maxMs: 2000 } }],
    [["reward.hedge.enable=True"], { hedge: {} }],
    [
      ["reward.limits.max_rpm=60", "reward.limits.max_concurrent=4", "+max_concurrency=10"],
      { limits: { requestsPerMinute: 60, concurrency: 4 } },
    ],
    [
      ["reward.limits.max_concurrent=auto", "reward.limits.adaptive.initial=2"],
      { limits: { concurrency: { initial: 2 } } },
    ],
    [
      ["reward.limits.max_concurrent=auto", "+max_concurrency=10"],
      { limits: { concurrency: { max: 10 } } },
    ],
    [
      ["reward.attempt_timeout_ms=500", "reward.total_timeout_ms=2000"],
      { timeoutMs: 500, totalTimeoutMs: 2000 },
    ],
  ])("ask for rewards as %j says", (overrides, wanted) => {
    expect(optionsOf(...overrides).reward).toMatchObject({ ...wanted, baseDirectory: "/base" });
  });

  test("leave it to the library what is done about validation and a policy that hangs, unless it is said", () => {
    expect(optionsOf().run).toMatchObject({
      overlapValidation: null,
      policyTimeoutMs: 3_600_000,
    });
    const said = optionsOf("trainer.overlap_validation=False", "trainer.policy_timeout_ms=1000");
    expect(said.run).toMatchObject({ overlapValidation: false, policyTimeoutMs: 1000 });
  });
});

describe("a run that resumes", () => {
  /** As a training with these checkpoints, in this folder, saves that step. */
  async function saved(run: string, checkpoints: string, step: number): Promise<void> {
    const runs = new CheckpointRuns(checkpoints);
    const names = { projectName: "p", experimentName: "e", totalSteps: undefined };
    runs.open({ ...names, directory: run });
    await runs.progress({ step, phase: "gen" });
    await runs.progress({ step, phase: "save_checkpoint" });
    await mkdir(join(checkpoints, `global_step_${step}`), { recursive: true });
    await writeFile(join(checkpoints, "latest_checkpointed_iteration.txt"), String(step));
  }

  test("goes on in the files of the run that saved its checkpoint, and of no other", async () => {
    const files = await folder();
    const base = join(files, "runs");
    const one = await runFolder(base, { now: new Date(1e12) });
    const other = await runFolder(base, { now: new Date(2e12) });
    const checkpoints = join(files, "checkpoints");
    const auto = { folder: checkpoints, mode: "auto" } as const;
    const from = (path: string, ofFolder = checkpoints) =>
      runOfCheckpoint(base, { folder: ofFolder, mode: "resume_path", path });
    await saved(one, checkpoints, 1);
    await saved(other, join(files, "next"), 1);
    expect(await runOfCheckpoint(base, auto)).toBe(one);
    // Another run that began anew with the same folder of checkpoints.
    await saved(other, checkpoints, 2);
    expect(await runOfCheckpoint(base, auto)).toBe(other);
    expect(await from(join(checkpoints, "global_step_1/"))).toBe(one);
    // Runs of their own: checkpoints of another folder, other names, files that are gone.
    expect(await from(join(checkpoints, "global_step_1"), join(files, "fork"))).toBeUndefined();
    expect(await runOfCheckpoint(join(files, "other-names"), auto)).toBeUndefined();
    await rm(other, { recursive: true });
    expect(await runOfCheckpoint(base, auto)).toBeUndefined();
  });

  test("from a checkpoint of an earlier release goes on in the newest run whose settings name its folder", async () => {
    const files = await folder();
    const base = join(files, "runs");
    const checkpoints = join(files, "checkpoints");
    const auto = { folder: checkpoints, mode: "auto" } as const;
    const runs: string[] = [];
    for (const name of ["checkpoints", "checkpoints", "next"]) {
      const run = await runFolder(base, { now: new Date(1e12 + 1000 * runs.length) });
      const config = { trainer: { default_local_dir: join(files, name) } };
      await writeFile(
        join(run, "timeline.jsonl"),
        `${JSON.stringify({ type: "start", atMs: 1, config })}\n`,
      );
      runs.push(run);
    }
    await mkdir(join(checkpoints, "global_step_3"), { recursive: true });
    expect(await runOfCheckpoint(base, auto)).toBe(runs[1]);
    await rm(join(String(runs[0]), "timeline.jsonl"));
    await writeFile(join(String(runs[1]), "timeline.jsonl"), "cut o");
    expect(await runOfCheckpoint(base, auto)).toBeUndefined();
  });
});

describe("a run", () => {
  beforeEach(async () => {
    await ray.init({ prewarm: 0 });
  });
  afterEach(() => ray.shutdown());

  async function run(
    name: string,
    ...overrides: string[]
  ): Promise<TrainingRun & { files: string }> {
    const files = await folder();
    const own = [
      `rayling.directory=${files}/run`,
      `trainer.default_local_dir=${files}/checkpoints`,
      `trainer.rollout_data_dir=${files}/rollouts`,
      "trainer.logger=file",
    ];
    const config = loadTrainerConfig({ name, overrides: [...own, ...overrides] });
    return { ...(await runTraining(config)), files };
  }

  test("of the quickstart, cut short: a policy, a reference, validation, its files and checkpoints", async () => {
    const { report, files } = await run(
      "grpo",
      "trainer.total_training_steps=2",
      "trainer.save_freq=1",
      "trainer.log_val_generations=3",
      "rayling.warm_start_steps=2",
      "rayling.task_kwargs.high=20",
      "data.train_batch_size=4",
      "actor_rollout_ref.actor.ppo_mini_batch_size=2",
      "actor_rollout_ref.actor.use_kl_loss=True",
      "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine",
    );
    expect(report.steps).toBe(2);
    expect(report.validation).toHaveProperty("val-core/arithmetic/acc/mean@1");
    // The first is the validation before training.
    expect(report.metrics[1]).toMatchObject({ "actor/kl_coef": 0.001 });
    expect((await readdir(join(files, "rollouts"))).toSorted()).toEqual(["1.jsonl", "2.jsonl"]);
    const lines = (await readFile(join(files, "run/metrics.jsonl"), "utf8")).trim().split("\n");
    expect(lines.length).toBeGreaterThanOrEqual(3);
    const table = (await readFile(join(files, "run/generations.jsonl"), "utf8")).trim().split("\n");
    const shown = table.map((line) => JSON.parse(line) as { step: number; input: string });
    expect(shown.map(({ step }) => step)).toEqual([0, 0, 0, 2, 2, 2]);
    // The same prompts again.
    const inputs = shown.map(({ input }) => input);
    expect(new Set(inputs.slice(0, 3)).size).toBe(3);
    expect(inputs.slice(3)).toEqual(inputs.slice(0, 3));
    const latest = join(files, "checkpoints/latest_checkpointed_iteration.txt");
    expect(await readFile(latest, "utf8")).toBe("2");
    const noted = await readFile(join(files, "checkpoints/rayling_runs.json"), "utf8");
    expect(JSON.parse(noted)).toEqual({ 1: "../run", 2: "../run" });
  });

  test.runIf(inFull("a critic of the user's is below, and fit/tiny-training.test.ts trains ours"))(
    "with a critic, where the estimator is gae",
    async () => {
      const { report } = await run(
        "ppo",
        "trainer.total_training_steps=1",
        "trainer.val_before_train=False",
        "rayling.warm_start_steps=0",
        "data.train_batch_size=2",
        "actor_rollout_ref.actor.ppo_mini_batch_size=2",
      );
      expect(report.metrics[0]).toHaveProperty("critic/vf_loss");
    },
  );

  const rows = Array.from({ length: 16 }, (_, row) => ({
    prompt: [{ role: "user", content: String(row) }],
    data_source: "bandit",
    reward_model: { ground_truth: "" },
  }));
  const ofBandit = async (...overrides: string[]): Promise<TrainingRun & { files: string }> =>
    await run(
      "ppo_trainer",
      `data.train_files=${await jsonlFile(rows)}`,
      "data.val_files=null",
      "data.train_batch_size=4",
      "data.max_response_length=1",
      "actor_rollout_ref.actor.ppo_mini_batch_size=2",
      "actor_rollout_ref.rollout.n=4",
      "algorithm.adv_estimator=grpo",
      "trainer.total_epochs=2",
      "reward.num_workers=1",
      ...overrides,
    );

  test("of an actor of the user's, on files, under another schedule: all epochs of it, though it may have more steps", async () => {
    const reward = new URL("../fixtures/bandit-reward.ts", import.meta.url).href;
    const { report } = await ofBandit(
      `rayling.policy='${bandit}:BanditActor'`,
      "rayling.policy_kwargs={prompts: 16, lr: 4}",
      `reward.custom_reward_function.path='${reward}'`,
      "+mini_batch_pipeline=True",
      "trainer.total_training_steps=20",
    );
    expect(report.steps).toBe(8);
    expect(report.validation).toBeUndefined();
    const scores = report.metrics.map((metrics) => metrics["critic/score/mean"] ?? 0);
    expect(scores.at(-1)).toBeGreaterThan(scores[0] ?? 0);
  });

  test("whose directory changes before it trains has its files where it began", async () => {
    const [begun, elsewhere, before] = [await folder(), await folder(), process.cwd()];
    onTestFinished(() => process.chdir(before));
    process.chdir(begun);
    const reward = new URL("../fixtures/bandit-reward.ts", import.meta.url).href;
    const config = loadTrainerConfig({
      name: "ppo_trainer",
      overrides: [
        `data.train_files=${await jsonlFile(rows)}`,
        "data.val_files=null",
        "data.train_batch_size=4",
        "data.max_response_length=1",
        "actor_rollout_ref.actor.ppo_mini_batch_size=4",
        "actor_rollout_ref.rollout.n=2",
        "algorithm.adv_estimator=grpo",
        "trainer.total_training_steps=1",
        "trainer.save_freq=1",
        "trainer.default_local_dir=checkpoints",
        "trainer.rollout_data_dir=rollouts",
        "trainer.logger=file",
        "reward.num_workers=1",
        `rayling.policy='${bandit}:BanditActor'`,
        "rayling.policy_kwargs={prompts: 16, lr: 4}",
        `reward.custom_reward_function.path='${reward}'`,
      ],
    });
    const moves = { name: "moves", open: () => process.chdir(elsewhere) };
    const { checkpoints, directory } = await runTraining(config, { loggers: [moves] });
    expect(await readdir(elsewhere)).toEqual([]);
    expect(await readdir(checkpoints)).toContain("global_step_1");
    expect(checkpoints).toBe(join(await realpath(begun), "checkpoints"));
    expect(await readdir(directory)).toContain("metrics.jsonl");
    expect(await readdir(join(begun, "rollouts"))).toEqual(["1.jsonl"]);
  });

  test("scores again what failed, with what it cost in its record, where the configuration says so", async () => {
    const files = await folder();
    const path = join(files, "reward.ts");
    const asked = "const asked = new Set<string>();";
    const down = 'throw Object.assign(new Error("down"), { status: 503 });';
    await writeFile(
      path,
      `${asked}\nexport function computeScore({ solutionStr }: { solutionStr: string }): number {\n  if (asked.has(solutionStr)) return 1;\n  asked.add(solutionStr);\n  ${down}\n}\n`,
    );
    const { report } = await ofBandit(
      "rayling.policy=timed",
      "rayling.policy_kwargs.seconds={}",
      `reward.custom_reward_function.path=${path}`,
      "reward.executors=1",
      "reward.retry={enable: true, attempts: 2, base_ms: 0, budget: 1}",
      "reward.spend.prices.per_call=0.5",
      `reward.record=${files}/rewards.jsonl`,
      "trainer.total_training_steps=1",
    );
    expect(report.metrics[0]).toMatchObject({
      "reward/invalid_rate": 0,
      "reward/retry_rate": 1,
      // Sixteen samples, two tries each.
      "reward/cost": 16,
    });
    const lines = (await readFile(`${files}/rewards.jsonl`, "utf8")).trim().split("\n");
    expect(lines.length).toBeGreaterThanOrEqual(16);
  });

  test("counts the rewards of answers, and not those of remax's greedy ones", async () => {
    const path = join(await folder(), "reward.ts");
    await writeFile(
      path,
      "export const computeScore = ({ extraInfo, solutionStr }) => { if (/greedy$/.test(extraInfo.group_uid)) throw new Error('greedy'); return solutionStr.length; };\n",
    );
    const { report, rewards } = await ofBandit(
      `rayling.policy='${bandit}:BanditActor'`,
      "rayling.policy_kwargs={prompts: 16, lr: 4}",
      "algorithm.adv_estimator=remax",
      `reward.custom_reward_function.path=${path}`,
      "reward.executors=1",
      "trainer.total_training_steps=1",
    );
    expect(rewards).toEqual({ answers: 16, failed: 0 });
    // The metric has both: 4 of 20.
    expect(report.metrics[0]).toMatchObject({ "reward/invalid_rate": 0.2 });
  });

  test("whose log of rewards is gone ends with the error that names it", async () => {
    const files = await folder();
    const record = join(files, "rewards.jsonl");
    const path = join(files, "reward.ts");
    await writeFile(path, "export const computeScore = (): number => 1;\n");
    const overrides = [
      `data.train_files=${await jsonlFile(rows)}`,
      "data.val_files=null",
      "data.train_batch_size=4",
      "data.max_response_length=1",
      "actor_rollout_ref.actor.ppo_mini_batch_size=2",
      "algorithm.adv_estimator=grpo",
      "rayling.policy=timed",
      "rayling.policy_kwargs.seconds={}",
      "reward.num_workers=1",
      "reward.executors=1",
      `reward.custom_reward_function.path=${path}`,
      `reward.record=${record}`,
      `rayling.directory=${files}/run`,
      "trainer.logger=[]",
      "trainer.total_training_steps=3",
    ];
    const remover = { name: "remover", log: () => rm(record, { force: true }) };
    const config = loadTrainerConfig({ name: "ppo_trainer", overrides });
    const running = runTraining(config, { loggers: [remover] });
    await expect(running).rejects.toMatchObject({ code: "JSONL_CHANGED", path: record });
  });

  test("of the timed policy takes the expected times", async () => {
    const path = join(await folder(), "reward.ts");
    await writeFile(path, "export const computeScore = (): number => 1;\n");
    const { report } = await ofBandit(
      "rayling.policy=timed",
      "rayling.expected_seconds={gen: 0.2, update_actor: 0.1, save_checkpoint: 0.2, reward: 0}",
      `reward.custom_reward_function.path=${path}`,
      "trainer.total_training_steps=1",
      "trainer.save_freq=1",
      `trainer.default_local_dir=${join(await folder(), "checkpoints")}`,
    );
    const seconds = report.metrics[0] ?? {};
    expect(seconds["timing_s/gen"]).toBeGreaterThanOrEqual(0.19);
    expect(seconds["timing_s/save_checkpoint"]).toBeGreaterThanOrEqual(0.19);
    // Each of two updates takes all of it.
    expect(seconds["timing_s/update_actor"]).toBeGreaterThanOrEqual(0.19);
  });

  test("of a model behind a server only validates, where nobody is told of updates", async () => {
    await using judge = await startJudge();
    const questions = [0, 1].map((number) => ({
      prompt: [
        {
          role: "user",
          content: JSON.stringify({ solution: "2", groundTruth: String(number + 1) }),
        },
      ],
      data_source: "judge",
      reward_model: { ground_truth: "" },
    }));
    const path = join(await folder(), "reward.ts");
    await writeFile(
      path,
      "export const compute_score = ({ solutionStr }: { solutionStr: string }): number => JSON.parse(solutionStr).score;\n",
    );
    const { report } = await ofBandit(
      "rayling.policy=openai",
      `rayling.policy_kwargs={base_url: 'http://${judge.address}/v1', model: judge}`,
      `reward.custom_reward_function.path=${path}`,
      `data.val_files=${await jsonlFile(questions)}`,
      "data.max_response_length=50",
      // What is trained with elsewhere does no harm here.
      "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine",
    );
    const validation = { "val-core/judge/acc/mean@1": 0.5 };
    expect(report).toMatchObject({ steps: 0, metrics: [validation], validation });
    expect(report.metrics).toHaveLength(1);
  });

  test.each([
    [["rayling.policy=./no/policy.ts"], "rayling.policy: is none of tiny"],
    [[`rayling.policy='${bandit}:Nobody'`], "which has no actor class Nobody"],
    [
      ["algorithm.adv_estimator=gae", `rayling.policy='${bandit}:BanditActor'`],
      "rayling.critic: is needed",
    ],
    [
      ["rayling.policy=tiny", "rayling.policy_kwargs.alphabets=ab"],
      "rayling.policy_kwargs.alphabets: there is no such key; did you mean rayling.policy_kwargs.alphabet?",
    ],
    [
      ["rayling.policy=timed", "rayling.policy_kwargs.row_per_step=1"],
      "rayling.policy_kwargs.row_per_step: there is no such key; did you mean rayling.policy_kwargs.rows_per_step?",
    ],
    [
      ["data.filter_overlong_prompts=True", "critic.optim.lr_scheduler_type=cosine"],
      "trainer.total_training_steps: is needed",
    ],
  ])("with %j is refused", async (overrides, message) => {
    const refused = ofBandit(...overrides);
    await expect(refused).rejects.toThrow(message);
    await expect(refused).rejects.toBeInstanceOf(TrainerConfigError);
  });

  test("with a misspelt setting of its task is refused", async () => {
    const refused = run("grpo", "rayling.task_kwargs.hihg=1");
    await expect(refused).rejects.toThrow(
      "rayling.task_kwargs.hihg: there is no such key; did you mean rayling.task_kwargs.high?",
    );
  });

  test("of actors of the user's, a critic beside a policy of ours among them, which are told of the optimiser", async () => {
    const files = await folder();
    const reward = join(files, "reward.ts");
    await writeFile(reward, "export const computeScore = (): number => 1;\n");
    const told = new URL("../fixtures/told-actors.ts", import.meta.url).href;
    const { report } = await ofBandit(
      "rayling.policy=timed",
      `rayling.critic='${told}:ToldCriticActor'`,
      "rayling.policy_kwargs={seconds: {}}",
      "algorithm.adv_estimator=gae",
      "critic.optim.lr=0.25",
      `reward.custom_reward_function.path=${reward}`,
      "trainer.total_training_steps=1",
    );
    expect(report.metrics[0]?.["critic/lr"]).toBe(0.25);
    const own = await ofBandit(
      `rayling.policy='${told}:ToldPolicyActor'`,
      "rayling.policy_kwargs={seconds: {}}",
      "actor_rollout_ref.actor.optim.lr=0.5",
      `reward.custom_reward_function.path=${reward}`,
      "trainer.total_training_steps=1",
    );
    expect(own.report.metrics[0]?.["actor/lr"]).toBe(0.5);
  });

  test("of the timed policy has its reference on the same GPU, one after the other", async () => {
    const path = join(await folder(), "reward.ts");
    await writeFile(path, "export const computeScore = (): number => 1;\n");
    const { report } = await ofBandit(
      "rayling.policy=timed",
      "rayling.expected_seconds={old_log_prob: 0.2, ref: 0.2, save_checkpoint: 60}",
      "actor_rollout_ref.actor.use_kl_loss=True",
      `reward.custom_reward_function.path=${path}`,
      "trainer.total_training_steps=1",
    );
    const seconds = report.metrics[0] ?? {};
    expect(seconds["timing_s/step"]).toBeGreaterThanOrEqual(0.38);
    // No state was handed over, which would have taken a minute.
    expect(seconds["timing_s/step"]).toBeLessThan(60);
  });

  test("whose warm start fails leaves no actor behind", async () => {
    // No answer comes within a millisecond.
    const failed = run("grpo", "trainer.policy_timeout_ms=1", "rayling.warm_start_steps=1");
    await expect(failed).rejects.toMatchObject({ code: "POLICY_TIMEOUT" });
    const actors = await ray.state.listActors({ filters: [["state", "=", "ALIVE"]] });
    expect(actors).toEqual([]);
  });

  test("in whose folders another process trains is refused before its policy starts, until that is gone", async () => {
    const files = await folder();
    const folders = { one: join(files, "checkpoints"), two: join(files, "rollouts") };
    const source = new URL("../../src/record/output-folders.ts", import.meta.url).href;
    const program = `import { OutputFolders } from ${JSON.stringify(source)};
      await OutputFolders.open(${JSON.stringify(folders)});
      setInterval(() => undefined, 1000);
      process.stdout.write("held");`;
    const other = spawn(process.execPath, ["--input-type=module", "--eval", program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    onTestFinished(() => void other.kill("SIGKILL"));
    await once(other.stdout, "data");
    // An answer of the policy would not come within a millisecond.
    const began = ["trainer.policy_timeout_ms=1", "rayling.warm_start_steps=1"];
    const again = (...more: string[]) => {
      const own = [`rayling.directory=${files}/run`, "trainer.logger=file", ...began, ...more];
      return runTraining(loadTrainerConfig({ name: "grpo", overrides: own }));
    };
    const checkpoints = [`trainer.default_local_dir=${folders.one}`, "trainer.save_freq=1"];
    const pid = other.pid;
    await expect(again(...checkpoints)).rejects.toMatchObject({
      name: "FolderBusyError",
      code: "FOLDER_BUSY",
      pid,
      path: folders.one,
      message: expect.stringContaining(
        `trainer.default_local_dir: ${folders.one} is being trained in by process ${pid}`,
      ) as string,
    });
    await expect(again(`trainer.rollout_data_dir=${folders.two}`)).rejects.toMatchObject({
      code: "FOLDER_BUSY",
      option: "trainer.rollout_data_dir",
    });
    const held = await OutputFolders.open({ three: join(files, "run") });
    const busyRun = { code: "FOLDER_BUSY", option: "rayling.directory", pid: process.pid };
    await expect(again()).rejects.toMatchObject(busyRun);
    await held.close();
    const ended = once(other, "close");
    other.kill("SIGKILL");
    await ended;
    await expect(again(...checkpoints)).rejects.toMatchObject({ code: "POLICY_TIMEOUT" });
    // Neither the killed process nor the runs that failed hold anything.
    expect([await readdir(folders.one), await readdir(join(files, "run"))]).toEqual([[], []]);
  });

  test("whose folders or files cannot be written to is refused before its policy starts", async () => {
    const files = await folder();
    const file = join(files, "file");
    await writeFile(file, "");
    const log = join(files, "log.jsonl");
    const other = await WriterMark.put(log);
    // An answer of the policy would not come within a millisecond.
    const began = ["trainer.policy_timeout_ms=1", "rayling.warm_start_steps=1"];
    await expect(run("grpo", `rayling.directory=${file}`, ...began)).rejects.toMatchObject({
      code: "TRAINER_CONFIG",
      key: "rayling.directory",
    });
    await expect(run("grpo", `reward.record=${log}`, ...began)).rejects.toMatchObject({
      code: "REWARD_LOG_BUSY",
      path: log,
    });
    await other.remove();
  });

  test("whose policy does not say how long prompts are ends, and says so", async () => {
    const scripted = new URL("../fixtures/scripted.ts", import.meta.url).href;
    const hanging = ofBandit(
      `rayling.policy='${scripted}:ScriptedPolicyActor'`,
      "rayling.policy_kwargs={hangs: lengths}",
      "trainer.policy_timeout_ms=2000",
    );
    await expect(hanging).rejects.toMatchObject({
      code: "POLICY_TIMEOUT",
      message: expect.stringMatching(/^the policy, asked for lengths of prompts, has not answered/),
    });
  });

  test("whose data fill no batch is refused", async () => {
    const timed = ["rayling.policy=timed", "rayling.policy_kwargs.seconds={}"];
    await expect(
      ofBandit(...timed, `data.train_files=${await jsonlFile(rowsOf(3))}`),
    ).rejects.toBeInstanceOf(DatasetError);
  });
});
