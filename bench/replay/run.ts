/**
 * One replay: the real trainer, the real reward loop and a policy that takes the recorded times,
 * all of them divided by the scale.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import {
  PPOTrainer,
  PromptDataset,
  PromptLoader,
  TimedPolicyActor,
  Tracking,
} from "@rayling/trainer";
import type { PhaseRecord, StepTracker } from "@rayling/trainer";
import { AnsweringPolicyActor, rightAnswer } from "./answering-policy.ts";
import { CallCounts } from "./judge.ts";
import type { JudgeSettings } from "./judge.ts";
import type { ReplayPlan } from "./plans.ts";
import { workload } from "./recorded.ts";

export interface ReplayScale {
  readonly scale: number;
  readonly steps: number;
  /** Prompts of a batch: fewer for a short try. */
  readonly trainBatchSize: number;
  /** Folder for a page with the phases of each run. */
  readonly report: string;
}

export interface ReplayResult {
  /** As they would have been without the scale: from the end of step 1 to the end of the last. */
  readonly seconds: number;
  /** As `seconds`, with step 1, from the first phase on. */
  readonly allSeconds: number;
  /** The share of the slots' time, from the first reward to the last, in which the judge ran. */
  readonly busy: number;
  /** The sum of all steps, without the scale. */
  readonly exposedWaitSeconds: number;
  /** Calls of the judge for the training, those that were cut off among them. */
  readonly calls: number;
  /** How long calls really took on average, without the scale. */
  readonly meanLatencySeconds: number;
  readonly meanScore: number;
  /** A number of all samples' texts and scores, in any order: equal samples scored alike. */
  readonly verdicts: number;
  /** That were trained. */
  readonly samples: number;
  /** Different ones among them. */
  readonly distinct: number;
  /** That have a score: no call was skipped. */
  readonly scored: number;
  readonly worstStaleness: number;
  readonly phases: readonly PhaseRecord[];
}

const judgeModule: string = new URL("judge.ts", import.meta.url).href;
const workers = 2;
/** Many rows may start together. */
const startTimeoutMs = 600_000;

export interface ReplayListener {
  /** All that the row needs is there, and its first rollouts are. */
  readonly started: () => void;
  readonly progress: (text: string) => void;
}

/** Call it inside a session. */
export async function replay(
  plan: ReplayPlan,
  size: ReplayScale,
  say: ReplayListener,
): Promise<ReplayResult> {
  const { scale, steps, trainBatchSize } = size;
  const actor = plan.answersRepeat ? AnsweringPolicyActor : TimedPolicyActor;
  const policy = actor.remote({
    seconds: { ...plan.recorded.seconds, save_checkpoint: plan.recorded.saveSeconds },
    scale,
    rowsPerStep: trainBatchSize * workload.n,
    // The recorded time of gen has the recipe's own hand-over of the rollouts in it, so ours belongs
    // into it too. The recipe's validation is modelled as answers that are there all at once.
    firstFinished: { gen: 0.25, testing: plan.schedule === "streaming" ? 0.25 : 1 },
  });
  const counts = new CallCounts();
  const loop = await RewardLoopManager.create(loopOptions(plan, scale, counts));
  const validation = { ...plan, slots: 256, saves: [] };
  const validationLoop = plan.recorded.validationInLine
    ? undefined
    : await RewardLoopManager.create(loopOptions(validation, scale, counts));
  const page = await pageOf(plan, size);
  const record = new ReplayRecord(page, {
    started: say.started,
    step: (step) => say.progress(`${plan.name}, step ${step} of ${steps}`),
  });
  const folder = await mkdtemp(join(tmpdir(), "rayling-replay-"));
  try {
    await using trainer = await PPOTrainer.create({
      ...(await trainingOf(plan, size)),
      policy,
      referencePolicy: policy,
      reward: loop,
      rewardArrangement: {
        batchBarrier: plan.batchBarrier,
        validationInLine: plan.recorded.validationInLine,
        validationLoop,
      },
      checkpoints: { folder, keep: 1 },
      tracking: record,
    });
    const { metrics } = await trainer.fit();
    return record.result(plan, { scale, counts }, metrics);
  } finally {
    await loop.close();
    await validationLoop?.close();
    await ray.kill(policy);
    await page.close();
    await rm(folder, { recursive: true, force: true });
  }
}

type TrainerOptions = Parameters<typeof PPOTrainer.create>[0];

/** The workload of the recipe, in the size of this replay. */
async function trainingOf(
  plan: ReplayPlan,
  { steps, trainBatchSize }: ReplayScale,
): Promise<
  Pick<
    TrainerOptions,
    "actor" | "prompts" | "rollout" | "run" | "schedule" | "staleness" | "validationPrompts"
  >
> {
  const share = trainBatchSize / workload.trainBatchSize;
  const prompts = await promptsOf("train", workload.prompts);
  return {
    prompts: new PromptLoader(prompts, { batchSize: trainBatchSize }),
    validationPrompts: await promptsOf("test", Math.round(workload.validation * share)),
    schedule: plan.schedule,
    ...(plan.staleness === undefined ? {} : { staleness: plan.staleness }),
    rollout: { n: workload.n, maxResponseLength: 1 },
    actor: {
      ppoMiniBatchSize: workload.ppoMiniBatchSize * share,
      useKlLoss: true,
      ...(plan.recorded.lossMode === undefined ? {} : { lossMode: plan.recorded.lossMode }),
    },
    run: {
      totalTrainingSteps: steps,
      testFreq: workload.testFreq,
      saveFreq: workload.saveFreq,
      valBeforeTrain: false,
      overlapValidation: !plan.batchBarrier,
    },
  };
}

interface RecordEvents {
  readonly started: () => void;
  readonly step: (step: number) => void;
}

