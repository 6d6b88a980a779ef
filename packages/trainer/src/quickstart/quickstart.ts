/**
 * A training from scratch in a minute or two: a tiny policy learns to add, first supervised, then
 * by GRPO from a judge who is as slow, relative to the policy's own work, as the judges of the
 * published runs. Several schedules train from one start, which shows the cost of waiting for
 * rewards under each.
 */

import * as ray from "@rayling/core";
import { PromptDataset } from "../data/prompt-dataset.ts";
import { PromptLoader } from "../data/prompt-loader.ts";
import { TrainerInputError } from "../errors.ts";
import type { ScheduleName } from "../settings/program-options.ts";
import type { StepTracker } from "../tracking/step-tracker.ts";
import { answerOf, partsOf } from "../policy/policy-answers.ts";
import type { PolicyTimeout } from "../policy/policy-answers.ts";
import type { PolicyState } from "../policy/policy.ts";
import { TinyPolicyActor } from "../policy/tiny/tiny-policy.ts";
import type { TinyPolicy } from "../policy/tiny/tiny-policy.ts";
import { PPOTrainer } from "../ppo-trainer.ts";
import type { TrainingReport } from "../ppo-trainer.ts";
import { arithmeticAlphabet, arithmeticTask } from "../tasks/arithmetic.ts";

export interface QuickstartOptions {
  /** Default: sync and one-step-off-policy. */
  readonly schedules?: readonly ScheduleName[] | undefined;
  /** Steps of GRPO under each schedule. Default 200. */
  readonly steps?: number | undefined;
  readonly seed?: number | undefined;
  /**
   * Time of the judge's slowest answer. Default: waiting is to the policy's own work as in the
   * published runs.
   */
  readonly latencyMs?: number | undefined;
  /** Largest number of steps of the warm start. Default 1500. */
  readonly warmSteps?: number | undefined;
  readonly onProgress?: ((progress: QuickstartProgress) => void) | undefined;
  /** Creates the tracking of a schedule's steps. */
  readonly trackingOf?: ((schedule: ScheduleName) => Promise<QuickstartTracking>) | undefined;
}

export type QuickstartTracking = StepTracker & AsyncDisposable;

export type QuickstartProgress =
  | { readonly phase: "warm start"; readonly steps: number; readonly accuracy: number }
  | { readonly phase: "calibration"; readonly computeMs: number; readonly latencyMs: number }
  | { readonly phase: "training"; readonly schedule: ScheduleName };

export interface QuickstartRun {
  readonly schedule: ScheduleName;
  /** Seconds of all steps of GRPO. */
  readonly seconds: number;
  /** Share of right answers to problems that were never trained on, sampled. */
  readonly accuracy: number;
  /** Accuracy of the likeliest answers, as verl validates. */
  readonly greedyAccuracy: number;
  /** In which the training had nothing to do but to wait for rewards. */
  readonly exposedWaitSeconds: number;
  /** Share of the judge's time that he was asked. */
  readonly slotsBusy: number;
}

export interface QuickstartResult {
  /** Accuracy before GRPO. */
  readonly accuracy: number;
  readonly greedyAccuracy: number;
  readonly latencyMs: number;
  readonly runs: readonly QuickstartRun[];
}

/** presets/grpo.yaml has the same settings. */
export const settings = {
  trainBatchSize: 32,
  n: 8,
  ppoMiniBatchSize: 32,
  // Seeds 1 to 4 rise by 33 to 51 points in 200 steps.
  lr: 3e-3,
  /**
   * Adam's first steps are as long as they may be, in any direction: without this, half of the warm
   * start is lost in them.
   */
  lrWarmupStepsRatio: 0.07,
  minLrRatio: 0,
  /**
   * Without it the policy is sure of its wrong answers, too, before it has tried others: a group
   * that is all wrong teaches nothing.
   */
  entropyCoeff: 0.01,
  /**
   * The ratio of the loss is to the policy that made the rollout, which is the step's own under
   * sync and one update older under one-step-off-policy: clipping then bounds how far old rollouts
   * can lead. Without it a learning rate like this one makes what is learned from old rollouts
   * collapse.
   */
  rolloutCorrection: { bypassMode: true },
  /** Rewards at a time. */
  slots: 32,
  /**
   * The warm start ends there: sampled, and greedy. Before it knows how to carry a one, greedy
   * stays below a half, and GRPO finds it out slowly.
   */
  warmAccuracy: { sampled: 0.33, greedy: 0.6 },
  warmSteps: { each: 25, most: 1500 },
  /**
   * Waiting over computing in the published 7B baseline: 427 s of rewards over 238 s of generation,
   * log-probabilities and update.
   */
  waitPerCompute: 1.794,
  /** Steps that are thrown away, and measured. */
  calibration: { warm: 4, measured: 8 },
} as const;

