/** What a training that goes on takes over from its checkpoint, and what it does not: in this process, from a folder that a run before left. */

import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { get } from "@rayling/core";
import type {
  PolicyHandle,
  PPOTrainerOptions,
  PromptRow,
  RolloutBatch,
  SampleRecord,
  TrainingReport,
} from "@rayling/trainer";
import { PromptDataset, PromptLoader } from "@rayling/trainer";
import { expect, onTestFinished, test } from "vitest";
import { resumeCheckpoint, saveCheckpoint } from "../../src/checkpoint/checkpoint-folder.ts";
import { silentTracker } from "../../src/tracking/step-tracker.ts";
import { BanditActor } from "../fixtures/bandit.ts";
import { GradientLogActor } from "../fixtures/gradient-log.ts";
import { rewardsPath, scoredTrainings } from "../fixtures/scored-training.ts";
import { ConcurrentPolicyActor } from "../fixtures/scripted.ts";

const LATEST = "latest_checkpointed_iteration.txt";

const { dataset, trained } = await scoredTrainings();

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "rayling-resumed-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

const nowMs = (): number => performance.timeOrigin + performance.now();

test("a step that begins behind a validation does not count the validation's time", async () => {
  const folder = await newFolder();
  for (const totalTrainingSteps of [1, 2]) {
    const told: { readonly atMs: number; readonly seconds: number | undefined }[] = [];
    const log = (metrics: Readonly<Record<string, number>>): void => {
      told.push({ atMs: nowMs(), seconds: metrics["timing_s/step"] });
    };
    const { report } = await trained("halves", {
      validationPrompts: dataset(),
      checkpoints: { folder },
      run: { totalTrainingSteps, saveFreq: 1 },
      tracking: { ...silentTracker, log },
    });
    expect(report.metrics.map((one) => one["training/global_step"])).toEqual([
      totalTrainingSteps - 1,
      totalTrainingSteps,
    ]);
    const [validated, step] = told;
    expect(validated?.seconds).toBeUndefined();
    const between = ((step?.atMs ?? 0) - (validated?.atMs ?? 0)) / 1000;
    expect(step?.seconds).toBeLessThanOrEqual(between + 1e-6);
  }
});

test("validations are compared with the first one of the run, which its checkpoint has, and else with that of the checkpoint", async () => {
  const [folder, older] = [await newFolder(), await newFolder()];
  const mean = "val-core/scripted/acc/mean@2";
  const warned: [number, string][] = [];
  const run = async (
    name: string,
    totalTrainingSteps: number,
    more: Partial<PPOTrainerOptions> = {},
  ): Promise<TrainingReport> => {
    warned.length = 0;
    const { report } = await trained(name, {
      validationPrompts: dataset(),
      checkpoints: { folder },
      run: { totalTrainingSteps, saveFreq: 1 },
      rollout: { n: 2, maxResponseLength: 1, validation: { n: 2, doSample: true } },
      tracking: {
        ...silentTracker,
        warning: (step, message) => void warned.push([step, message]),
      },
      ...more,
    });
    return report;
  };
  const first = await run("evenSame", 1);
  expect(first).toMatchObject({ initialValidation: { [mean]: 0.75 }, initialValidationStep: 0 });
  // A run of before, whose checkpoints have no first validation.
  const kept = await resumeCheckpoint({ folder });
  expect(kept?.trainer).toMatchObject({ firstValidation: { step: 0, metrics: { [mean]: 0.75 } } });
  const trainer = { ...(kept?.trainer as object), firstValidation: undefined };
  await saveCheckpoint({ ...kept!, trainer }, { folder: older });

  const second = await run("laterThrow", 2);
  expect(second).toMatchObject({
    initialValidation: { [mean]: 0.75 },
    initialValidationStep: 0,
    validation: { [mean]: 0.5 },
    warnings: [expect.stringContaining("step 1 is below that of step 0")],
  });
  expect(warned).toEqual([[1, second.warnings[0]]]);
  const again = await resumeCheckpoint({ folder });
  expect(again).toMatchObject({ globalStep: 2, trainer: { firstValidation: { step: 0 } } });
  const other = await PromptDataset.fromRows(dataset().rows.slice(1).map(rowOf));
  expect(await run("laterThrow", 2, { validationPrompts: other })).toMatchObject({
    initialValidationStep: 2,
    warnings: [],
  });
  expect(await run("laterThrow", 2, { checkpoints: { folder: older } })).toMatchObject({
    initialValidation: { [mean]: 0.5 },
    initialValidationStep: 1,
    warnings: [],
  });
});

