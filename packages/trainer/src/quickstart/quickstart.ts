/**
 * A training from scratch in about a minute: a tiny policy learns to add, first supervised, then
 * by GRPO from a judge who is as slow, relative to the policy's own work, as the judges of the
 * published runs. Several schedules train from one start, which shows the cost of waiting for
 * rewards under each.
 */

import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import { PromptDataset } from "../data/prompt-dataset.ts";
import { PromptLoader } from "../data/prompt-loader.ts";
import { TrainerInputError } from "../errors.ts";
import { ownModule } from "../values/own-files.ts";
import { workThenClose } from "../values/work-then-close.ts";
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
import { JudgeLatency } from "./judge.ts";
import { quickstartPlan } from "./plan.ts";
import type { QuickstartPlan } from "./plan.ts";
import { settings } from "./settings.ts";

export interface QuickstartOptions {
  /** Default: sync and one-step-off-policy. */
  readonly schedules?: readonly ScheduleName[] | undefined;
  /** Steps of GRPO under each schedule. Default: as many as fit `seconds`, from 70 to 200. */
  readonly steps?: number | undefined;
  /**
   * Seconds that all of it may take. Fewer than 70 steps are not trained, however long they take.
   * Default 75.
   */
  readonly seconds?: number | undefined;
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
  readonly trackingOf?:
    | ((schedule: ScheduleName, steps: number) => Promise<QuickstartTracking>)
    | undefined;
}

export type QuickstartTracking = StepTracker & AsyncDisposable;

export type QuickstartProgress =
  | { readonly phase: "warm start"; readonly steps: number; readonly accuracy: number }
  /** The accuracy of all problems of the test, before GRPO. */
  | ({ readonly phase: "probe" } & Accuracies)
  /** The plan of the training. `computeMs` is a step's time without waiting. */
  | ({ readonly phase: "plan"; readonly computeMs: number } & QuickstartPlan)
  | { readonly phase: "training"; readonly schedule: ScheduleName };

export interface QuickstartRun {
  readonly schedule: ScheduleName;
  readonly steps: number;
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
  /** Number of answers that the judge was asked about. */
  readonly samples: number;
  /** How many of them got no score. */
  readonly invalid: number;
}

export interface QuickstartResult {
  /** Accuracy before GRPO. */
  readonly accuracy: number;
  readonly greedyAccuracy: number;
  /** Number of problems that accuracies are of. */
  readonly problems: number;
  readonly latencyMs: number;
  readonly runs: readonly QuickstartRun[];
}

/** Call it inside a session. Rejects with TrainerInputError, and with what fails in it. */
export async function quickstart(options: QuickstartOptions = {}): Promise<QuickstartResult> {
  const startMs = performance.now();
  const { schedules = ["sync", "one-step-off-policy"], seed = 1, onProgress } = options;
  const { steps: asked, seconds = settings.seconds.all } = options;
  if (asked !== undefined && (!Number.isSafeInteger(asked) || asked < 1)) {
    throw new TrainerInputError("steps", `steps must be a whole number above 0; it is ${asked}`);
  }
  const own = await Quickstart.open(seed);
  return await workThenClose(own, async () => {
    await own.warmStart(options.warmSteps ?? settings.warmSteps.most, onProgress);
    const before = await own.accuracies();
    const start = await own.state();
    onProgress?.({ phase: "probe", ...before });
    const computeMs = await own.computeMs(start);
    const leftMs = 1000 * seconds - (performance.now() - startMs);
    const { latencyMs: latency } = options;
    const plan = quickstartPlan({ computeMs, schedules, leftMs, steps: asked, latencyMs: latency });
    onProgress?.({ phase: "plan", computeMs, ...plan });
    const runs: QuickstartRun[] = [];
    for (const schedule of schedules) {
      onProgress?.({ phase: "training", schedule });
      await using tracking = await options.trackingOf?.(schedule, plan.steps);
      tracking?.log(validationOf(before), 0);
      const run = await own.run({ start, schedule, tracking, ...plan });
      tracking?.log(validationOf(run), run.steps);
      runs.push(run);
    }
    return { ...before, problems: own.problems, latencyMs: plan.latencyMs, runs };
  });
}

/** Accuracies as a validation has them: that of sampled answers, and greedy beside it. */
function validationOf({ accuracy, greedyAccuracy }: Accuracies): Record<string, number> {
  return {
    "val-core/arithmetic/acc/mean@1": accuracy,
    "val-aux/arithmetic/greedy_acc/mean@1": greedyAccuracy,
  };
}

type Accuracies = Pick<QuickstartRun, "accuracy" | "greedyAccuracy">;

/** Long enough for a busy machine. */
const timeout: PolicyTimeout = { policyTimeoutMs: 600_000 };

type Policy = ray.ActorHandle<TinyPolicy>;

interface QuickstartParts {
  readonly policy: Policy;
  /** One for all trainings: what V8 has compiled in its threads stays. */
  readonly reward: RewardLoopManager;
  readonly latency: JudgeLatency;
  readonly train: PromptDataset;
  readonly test: PromptDataset;
  readonly seed: number;
}

class Quickstart {
  readonly #policy: Policy;
  readonly #reward: RewardLoopManager;
  readonly #latency: JudgeLatency;
  readonly #train: PromptDataset;
  readonly #test: PromptDataset;
  readonly #seed: number;

  private constructor({ policy, reward, latency, train, test, seed }: QuickstartParts) {
    this.#policy = policy;
    this.#reward = reward;
    this.#latency = latency;
    this.#train = train;
    this.#test = test;
    this.#seed = seed;
  }

