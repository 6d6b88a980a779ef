/**
 * The published runs of verl's recipe async_reward_agent (TensorBoard logs of haolinyan/verl at
 * 35cee0c): median seconds of each phase, and how long all of it took from the end of step 1 to the
 * last event. 8 x H20, GSM8K, 1,024 prompts x 5, mini-batches of 256 prompts, 105 steps, 256 slots,
 * each reward 0 to 40 s, validation of 1,319 every 5 steps, checkpoint every 20.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ScheduleName } from "@rayling/trainer";
import { FlagError } from "../measure/command-line.ts";
import { field } from "../measure/printed.ts";

export interface RecordedRun {
  /** Name of the strategy: its schedule, and what it adds. */
  readonly name: string;
  readonly schedule: ScheduleName;
  /** The policy loss by its name. Default: vanilla. */
  readonly lossMode?: string;
  /** GPU time by verl's timers, of all steps or of each; testing is without the rewards. */
  readonly seconds: Readonly<Record<string, number | readonly number[]>>;
  readonly saveSeconds: number;
  /** Whether its validation waited behind the training's rewards, in their pool. */
  readonly validationInLine: boolean;
  /** As the seeds' table has it, to the second. */
  readonly publishedSeconds: number;
  /** The reduction in that table, as a share. */
  readonly publishedReduction?: number;
  /**
   * Whether the published time has step 1: two of the tables' authors' counts are in use, the sum of
   * all steps, and what the log spans, which begins when step 1 ends.
   */
  readonly withFirstStep: boolean;
}

export const workload = {
  prompts: 7473,
  trainBatchSize: 1024,
  n: 5,
  ppoMiniBatchSize: 256,
  validation: 1319,
  testFreq: 5,
  saveFreq: 20,
  steps: 105,
} as const;

/**
 * Work on the CPU for each time that rewards are taken: advantages, and moving them to the GPUs.
 */
const overheadPerGet = 2.6;

function getsOf(schedule: ScheduleName): number {
  return schedule === "sync" || schedule === "one-step-off-policy" ? 1 : 4;
}

interface Medians {
  readonly gen: number;
  readonly old: number;
  /** Log-probabilities of the policy that generated, which the decoupled loss needs. */
  readonly behaviour?: number;
  readonly ref: number;
  readonly update: number;
  readonly testing: number;
  readonly save: number;
  readonly published: string;
  readonly reduction?: number;
  readonly validationInLine?: boolean;
  readonly withFirstStep?: boolean;
}

function recorded(schedule: ScheduleName, medians: Medians): RecordedRun {
  const { gen, old, behaviour, ref, update, testing, save, published, reduction } = medians;
  return {
    name: behaviour === undefined ? schedule : `${schedule}-decoupled`,
    schedule,
    ...(behaviour === undefined ? {} : { lossMode: "decoupled" }),
    seconds: {
      gen,
      // It comes after the next batch's generation and before this one's old_log_prob.
      old_log_prob: old + (behaviour ?? 0),
      ref,
      update_actor: update + getsOf(schedule) * overheadPerGet,
      testing,
    },
    saveSeconds: save,
    validationInLine: medians.validationInLine ?? false,
    publishedSeconds: secondsOf(published),
    ...(reduction === undefined ? {} : { publishedReduction: reduction }),
    withFirstStep: medians.withFirstStep ?? false,
  };
}

/**
 * By model and back end. `testing` is what is left of the recorded time without 125 s for 1,319
 * rewards in 256 slots.
 */