function rowOf({ rawPrompt, dataSource }: PromptRow): Record<string, unknown> {
  return { prompt: rawPrompt, data_source: dataSource, reward_model: { ground_truth: "" } };
}

test("a fixed coefficient of the divergence is the configuration's, an adaptive one the checkpoint's", async () => {
  const coefficientsOf = async (type: "fixed" | "adaptive"): Promise<(number | undefined)[]> => {
    const folder = await newFolder();
    const coefficients: (number | undefined)[] = [];
    for (const [klCoef, totalTrainingSteps] of [
      [0.25, 1],
      [0.5, 2],
    ] as const) {
      const { report } = await trained("halves", {
        referencePolicy: GradientLogActor.remote(""),
        algorithm: { useKlInReward: true, klCtrl: { type, klCoef, horizon: 1e9, targetKl: 0.1 } },
        checkpoints: { folder },
        run: { totalTrainingSteps, saveFreq: 1 },
      });
      coefficients.push(report.metrics[0]?.["actor/reward_kl_penalty_coeff"]);
    }
    return coefficients;
  };
  expect(await coefficientsOf("fixed")).toEqual([0.25, 0.5]);
  expect(await coefficientsOf("adaptive")).toEqual([0.25, expect.closeTo(0.25, 6)]);
});

/** A policy of the prompts "0" to "3", or the reference of one, that prefers the token 0 so much. */
async function banditWith(bias: number): Promise<PolicyHandle> {
  const policy = BanditActor.remote({ prompts: 4, lr: 1 });
  const logits = Float32Array.from({ length: 16 }, (_, at) => (at % 4 === 0 ? bias : 0));
  await get(policy.setState.remote({ version: 0, weights: { logits }, optimizer: {} }));
  return policy;
}

test("a run that goes on takes its divergence from the reference policy of its start, whatever reference it is given", async () => {
  const folder = await newFolder();
  const warned: string[] = [];
  const note = ({ message }: Error): void => void warned.push(message);
  process.on("warning", note);
  onTestFinished(() => void process.off("warning", note));
  const run = async (
    bias: number,
    totalTrainingSteps: number,
    checkpoints: PPOTrainerOptions["checkpoints"],
  ): Promise<{ readonly klLoss: number | undefined; readonly weights: unknown }> => {
    const referencePolicy = await banditWith(bias);
    const { report } = await trained("firstFourScore", {
      policy: BanditActor.remote({ prompts: 4, lr: 1 }),
      referencePolicy,
      actor: { useKlLoss: true },
      checkpoints,
      run: { totalTrainingSteps, saveFreq: 1 },
    });
    const { weights } = await get(referencePolicy.state.remote());
    return { klLoss: report.metrics.at(-1)?.["actor/kl_loss"], weights };
  };
  const straight = await run(1, 2, { folder: await newFolder() });
  await run(1, 1, { folder });
  expect(await run(5, 2, { folder })).toEqual(straight);
  expect(warned).toEqual([
    expect.stringMatching(/global_step_1.*other weights.*rayling\.warm_start_steps.*reference-/),
  ]);

  const path = join(folder, "global_step_1");
  const copy = await newFolder();
  const [file = ""] = (await readdir(folder)).filter((name) => name.startsWith("reference-"));
  await writeFile(join(folder, file), "damaged");
  await expect(run(5, 2, { folder: copy, resumePath: path })).rejects.toMatchObject({
    code: "CHECKPOINT_DAMAGED",
  });
  // Without the file only the same reference will do.
  await rm(join(folder, file));
  await expect(run(5, 2, { folder: copy, resumePath: path })).rejects.toMatchObject({
    name: "TrainerInputError",
    input: "referencePolicy",
    message: expect.stringMatching(
      /global_step_1.*rayling\.warm_start_steps.*reference-.*disable/s,
    ),
  });
  expect(await run(1, 2, { folder: copy, resumePath: path })).toEqual(straight);

  // Earlier versions kept nothing of it.
  const older = await newFolder();
  const kept = await resumeCheckpoint({ folder, mode: "resume_path", path });
  const trainer = { ...(kept?.trainer as object), referenceSha256: undefined };
  await saveCheckpoint({ ...kept!, trainer }, { folder: older });
  expect((await run(5, 2, { folder: older })).klLoss).toBeGreaterThan(straight.klLoss ?? 0);
  expect(warned).toHaveLength(1);
});