  static async open(seed: number): Promise<Quickstart> {
    const task = arithmeticTask();
    // Before anything starts that would have to be ended.
    const train = await PromptDataset.fromRows(task.train);
    const test = await PromptDataset.fromRows(task.test);
    const latency = new JudgeLatency();
    const reward = await RewardLoopManager.create({
      reward: { path: judgeModule, rewardKwargs: { latency: latency.buffer } },
      workers: 1,
      executors: 1,
      concurrency: settings.slots,
    });
    const policy = TinyPolicyActor.remote({
      alphabet: arithmeticAlphabet,
      contextLength: 12,
      seed,
      ...settings.policy,
    });
    return new Quickstart({ policy, reward, latency, train, test, seed });
  }

  /** Number of problems of a test. */
  get problems(): number {
    return this.#test.length;
  }

  state(): Promise<PolicyState> {
    return answerOf("the policy, asked for its weights,", this.#policy.state.remote(), timeout);
  }

  async close(): Promise<void> {
    try {
      await this.#reward.close();
    } finally {
      await ray.kill(this.#policy);
    }
  }

  /** Trains on the answers until a third of them is right. */
  async warmStart(most: number, onProgress: QuickstartOptions["onProgress"]): Promise<void> {
    const { train } = arithmeticTask();
    const pairs = train.map(({ prompt, reward_model }) => ({
      prompt,
      answer: reward_model.ground_truth,
    }));
    const { each, problems } = settings.warmSteps;
    for (let steps = each; ; steps += each) {
      const answer = this.#policy.supervise.remote({ pairs, steps: each });
      await answerOf("the policy, asked for its warm start,", answer, timeout);
      const accuracy = await this.#accuracy(true, problems);
      onProgress?.({ phase: "warm start", steps, accuracy });
      if (steps >= most) return;
      const { sampled, greedy } = settings.warmAccuracy;
      if (accuracy >= sampled && (await this.#accuracy(false, problems)) >= greedy) return;
    }
  }

  /** Milliseconds of a step without waiting, the median of a few. */
  async computeMs(start: PolicyState): Promise<number> {
    const { warm, measured } = settings.calibration;
    const steps = warm + measured;
    const { metrics } = await this.#fit({ start, schedule: "sync", latencyMs: 0, steps });
    const sorted = metrics
      .slice(warm)
      .map((one) => one["timing_s/step"] ?? 0)
      .toSorted((a, b) => a - b);
    return (sorted[Math.floor(sorted.length / 2)] ?? 0) * 1000;
  }

  async run(fit: Fit): Promise<QuickstartRun> {
    const { schedule, steps } = fit;
    const startMs = performance.now();
    const { metrics } = await this.#fit(fit);
    const seconds = (performance.now() - startMs) / 1000;
    const sumOf = (name: string): number => metrics.reduce((sum, one) => sum + (one[name] ?? 0), 0);
    const calls = metrics.length * settings.trainBatchSize * settings.n;
    const judgeSeconds = (sumOf("reward/latency_mean_s") / metrics.length) * calls;
    return {
      schedule,
      steps,
      seconds,
      ...(await this.accuracies()),
      exposedWaitSeconds: sumOf("reward/exposed_wait_s"),
      slotsBusy: judgeSeconds / (settings.slots * seconds),
      samples: calls,
      invalid: Math.round((sumOf("reward/invalid_rate") / metrics.length) * calls),
    };
  }

  async #fit({ start, schedule, latencyMs, steps, tracking }: Fit): Promise<TrainingReport> {
    const begun = this.#policy.setState.remote(start);
    await answerOf("the policy, given its weights,", begun, timeout);
    const { lr, lrWarmup, minLrRatio } = settings;
    const lrWarmupSteps = Math.max(lrWarmup.least, Math.trunc(lrWarmup.ratio * steps));
    const rates = { lr, lrWarmupSteps, minLrRatio, totalTrainingSteps: steps };
    const set = this.#policy.setOptim.remote({ ...rates, lrSchedulerType: "linear" });
    await answerOf("the policy, given its learning rate,", set, timeout);
    const { trainBatchSize, n, ppoMiniBatchSize, entropyCoeff } = settings;
    this.#latency.set(latencyMs);
    const trainer = await PPOTrainer.create({
      policy: this.#policy,
      prompts: new PromptLoader(this.#train, { batchSize: trainBatchSize, seed: this.#seed }),
      schedule,
      reward: this.#reward,
      rollout: { n, maxResponseLength: 4 },
      algorithm: { rolloutCorrection: settings.rolloutCorrection },
      actor: { ppoMiniBatchSize, entropyCoeff },
      run: { totalTrainingSteps: steps, seed: this.#seed },
      tracking,
    });
    return await workThenClose(trainer, () => trainer.fit());
  }

  /** Returns the accuracy of answers to all problems of the test. */
  async accuracies(): Promise<Accuracies> {
    const accuracy = await this.#accuracy(true, this.problems);
    return { accuracy, greedyAccuracy: await this.#accuracy(false, this.problems) };
  }

  /** @param doSample whether answers are sampled as in training */
  async #accuracy(doSample: boolean, problems: number): Promise<number> {
    const prompts = this.#test.rows.slice(0, problems).map(({ rawPrompt }) => rawPrompt);
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

interface Fit extends Pick<QuickstartPlan, "latencyMs" | "steps"> {
  readonly start: PolicyState;
  readonly schedule: ScheduleName;
  readonly tracking?: StepTracker | undefined;
}

const judgeModule: string = ownModule("quickstart/judge").href;
