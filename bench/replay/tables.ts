/** Rows of a replay as tables: one of each recorded run, and one of what is left out of ours. */
import type { Rows, Table } from "../measure/report.ts";
import type { ReplayPlan } from "./plans.ts";
import type { RecordedRun } from "./recorded.ts";
import { workload } from "./recorded.ts";
import type { Row } from "./rows.ts";
import type { ReplayResult, ReplayScale } from "./run.ts";

export function tablesOf(rows: readonly Row[], size: ReplayScale): readonly Table[] {
  const runs = [...new Set(rows.map(([{ run }]) => run))];
  return runs.flatMap((run) => {
    const ofRun = rows.filter(([plan]) => plan.run === run);
    const repeating = ofRun.filter(([{ answersRepeat }]) => answersRepeat);
    const others = ofRun.filter(([{ answersRepeat }]) => !answersRepeat);
    return [
      ...(others.length === 0 ? [] : [runTable(run, others, size)]),
      ...(repeating.length === 0 ? [] : [savingsTable(run, repeating, size)]),
    ];
  });
}

function titleOf(run: string, { scale, steps, trainBatchSize }: ReplayScale): string {
  return `${run}: ${steps} steps of ${trainBatchSize} x ${workload.n}, times divided by ${scale}`;
}

function runTable(run: string, rows: readonly Row[], size: ReplayScale): Table {
  const isWhole = size.steps === workload.steps && size.trainBatchSize === workload.trainBatchSize;
  const baseline = rows.find(([{ name }]) => name === "recipe-sync");
  const lines = rows.map(([plan, result]) => {
    const { recorded, batchBarrier } = plan;
    const seconds = secondsAs(recorded, batchBarrier, result);
    const isPublished = batchBarrier && isWhole;
    const reduction =
      baseline === undefined ? "" : percent(seconds / secondsAs(...published(baseline)) - 1);
    return [
      plan.name,
      clock(seconds),
      isPublished ? clock(recorded.publishedSeconds) : "",
      isPublished ? percent(seconds / recorded.publishedSeconds - 1) : "",
      reduction,
      isPublished && recorded.publishedReduction !== undefined
        ? percent(recorded.publishedReduction)
        : "",
      clock(floorOf(plan, result, size).seconds),
      floorOf(plan, result, size).bound,
      `${(result.busy * 100).toFixed(1)} %`,
      clock(result.exposedWaitSeconds),
      result.meanLatencySeconds.toFixed(2),
    ];
  });
  const head: Rows[number] = [
    "",
    "time",
    "published",
    "error",
    "reduction",
    "published",
    "floor",
    "bound by",
    "slots busy",
    "exposed wait",
    "s a call",
  ];
  return { title: titleOf(run, size), rows: [head, ...lines] };
}

function savingsTable(run: string, rows: readonly Row[], size: ReplayScale): Table {
  const all = rows.find(([{ saves }]) => saves.length === 0)?.[1];
  const lines = rows.map(([plan, result]) => [
    plan.name,
    clock(result.seconds),
    all === undefined ? "" : percent(result.seconds / all.seconds - 1),
    clock(floorOf(plan, result, size).seconds),
    floorOf(plan, result, size).bound,
    result.calls.toLocaleString("en-US"),
    `${((100 * result.calls) / result.samples).toFixed(1)} %`,
    `${(result.busy * 100).toFixed(1)} %`,
    result.meanScore.toFixed(4),
    all === undefined ? "" : result.verdicts === all.verdicts ? "yes" : "no",
  ]);
  const head: Rows[number] = [
    "",
    "time",
    "reduction",
    "floor",
    "bound by",
    "calls",
    "of samples",
    "slots busy",
    "mean score",
    "equal scores",
  ];
  return {
    title: `${titleOf(run, size)}; answers that repeat, and calls that are left out`,
    rows: [head, ...lines],
  };
}

function published([plan, result]: Row): [RecordedRun, boolean, ReplayResult] {
  return [plan.recorded, plan.batchBarrier, result];
}

/** The time as it was counted for that run; ours as the log of a run spans it. */
function secondsAs(
  { withFirstStep }: RecordedRun,
  isRecipe: boolean,
  { seconds, allSeconds }: ReplayResult,
): number {
  return isRecipe && withFirstStep ? allSeconds : seconds;
}

/**
 * The shortest time from the end of step 1 on, under any schedule: the GPU's work, which nothing
 * shortens, or the judge's in its slots. The batch of step 2 may have been generated before.
 */
function floorOf(
  { recorded, slots }: ReplayPlan,
  result: ReplayResult,
  { steps }: ReplayScale,
): { readonly seconds: number; readonly bound: "GPU" | "slots" } {
  const { testing = 0, gen = 0, ...others } = recorded.seconds;
  const sum = (seconds: number | readonly number[], from: number): number =>
    Array.from({ length: Math.max(0, steps - from) }, (_, index) => from + index)
      .map((at) => (typeof seconds === "number" ? seconds : (seconds[at] ?? seconds.at(-1) ?? 0)))
      .reduce((total, one) => total + one, 0);
  const times = (every: number): number => Math.ceil(steps / every);
  const gpu =
    sum(gen, 2) +
    Object.values(others).reduce<number>((total, one) => total + sum(one, 1), 0) +
    times(workload.testFreq) * (typeof testing === "number" ? testing : 0) +
    times(workload.saveFreq) * recorded.saveSeconds;
  const all = typeof slots === "number" ? slots : slots.capacity;
  const judged = ((steps - 1) * result.calls * result.meanLatencySeconds) / (steps * all);
  return gpu > judged ? { seconds: gpu, bound: "GPU" } : { seconds: judged, bound: "slots" };
}

function clock(seconds: number): string {
  const rounded = Math.round(seconds);
  const parts = [Math.floor(rounded / 3600), Math.floor(rounded / 60) % 60, rounded % 60];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

function percent(share: number): string {
  return `${share >= 0 ? "+" : ""}${(share * 100).toFixed(2)} %`;
}