/** With a batch that is generated ahead of its step. */
const ahead = {
  schedule: "streaming",
  staleness: { limit: 1, numWarmupBatches: 1 },
} as const;

async function resumed(more: Partial<PPOTrainerOptions>): Promise<{
  readonly metrics: Readonly<Record<string, number>>;
  readonly told: readonly SampleRecord[];
  readonly resumedMs: number;
}> {
  const folder = await newFolder();
  // Stops as a killed one does: step 2 is generated, and not trained.
  const stop = new Error("stopped");
  const stopped = trained("halves", {
    ...ahead,
    checkpoints: { folder },
    run: { totalTrainingSteps: 3, saveFreq: 1 },
    tracking: {
      ...silentTracker,
      samples: (step) => {
        if (step === 2) throw stop;
      },
    },
  });
  await expect(stopped).rejects.toBe(stop);
  const resumedMs = nowMs();
  const told: SampleRecord[] = [];
  const { report } = await trained("halves", {
    ...ahead,
    checkpoints: { folder },
    run: { totalTrainingSteps: 2 },
    tracking: { ...silentTracker, samples: (_step, samples) => void told.push(...samples) },
    ...more,
  });
  return { metrics: report.metrics[0] ?? {}, told, resumedMs };
}

test("groups that were generated ahead are dropped where the limit no longer allows for them, and counted", async () => {
  const { metrics } = await resumed({ staleness: { limit: 0 } });
  expect(metrics["training/off_policy/evicted_samples"]).toBe(8);
  expect(metrics["training/off_policy/trajectory_staleness_worst/max"]).toBe(0);
});

test("groups of another size are refused, by the name of what was changed", async () => {
  await expect(resumed({ rollout: { n: 3, maxResponseLength: 4 } })).rejects.toMatchObject({
    name: "TrainerInputError",
    input: "rollout.n",
    message: expect.stringMatching(
      /the checkpoint .*global_step_1: rollout\.n is 3, .* it was 2: resume with 2\. .*resume_mode/,
    ),
  });
});

test("another run's checkpoint is refused with its path, what differs, and the way out", async () => {
  const other = resumed({ prompts: new PromptLoader(dataset(), { batchSize: 2 }) });
  await expect(other).rejects.toMatchObject({
    name: "TrainerInputError",
    message: expect.stringMatching(
      /the checkpoint .*global_step_1: batchSize is 2 here and was 4 there \(data\.train_batch_size\).*\. Else checkpoints\.resumeMode \(trainer\.resume_mode\) disable/,
    ),
  });
});

test("weights that a policy does not take are refused with the checkpoint's path, and the way out", async () => {
  const other = resumed({ policy: ConcurrentPolicyActor.remote({ refusesWeights: true }) });
  await expect(other).rejects.toMatchObject({
    name: "TrainerInputError",
    input: "policy",
    message: expect.stringMatching(
      /the checkpoint .*global_step_1: the policy does not take its weights .*rayling\.policy.*: .*weights of another model.*resume_mode/s,
    ),
  });
});