export const recordedRuns: Readonly<Record<string, readonly RecordedRun[]>> = {
  "7b-megatron": [
    recorded("sync", {
      gen: 39.8,
      old: 45.2,
      ref: 36.3,
      update: 116.3,
      testing: 32.8,
      save: 38,
      published: "17:53:04",
    }),
    recorded("mini-batch-pipeline", {
      gen: 40.4,
      old: 46.7,
      ref: 38,
      update: 128.6,
      testing: 31.8,
      save: 37.4,
      published: "15:40:59",
      reduction: -0.123,
    }),
    recorded("one-step-off-policy", {
      gen: 38.6,
      old: 39.6,
      ref: 33.7,
      update: 111.7,
      testing: 32,
      save: 43.7,
      published: "13:22:52",
      reduction: -0.2516,
      validationInLine: true,
    }),
    recorded("one-step-pipeline", {
      gen: 40.5,
      old: 46.3,
      ref: 36.9,
      update: 126,
      testing: 31.7,
      save: 38.8,
      published: "12:21:59",
      reduction: -0.3085,
    }),
    recorded("one-step-pipeline", {
      gen: 40.5,
      old: 46.8,
      behaviour: 46.9,
      ref: 37.9,
      update: 127,
      testing: 32,
      save: 39,
      published: "12:21:09",
      reduction: -0.3094,
    }),
  ],
  "7b-fsdp": [
    recorded("sync", {
      gen: 31,
      old: 23.6,
      ref: 22,
      update: 139,
      testing: 23.3,
      save: 37.6,
      published: "18:24:20",
      withFirstStep: true,
    }),
    recorded("one-step-pipeline", {
      gen: 32.8,
      old: 28.9,
      ref: 26.2,
      update: 148.6,
      testing: 23.3,
      save: 31.8,
      published: "13:10:17",
      reduction: -0.2844,
      validationInLine: true,
    }),
  ],
  "3b-fsdp": [
    recorded("sync", {
      gen: 29.5,
      old: 20.9,
      ref: 23.3,
      update: 107.4,
      testing: 19.6,
      save: 12.4,
      published: "17:23:10",
      withFirstStep: true,
    }),
    recorded("one-step-pipeline", {
      gen: 29.3,
      old: 17.3,
      ref: 17.8,
      update: 94.8,
      testing: 19.6,
      save: 15.2,
      published: "13:15:02",
      reduction: -0.2378,
      withFirstStep: true,
      validationInLine: true,
    }),
  ],
  "3b-megatron": [
    recorded("sync", {
      gen: 33.2,
      old: 32.7,
      ref: 28.7,
      update: 95.7,
      testing: 22.5,
      save: 19.1,
      published: "17:06:52",
      withFirstStep: true,
    }),
    recorded("one-step-pipeline", {
      gen: 32.6,
      old: 32.8,
      ref: 28.7,
      update: 97.6,
      testing: 22.5,
      save: 19.6,
      published: "13:10:40",
      reduction: -0.2308,
      validationInLine: true,
    }),
  ],
};

/** Files with the timers of each step that there may be of a run, `<run>-<file>.csv`. */
const timingFiles: Readonly<Record<string, string>> = {
  sync: "baseline",
  "mini-batch-pipeline": "pipeline",
  "one-step-off-policy": "one-step",
  "one-step-pipeline": "both",
  "one-step-pipeline-decoupled": "both-decoupled",
};

/**
 * Returns the runs with the times of each step in place of medians, where the folder has them: a
 * row for each step, with verl's timers by their names. Rejects with FlagError where it has none of
 * them, or one that has not what is needed.
 */
export async function withTimings(
  name: string,
  runs: readonly RecordedRun[],
  folder: string,
): Promise<RecordedRun[]> {
  const read = await Promise.all(runs.map((run) => timingsOf(name, run, folder)));
  if (read.every((one) => one === undefined)) {
    throw new FlagError(
      `--timings ${folder} has no times of ${name}, such as ${name}-baseline.csv`,
    );
  }
  return runs.map((run, index) => ({ ...run, seconds: { ...run.seconds, ...read[index] } }));
}

async function timingsOf(
  run: string,
  { name: strategy, schedule, lossMode }: RecordedRun,
  folder: string,
): Promise<Record<string, number[]> | undefined> {
  const file = timingFiles[strategy];
  if (file === undefined) return undefined;
  const path = join(folder, `${run}-${file}.csv`);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (field(error, "code") === "ENOENT") return undefined;
    throw error;
  }
  const [head = [], ...rows] = text
    .trimEnd()
    .split("\n")
    .map((line) => line.split(","));
  // Row 0 is the validation before training.
  const steps = rows.filter(([step]) => Number(step) > 0);
  const column = (timer: string, more = 0): number[] => {
    const at = head.indexOf(`timing_s/${timer}`);
    const texts = steps.map((row) => row[at] ?? "");
    // The last step generates nothing where batches are generated ahead.
    const isAhead = timer === "gen" || timer === "behav_log_prob";
    if (isAhead && texts.at(-1) === "") texts.pop();
    const values = texts.map((one) => Number.parseFloat(one) + more);
    if (values.length > 0 && values.every(Number.isFinite)) return values;
    throw new FlagError(`--timings: ${path} does not have timing_s/${timer} of each step`);
  };
  const behaviour = lossMode === "decoupled" ? column("behav_log_prob") : [];
  return {
    gen: column("gen"),
    old_log_prob: column("old_log_prob").map((old, step) => old + (behaviour[step] ?? 0)),
    ref: column("ref"),
    update_actor: column("update_actor", getsOf(schedule) * overheadPerGet),
  };
}

function secondsOf(clock: string): number {
  return clock.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
}