/** Call it inside a session. Rejects with TrainerInputError, and with what fails in it. */
export async function quickstart(options: QuickstartOptions = {}): Promise<QuickstartResult> {
  const { schedules = ["sync", "one-step-off-policy"], steps = 200, seed = 1 } = options;
  if (!Number.isSafeInteger(steps) || steps < 1) {
    throw new TrainerInputError("steps", `steps must be a whole number above 0; it is ${steps}`);
  }
  const own = await Quickstart.open(seed, steps);
  try {
    const accuracy = await own.warmStart(
      options.warmSteps ?? settings.warmSteps.most,
      options.onProgress,
    );
    const greedyAccuracy = await own.accuracy(false);
    const start = await own.state();
    const latencyMs = options.latencyMs ?? (await own.calibrate(start, options.onProgress));
    const runs: QuickstartRun[] = [];
    for (const schedule of schedules) {
      options.onProgress?.({ phase: "training", schedule });
      await using tracking = await options.trackingOf?.(schedule);
      runs.push(await own.run(start, schedule, latencyMs, tracking));
    }
    return { accuracy, greedyAccuracy, latencyMs, runs };
  } finally {
    await own.close();
  }
}

/** Long enough for a busy machine. */
const timeout: PolicyTimeout = { policyTimeoutMs: 600_000 };

type Policy = ray.ActorHandle<TinyPolicy>;

class Quickstart {
  readonly #policy: Policy;
  readonly #train: PromptDataset;
  readonly #test: PromptDataset;
  readonly #seed: number;
  readonly #steps: number;

  private constructor(
    policy: Policy,
    train: PromptDataset,
    test: PromptDataset,
    run: { readonly seed: number; readonly steps: number },
  ) {
    this.#policy = policy;
    this.#train = train;
    this.#test = test;
    this.#seed = run.seed;
    this.#steps = run.steps;
  }

  static async open(seed: number, steps: number): Promise<Quickstart> {
    const { train, test } = arithmeticTask();
    const policy = TinyPolicyActor.remote({
      alphabet: arithmeticAlphabet,
      contextLength: 12,
      seed,
      optim: {
        lr: settings.lr,
        lrWarmupStepsRatio: settings.lrWarmupStepsRatio,
        lrSchedulerType: "linear",
        totalTrainingSteps: steps,
        minLrRatio: settings.minLrRatio,
      },
    });
    const trained = await PromptDataset.fromRows(train);
    const tested = await PromptDataset.fromRows(test);
    return new Quickstart(policy, trained, tested, { seed, steps });
  }