test("what was generated before a pause counts from the end of the pause", async () => {
  const { metrics, told, resumedMs } = await resumed({});
  expect(metrics["training/off_policy/trajectory_staleness_worst/max"]).toBe(1);
  expect(told).toHaveLength(8);
  for (const { generatedMs, scoredMs } of told) {
    expect(generatedMs).toBeGreaterThanOrEqual(resumedMs);
    expect(scoredMs).toBeGreaterThanOrEqual(generatedMs);
  }
});

test("a training whose directory changes under way has its checkpoints and rollouts where it began", async () => {
  const [begun, elsewhere] = [await newFolder(), await newFolder()];
  const before = process.cwd();
  onTestFinished(() => process.chdir(before));
  process.chdir(begun);
  const log = (): void => process.chdir(elsewhere);
  await trained("halves", {
    validationPrompts: dataset(),
    checkpoints: { folder: "checkpoints" },
    rolloutDataDir: "rollouts",
    validationDataDir: "validations",
    run: { totalTrainingSteps: 2, saveFreq: 1, testFreq: 1, valBeforeTrain: false },
    tracking: { ...silentTracker, log },
  });
  expect(await readdir(elsewhere)).toEqual([]);
  const folders = ["checkpoints", "rollouts", "validations"];
  const found = await Promise.all(folders.map((name) => readdir(join(begun, name))));
  expect(found.map((names) => names.filter((name) => name !== LATEST).toSorted())).toEqual([
    ["global_step_1", "global_step_2"],
    ["1.jsonl", "2.jsonl"],
    ["1.jsonl", "2.jsonl"],
  ]);
});

test("the validation of a step is told before the checkpoint of the next is there", async () => {
  const folder = await newFolder();
  const latest = join(folder, LATEST);
  const saved: string[] = [];
  await trained("halves", {
    schedule: "one-step-off-policy",
    validationPrompts: dataset(),
    checkpoints: { folder },
    run: { totalTrainingSteps: 3, saveFreq: 1, testFreq: 1, valBeforeTrain: false },
    tracking: {
      ...silentTracker,
      log: (metrics, step) => {
        if (!Object.keys(metrics).some((name) => name.startsWith("val-"))) return;
        saved.push(`${step}: ${existsSync(latest) ? readFileSync(latest, "utf8").trim() : "none"}`);
      },
    },
  });
  expect(saved).toEqual(["1: 1", "2: 2", "3: 3"]);
});

test("a schedule reports, saves and validates where it says so", async () => {
  const folder = await newFolder();
  const logged: string[] = [];
  const seen: string[] = [];
  const note = (call: string): void => {
    const saved = existsSync(join(folder, "global_step_1")) ? "saved" : "not saved";
    const validated = logged.some((name) => name.startsWith("val-")) ? "validated" : "";
    seen.push(`${call}: ${saved} ${validated}`.trim());
  };
  await trained("halves", {
    validationPrompts: dataset(),
    checkpoints: { folder },
    tracking: { ...silentTracker, log: (metrics) => void logged.push(...Object.keys(metrics)) },
    schedule: async (training) => {
      const prepared = await training.prepare((await training.rollout()) as RolloutBatch);
      await training.learn(prepared, training.left(prepared));
      expect(logged).toEqual([]);
      await training.report();
      expect(logged).toContain("training/global_step");
      note("report");
      await training.save();
      note("save");
      await training.validate();
      note("validate");
      expect(logged).toContain("timing_s/save_checkpoint");
    },
    run: { saveFreq: 1, testFreq: 1, valBeforeTrain: false, overlapValidation: false },
  });
  expect(seen).toEqual(["report: not saved", "save: saved", "validate: saved validated"]);
});

