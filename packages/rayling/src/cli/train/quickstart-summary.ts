/** The end of the quickstart: one comparison, one page, and what to do next. Pure. */
import type { QuickstartResult, QuickstartRun } from "@rayling/trainer/quickstart";
import { whatNext } from "../output/launcher.ts";
import { grouped, span } from "../output/numbers.ts";
import { tableLines } from "../output/table.ts";

export interface QuickstartEnd {
  /** Path of the page of all runs. */
  readonly page: string;
  /** Seconds of all of it. */
  readonly seconds: number;
}

const columns = ["schedule", "time", "accuracy", "greedy", "waited", "judge busy"];

/** Returns the lines, without the last line feed. */
export function summaryLines(result: QuickstartResult, end: QuickstartEnd): string[] {
  const { runs, accuracy, greedyAccuracy, problems } = result;
  const before = {
    schedule: "warm-up alone",
    accuracy: spread(accuracy, problems),
    greedy: percent(greedyAccuracy),
  };
  const rows = [before, ...runs.map((run) => rowOf(run, problems))];
  const steps = runs[0]?.steps ?? 0;
  return [
    "",
    `Comparison after ${steps} steps`,
    ...falls(result),
    ...tableLines(rows, columns),
    `accuracy: the share of ${problems} new problems answered right, by answers that are`,
    "drawn at random as in training, with its 95 % interval;",
    "greedy: the same by the likeliest answers;",
    "waited: with nothing to do but to wait for rewards;",
    "judge busy: the share of the judge's time that went into answers.",
    ...comparison(result),
    ...failures(result),
    "",
    `All of it took ${span(1000 * end.seconds)}. Its page, with all runs on one chart:`,
    `  ${end.page}`,
    "Beside it: a folder for each schedule, with metrics.jsonl and trace.json.",
    "",
    ...whatNext(nextCommands),
  ];
}

function rowOf(run: QuickstartRun, problems: number): Record<string, string> {
  return {
    schedule: run.schedule,
    time: `${run.seconds.toFixed(1)} s`,
    accuracy: spread(run.accuracy, problems),
    greedy: percent(run.greedyAccuracy),
    waited: `${run.exposedWaitSeconds.toFixed(1)} s`,
    "judge busy": percent(run.slotsBusy),
  };
}

/** The first schedule against each other one. */
function comparison({ runs, accuracy }: QuickstartResult): string[] {
  const [first, ...others] = runs;
  if (first === undefined) return [];
  return others.flatMap((run) => {
    const time = change(run.seconds, first.seconds, "less time", "more time");
    const [own, base] = [run, first].map((one) => `${one.exposedWaitSeconds.toFixed(1)} s`);
    const points = 100 * (run.accuracy - accuracy);
    const moved = `${points < 0 ? "fell" : "rose"} by ${Math.abs(points).toFixed(0)} points`;
    return [
      `${run.schedule} took ${time} than ${first.schedule}, and waited ${own}`,
      `instead of ${base} for rewards; its accuracy ${moved}.`,
    ];
  });
}

function falls({ runs, accuracy }: QuickstartResult): string[] {
  return runs
    .filter((run) => run.accuracy < accuracy)
    .map(({ schedule }) => `warning: ${schedule} is below the warm-up: this training did harm.`);
}

function failures({ runs }: QuickstartResult): string[] {
  const samples = sumOf(runs.map((run) => run.samples));
  const invalid = sumOf(runs.map((run) => run.invalid));
  const all = `${grouped(samples)} answers`;
  return [
    invalid === 0
      ? `The judge scored all ${all}; none failed.`
      : `warning: ${grouped(invalid)} of ${all} got no score from the judge.`,
  ];
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, one) => sum + one, 0);
}

function change(value: number, base: number, less: string, more: string): string {
  const share = base === 0 ? 0 : value / base - 1;
  return `${Math.abs(100 * share).toFixed(0)} % ${share > 0 ? more : less}`;
}

/** The share, and the half of its 95 % interval by the normal approximation, in points. */
function spread(share: number, problems: number): string {
  const half = 1.96 * Math.sqrt((share * (1 - share)) / problems);
  return `${percent(share)} ± ${(100 * half).toFixed(1)}`;
}

/** Returns the share in percent. */
export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

const nextCommands: readonly (readonly [args: readonly string[], what: string])[] = [
  [["score", "--demo"], "score solutions with a slow judge, and see which of them failed and why"],
  [
    ["train", "--config-name", "streaming"],
    "the same task as a configuration of verl's; your own is next",
  ],
  [
    ["quickstart", "--schedule", "sync", "one-step-pipeline", "streaming"],
    "compare other schedules",
  ],
];