  state(): Promise<PolicyState> {
    return answerOf("the policy, asked for its weights,", this.#policy.state.remote(), timeout);
  }

  close(): Promise<void> {
    return ray.kill(this.#policy);
  }

  /** Trains on the answers until a third of them is right. Returns that share. */
  async warmStart(most: number, onProgress: QuickstartOptions["onProgress"]): Promise<number> {
    const { train } = arithmeticTask();
    const pairs = train.map(({ prompt, reward_model }) => ({
      prompt,
      answer: reward_model.ground_truth,
    }));
    const { each } = settings.warmSteps;
    for (let steps = each; ; steps += each) {
      const answer = this.#policy.supervise.remote({ pairs, steps: each });
      await answerOf("the policy, asked for its warm start,", answer, timeout);
      const accuracy = await this.accuracy();
      onProgress?.({ phase: "warm start", steps, accuracy });
      if (steps >= most) return accuracy;
      const { sampled, greedy } = settings.warmAccuracy;
      if (accuracy >= sampled && (await this.accuracy(false)) >= greedy) return accuracy;
    }
  }

  /** How slow the judge has to be. */
  async calibrate(
    start: PolicyState,
    onProgress: QuickstartOptions["onProgress"],
  ): Promise<number> {
    const { warm, measured } = settings.calibration;
    const { metrics } = await this.#fit(start, "sync", { latencyMs: 0, steps: warm + measured });
    const sorted = metrics
      .slice(warm)
      .map((one) => one["timing_s/step"] ?? 0)
      .toSorted((a, b) => a - b);
    const computeMs = (sorted[Math.floor(sorted.length / 2)] ?? 0) * 1000;
    const { slots, n, trainBatchSize, waitPerCompute } = settings;
    // The slots' share of all answers, which take half of the slowest on average, and the last
    // ones, when some slots have nothing left to do.
    const slowest = (trainBatchSize * n) / slots / 2 + 0.6;
    const latencyMs = (computeMs * waitPerCompute) / slowest;
    onProgress?.({ phase: "calibration", computeMs, latencyMs });
    return latencyMs;
  }

  async run(
    start: PolicyState,
    schedule: ScheduleName,
    latencyMs: number,
    tracking: StepTracker | undefined,
  ): Promise<QuickstartRun> {
    const startMs = performance.now();
    const { metrics } = await this.#fit(start, schedule, {
      latencyMs,
      steps: this.#steps,
      tracking,
    });
    const seconds = (performance.now() - startMs) / 1000;
    const sumOf = (name: string): number => metrics.reduce((sum, one) => sum + (one[name] ?? 0), 0);
    const calls = metrics.length * settings.trainBatchSize * settings.n;
    const judgeSeconds = (sumOf("reward/latency_mean_s") / metrics.length) * calls;
    return {
      schedule,
      seconds,
      accuracy: await this.accuracy(),
      greedyAccuracy: await this.accuracy(false),
      exposedWaitSeconds: sumOf("reward/exposed_wait_s"),
      slotsBusy: judgeSeconds / (settings.slots * seconds),
    };
  }

  async #fit(
    start: PolicyState,
    schedule: ScheduleName,
    more: {
      readonly latencyMs: number;
      readonly steps: number;
      readonly tracking?: StepTracker | undefined;
    },
  ): Promise<TrainingReport> {
    const { latencyMs, steps, tracking } = more;
    const begun = this.#policy.setState.remote(start);
    await answerOf("the policy, given its weights,", begun, timeout);
    const { trainBatchSize, n, ppoMiniBatchSize, entropyCoeff, slots } = settings;
    await using trainer = await PPOTrainer.create({
      policy: this.#policy,
      prompts: new PromptLoader(this.#train, { batchSize: trainBatchSize, seed: this.#seed }),
      schedule,
      reward: {
        reward: { path: judgeModule, rewardKwargs: { latencyMs } },
        workers: 1,
        executors: 1,
        concurrency: slots,
      },
      rollout: { n, maxResponseLength: 4 },
      algorithm: { rolloutCorrection: settings.rolloutCorrection },
      actor: { ppoMiniBatchSize, entropyCoeff },
      run: { totalTrainingSteps: steps, seed: this.#seed },
      tracking,
    });
    return await trainer.fit();
  }

  /** Returns the accuracy of answers to the test's problems, sampled as in training. */
  async accuracy(doSample: boolean = true): Promise<number> {
    const prompts = this.#test.rows.map(({ rawPrompt }) => rawPrompt);
    const request = { prompts, maxResponseLength: 4, doSample, seed: this.#seed };
    let right = 0;
    const parts = this.#policy.generate.remote(request);
    for await (const rollouts of partsOf("the policy, asked for answers,", parts, timeout)) {
      for (const { prompt, response } of rollouts) {
        if (response === this.#test.rows[prompt]?.groundTruth) right += 1;
      }
    }
    return right / prompts.length;
  }
}

/** From source and installed. */
const judgeModule: string = new URL(`./judge${import.meta.url.slice(-3)}`, import.meta.url).href;