test("what a schedule begins between report and validate is of the next step", async () => {
  const folder = await newFolder();
  const { report } = await trained("halves", {
    checkpoints: { folder },
    schedule: async (training) => {
      let batch = await training.rollout();
      while (batch !== undefined) {
        const prepared = await training.prepare(batch);
        await training.learn(prepared, training.left(prepared));
        await training.report();
        batch = await training.rollout();
        await training.save();
        await training.validate();
      }
    },
    run: { totalTrainingSteps: 3, saveFreq: 1 },
  });
  expect(report.metrics.map((one) => one["training/global_step"])).toEqual([1, 2, 3]);
  expect(report.metrics.every((one) => "timing_s/save_checkpoint" in one)).toBe(true);
  expect(existsSync(join(folder, "global_step_3"))).toBe(true);
});

test.each(["save", "validate"] as const)(
  "%s before report is refused by its name",
  async (call) => {
    const early = trained("halves", {
      schedule: async (training) => {
        await training.rollout();
        await training[call]();
      },
    });
    await expect(early).rejects.toMatchObject({
      code: "NO_FINISHED_STEP",
      message: `${call}() was called without report() before it: no step is finished`,
    });
  },
);

test("what a checkpoint has ahead is trained as far as there are steps, under another schedule, too", async () => {
  const folder = await newFolder();
  const common = { checkpoints: { folder }, actor: { ppoMiniBatchSize: 4 } };
  await trained("halves", {
    ...common,
    // Ends with three batches ahead.
    schedule: async (training) => {
      const [first] = [await training.rollout(), await training.rollout()];
      for (let more = 0; more < 2; more++) await training.rollout();
      const prepared = await training.prepare(first as RolloutBatch);
      await training.learn(prepared, training.left(prepared));
      await training.endStep();
    },
    run: { totalTrainingSteps: 4, saveFreq: 1 },
  });
  for (const schedule of ["sync", "one-step-off-policy"] as const) {
    const { report } = await trained("halves", {
      ...common,
      schedule,
      run: { totalTrainingSteps: 3 },
    });
    expect(report.steps).toBe(3);
    expect(report.metrics).toHaveLength(2);
  }
});

test("the size of a mini-batch that adapts goes on where it was", async () => {
  const folder = await newFolder();
  const sizes: number[] = [];
  let calls = 0;
  for (const totalTrainingSteps of [1, 2]) {
    await trained("halves", {
      checkpoints: { folder },
      adaptiveMiniBatch: true,
      actor: { ppoMiniBatchSize: 4 },
      // What was waited for takes as long as what is done with it.
      now: () => ++calls,
      schedule: async (training) => {
        const prepared = await training.prepare((await training.rollout()) as RolloutBatch);
        sizes.push(training.nextPart(training.left(prepared)).least);
        await training.learn(prepared, training.left(prepared));
        await training.endStep();
      },
      run: { totalTrainingSteps, saveFreq: 1 },
    });
  }
  // Two answers to each prompt.
  expect(sizes).toEqual([8, 4]);
});

/** Trains one step with the next one's batch generated, and its rewards there, and stops. */
const oneAhead: PPOTrainerOptions["schedule"] = async (training) => {
  const batches = [await training.rollout(), await training.rollout()] as RolloutBatch[];
  await Promise.all(batches.map(({ rewards }) => rewards.whenSettled()));
  const prepared = await training.prepare(batches[0] as RolloutBatch);
  await training.learn(prepared, training.left(prepared));
  await training.endStep();
};

test("scores of a run before take no slot of this one", async () => {
  const folder = await newFolder();
  const run = { totalTrainingSteps: 2, saveFreq: 1 };
  const before = await trained("halves", { checkpoints: { folder }, schedule: oneAhead, run });
  expect(before.report.metrics[0]).toHaveProperty(["reward/pool_util"]);
  const { report } = await trained("halves", { checkpoints: { folder }, run });
  const [metrics = {}] = report.metrics;
  expect(metrics).toMatchObject({ "training/global_step": 2, "reward/invalid_rate": 0 });
  expect(metrics["reward/latency_max_s"]).toBeGreaterThan(0);
  for (const name of ["reward/pool_util", "reward/inflight", "overlap_ratio"]) {
    expect(metrics).not.toHaveProperty([name]);
  }
});