/** Collects what a run shows, beside its page. */
class ReplayRecord implements StepTracker {
  readonly #page: Tracking;
  readonly #on: RecordEvents;
  readonly #startMs: number = now();
  readonly #phases: PhaseRecord[] = [];
  readonly #ends: number[] = [];
  readonly #ids: Set<string> = new Set();
  readonly #seen = { samples: 0, scored: 0, score: 0, verdicts: 0, firstMs: Infinity, lastMs: 0 };

  constructor(page: Tracking, on: RecordEvents) {
    this.#page = page;
    this.#on = on;
  }

  log(...[metrics, step]: Parameters<StepTracker["log"]>): void {
    this.#ends.push(now());
    this.#page.log(metrics, step);
    this.#on.step(step);
  }

  phase(phase: PhaseRecord): void {
    if (this.#phases.push(phase) === 1) this.#on.started();
    this.#page.phase(phase);
  }

  samples(...[step, ones]: Parameters<StepTracker["samples"]>): void {
    this.#page.samples(step, ones);
    const seen = this.#seen;
    for (const { id, outcome, generatedMs, scoredMs } of ones) {
      this.#ids.add(id);
      seen.samples += 1;
      seen.firstMs = Math.min(seen.firstMs, generatedMs);
      seen.lastMs = Math.max(seen.lastMs, scoredMs);
      if (!outcome.valid) continue;
      seen.scored += 1;
      seen.score += outcome.rewardScore;
      seen.verdicts += Number(outcome.rewardExtraInfo["said"]) * (1 + outcome.rewardScore);
    }
  }

  generations(): void {
    // The page has the phases alone.
  }

  progress(): void {
    // Steps are shown as they end.
  }

  result(
    { slots }: ReplayPlan,
    { scale, counts }: { readonly scale: number; readonly counts: CallCounts },
    metrics: readonly Readonly<Record<string, number>>[],
  ): ReplayResult {
    const { samples, scored, score, verdicts, firstMs, lastMs } = this.#seen;
    const all = typeof slots === "number" ? slots : slots.capacity;
    const seconds = (ms: number): number => (ms / 1000) * scale;
    const [firstEnd = this.#startMs] = this.#ends;
    const beginMs = Math.min(...this.#phases.map(({ startMs }) => startMs));
    const lastEnd = this.#ends.at(-1) ?? this.#startMs;
    const waits = metrics.map((one) => (one["reward/exposed_wait_s"] ?? 0) * scale);
    return {
      seconds: seconds(lastEnd - firstEnd),
      allSeconds: seconds(lastEnd - beginMs),
      busy: counts.busyMs / (all * (lastMs - firstMs)),
      exposedWaitSeconds: waits.reduce((sum, one) => sum + one, 0),
      calls: counts.calls,
      meanLatencySeconds: seconds(counts.busyMs / counts.calls),
      meanScore: score / scored,
      verdicts,
      samples,
      distinct: this.#ids.size,
      scored,
      worstStaleness: Math.max(...metrics.map(worstStalenessOf)),
      phases: this.#phases,
    };
  }
}

async function pageOf(
  { run, name }: ReplayPlan,
  { steps, report }: ReplayScale,
): Promise<Tracking> {
  // A run before may have left one.
  await rm(join(report, run, name), { recursive: true, force: true });
  return await Tracking.open({
    logger: ["file", "report"],
    projectName: "replay",
    experimentName: name,
    directory: join(report, run, name),
    totalSteps: steps,
  });
}

function worstStalenessOf(metrics: Readonly<Record<string, number>>): number {
  return metrics["training/off_policy/trajectory_staleness_worst/max"] ?? 0;
}

function loopOptions(
  { slots, latency, hedge, saves }: ReplayPlan,
  scale: number,
  counts: CallCounts,
): RewardLoopOptions {
  const capacity = typeof slots === "number" ? undefined : slots.capacity;
  const settings: JudgeSettings = {
    latency,
    scale,
    counts: counts.buffer,
    ...(capacity === undefined ? {} : { capacity, inFlight: new SharedArrayBuffer(4) }),
  };
  const size = {
    workers,
    executors: 1,
    startTimeoutMs,
    concurrency: Math.ceil((typeof slots === "number" ? slots : slots.capacity * 2) / workers),
  };
  const judge = {
    ...size,
    // Where the workers' slots are more than that together, they share what there is.
    ...(typeof slots === "number" && slots % workers !== 0
      ? { limits: { concurrency: slots } }
      : {}),
    reward: { path: judgeModule, name: "judge", rewardKwargs: { settings } },
    ...(capacity === undefined
      ? {}
      : {
          limits: { endpoint: "judge", concurrency: "auto" as const },
          retry: { attempts: 100, baseMs: 1 },
        }),
    ...(hedge ? { hedge: { quantile: 0.9, budget: 0.2 } } : {}),
    ...(saves.includes("join") ? { joinSame: true } : {}),
    ...(saves.includes("cache") ? { cache: ":memory:" } : {}),
  };
  if (!saves.includes("cascade")) return judge;
  const rule = {
    workers: 1,
    executors: 1,
    startTimeoutMs,
    reward: { path: judgeModule, name: "rule" },
  };
  return { cascade: { rule, judge } };
}

async function promptsOf(name: string, count: number): Promise<PromptDataset> {
  return await PromptDataset.fromRows(
    Array.from({ length: count }, (_, row) => ({
      prompt: [{ role: "user", content: `${name} ${row}` }],
      data_source: "replay",
      reward_model: { ground_truth: rightAnswer(`${name} ${row}`) },
    })),
  );
}

/** In ms since 1970. */
function now(): number {
  return performance.timeOrigin + performance.now();
}