test("whatever a score function tells besides is no reason for a checkpoint to fail: it comes back as far as it has words", async () => {
  const folder = await newFolder();
  const run = { totalTrainingSteps: 2, saveFreq: 1 };
  await trained("tellsThings", { checkpoints: { folder }, schedule: oneAhead, run });
  const told: SampleRecord[] = [];
  await trained("tellsThings", {
    checkpoints: { folder },
    run,
    tracking: { ...silentTracker, samples: (_step, samples) => void told.push(...samples) },
  });
  expect(told).toHaveLength(8);
  for (const { outcome } of told) {
    expect(outcome).toMatchObject({
      valid: true,
      rewardExtraInfo: { why: "RangeError: far", at: "http://a.test/" },
    });
  }
});

test("a batch that is still generated when a checkpoint is kept is in it", async () => {
  const folder = await newFolder();
  const log = join(folder, "calls");
  // Answers while it generates, as one behind a server does.
  const policyOf = () => ConcurrentPolicyActor.remote({ log, seconds: { gen: 0.4 } });
  const stop = new Error("stopped");
  const run = { totalTrainingSteps: 2, saveFreq: 1 };
  const checkpoints = { folder: join(folder, "checkpoints") };
  const stopped = trained("halves", {
    policy: policyOf(),
    checkpoints,
    run,
    schedule: async (training) => {
      const prepared = await training.prepare((await training.rollout()) as RolloutBatch);
      await training.learn(prepared, training.left(prepared));
      const next = training.rollout();
      await training.endStep();
      await next;
      throw stop;
    },
  });
  await expect(stopped).rejects.toBe(stop);
  const idsOf = async (more: Partial<PPOTrainerOptions>): Promise<unknown[]> => {
    const ids: string[] = [];
    const samples = (step: number, some: readonly SampleRecord[]): void => {
      if (step === 2) ids.push(...some.map(({ id }) => id));
    };
    await trained("halves", {
      policy: policyOf(),
      run,
      tracking: { ...silentTracker, samples },
      ...more,
    });
    return ids.toSorted();
  };
  const ofResumed = await idsOf({ checkpoints });
  expect(ofResumed).toHaveLength(8);
  const ofOther = await idsOf({ checkpoints: { folder: await newFolder() } });
  expect(ofResumed).toEqual(ofOther);
  // Each batch once by the run that was stopped, and twice by the other: nothing was generated again.
  expect(readFileSync(log, "utf8").match(/^gen /gm)).toHaveLength(4);
});

test("scores of the log that the loop goes on with count as known before: nothing was called for them", async () => {
  const record = join(await newFolder(), "rewards.jsonl");
  const own = { reward: { path: rewardsPath, name: "halves" }, workers: 1, executors: 1, record };
  const metricsOf = async (resume: boolean): Promise<Readonly<Record<string, number>>> => {
    const { report } = await trained("", { reward: { ...own, resume } });
    return report.metrics[0] ?? {};
  };
  const first = await metricsOf(false);
  expect(first["reward/cached_rate"]).toBe(0);
  expect(first["reward/inflight"]).toBeGreaterThan(0);
  const again = await metricsOf(true);
  expect(again).toMatchObject({ "reward/cached_rate": 1, "reward/invalid_rate": 0 });
  expect(again["critic/score/mean"]).toBe(first["critic/score/mean"]);
  expect(again["reward/inflight"] ?? 0).toBe(0);
  expect(again["reward/pool_util"] ?? 0).toBe(0);
  expect(again).not.toHaveProperty("reward/latency_mean_s");
});
