/**
 * Question: how long would the published runs have taken with our schedules, on the recorded times
 * of their GPUs and the latencies of their judges?
 *
 * The recipe's own arrangement first, which has to come to what was published; then ours.
 * Everything is real but the GPU and the judge, which sleep, and all times are divided by the
 * scale.
 */
import { readFile, writeFile } from "node:fs/promises";
import * as ray from "@rayling/core";
import type { ScheduleName } from "@rayling/trainer";
import { FlagError, readFlags, runCommand, takes, whole } from "../measure/command-line.ts";
import type { FlagValues } from "../measure/command-line.ts";
import { describeMachine, machineLines } from "../measure/machine.ts";
import type { Machine } from "../measure/machine.ts";
import { writeBlock } from "../measure/readme.ts";
import { markdownTables, terminalTables } from "../measure/report.ts";
import type { Table } from "../measure/report.ts";
import type { Latency } from "./judge.ts";
import { recordedRuns, withTimings, workload } from "./recorded.ts";
import type { RecordedRun } from "./recorded.ts";
import { replay } from "./run.ts";
import type { ReplayPlan, ReplayResult, ReplayScale } from "./run.ts";

const scheduleNames = [
  "all",
  "sync",
  "one-step-off-policy",
  "mini-batch-pipeline",
  "one-step-pipeline",
  "streaming",
] as const satisfies readonly ("all" | ScheduleName)[];

const usage = `node bench/replay/main.ts [flags]

The published runs again, with the recipe's arrangement and with ours.

  --run NAME         ${Object.keys(recordedRuns).join(" | ")}; default 7b-megatron
  --timings FOLDER   the times of each step in place of medians, from its files <run>-{baseline,pipeline,one-step,both}.csv
  --scale N          all times are divided by it; default 500
  --steps N          default ${workload.steps}
  --slots N          rewards at a time, of ours; default 256
  --latency SPEC     uniform:FROM,TO or lognormal:MEAN,SIGMA in seconds; default uniform:0,40
  --prompts N        of a batch, fewer for a short try; default ${workload.trainBatchSize}
  --schedule NAMES   rows of these schedules, with commas: ${scheduleNames.join(", ")}; default all
  --only NAMES       rows by their names, with commas; default all
  --report FOLDER    a page for each row, with where the time of each step went; default runs/replay
  --json PATH        also write the figures there
  --beside PATH      rows of a run before, as --json wrote them, of the same size, where this one has none of that name
  --markdown         write the table into bench/README.md
  --help             print this`;

const kinds = {
  run: takes.text,
  timings: takes.text,
  scale: takes.text,
  steps: takes.text,
  slots: takes.text,
  latency: takes.text,
  prompts: takes.text,
  report: takes.text,
  schedule: takes.text,
  only: takes.text,
  json: takes.text,
  beside: takes.text,
  markdown: takes.nothing,
  help: takes.nothing,
} as const;

async function main(args: readonly string[]): Promise<void> {
  const flags = readFlags(args, kinds);
  if (flags.help === true) return console.log(usage);
  const size = sizeOf(flags);
  const plans = await plansBy(flags);
  const names = plans.map((plan) => plan.name);
  const chosen = chosenOf(plans, flags);
  const machine = describeMachine(["node bench/replay/main.ts", ...args]);
  const before = flags.beside === undefined ? undefined : await figuresAt(flags.beside, size);
  await ray.init({ numCpus: 16 });
  const own: Row[] = [];
  for (const plan of chosen) own.push([plan, await replay(plan, size, progress)]);
  await ray.shutdown();
  const others = (before?.rows ?? []).filter(
    ([other]) => !chosen.some((plan) => plan.name === other.name),
  );
  const results = [...own, ...others].toSorted(
    ([one], [other]) => names.indexOf(one.name) - names.indexOf(other.name),
  );
  const lines = [
    ...machineLines(machine),
    ...(before === undefined
      ? []
      : [`${others.map(([other]) => other.name).join(", ")}: ${before.lines.at(-1)}`]),
  ];
  const table = tableOf(results, size);
  if (flags.markdown === true) {
    const markdown = `${lines.map((line) => `- ${line}`).join("\n")}\n\n${markdownTables([table])}`;
    await writeBlock("node bench/replay/main.ts --markdown", markdown);
  } else {
    console.log(`${lines.join("\n")}\n\n${terminalTables([table])}`);
  }
  console.log(`pages: ${size.report}`);
  if (flags.json !== undefined) {
    const rows = own.map(([plan, { phases, ...result }]) => ({ plan, ...result, phases }));
    await writeFile(flags.json, `${JSON.stringify({ machine, size, rows })}\n`);
  }
}

type Flags = FlagValues<typeof kinds>;

/** @throws FlagError */
function sizeOf({ scale, steps, prompts, report }: Flags): ReplayScale {
  const trainBatchSize = whole("--prompts", prompts ?? String(workload.trainBatchSize));
  if (trainBatchSize % 4 !== 0) {
    throw new FlagError("--prompts takes a multiple of 4: a batch has 4 mini-batches");
  }
  return {
    scale: whole("--scale", scale ?? "500"),
    steps: whole("--steps", steps ?? String(workload.steps)),
    trainBatchSize,
    report: report ?? "runs/replay",
  };
}

/** Rejects with FlagError. */
async function plansBy(flags: Flags): Promise<readonly ReplayPlan[]> {
  const name = flags.run ?? "7b-megatron";
  const medians = recordedRuns[name];
  if (medians === undefined) {
    throw new FlagError(`--run takes ${Object.keys(recordedRuns).join(", ")}, not "${name}"`);
  }
  const runs =
    flags.timings === undefined ? medians : await withTimings(name, medians, flags.timings);
  const latency = latencyOf(flags.latency ?? "uniform:0,40");
  return plansOf(runs, { latency, slots: whole("--slots", flags.slots ?? "256") });
}

/** @throws FlagError */
function chosenOf(plans: readonly ReplayPlan[], flags: Flags): readonly ReplayPlan[] {
  const names = plans.map((plan) => plan.name);
  const schedules = namesOf("--schedule", flags.schedule ?? "all", scheduleNames);
  const only = namesOf("--only", flags.only ?? names.join(","), names);
  const chosen = plans.filter(
    ({ name, schedule }) =>
      only.includes(name) && (schedules.includes("all") || schedules.includes(schedule)),
  );
  if (chosen.length > 0) return chosen;
  throw new FlagError(`--only and --schedule have no row in common; rows are ${names.join(", ")}`);
}

type Row = [ReplayPlan, ReplayResult];

/** The content of a file that --json wrote. */
interface Figures {
  readonly machine: Machine;
  readonly size: ReplayScale;
  readonly rows: readonly (ReplayResult & { readonly plan: ReplayPlan })[];
}

async function figuresAt(
  path: string,
  size: ReplayScale,
): Promise<{ readonly lines: readonly string[]; readonly rows: readonly Row[] }> {
  const figures = JSON.parse(await readFile(path, "utf8")) as Figures;
  for (const what of ["scale", "steps", "trainBatchSize"] as const) {
    if (figures.size[what] === size[what]) continue;
    throw new FlagError(
      `--beside ${path}: its ${what} is ${figures.size[what]}, not ${size[what]}`,
    );
  }
  const rows = figures.rows.map(({ plan, ...result }): Row => [plan, result]);
  return { lines: machineLines(figures.machine), rows };
}

/** The recipe's rows as they were recorded, then ours on the times of the recipe's best. */
function plansOf(
  runs: readonly RecordedRun[],
  ours: { readonly latency: Latency; readonly slots: number },
): ReplayPlan[] {
  const uniform: Latency = { kind: "uniform", from: 0, to: 40 };
  const recipe = runs.map((recorded): ReplayPlan => ({
    name: `recipe-${recorded.schedule}`,
    recorded,
    schedule: recorded.schedule,
    batchBarrier: true,
    slots: 256,
    latency: uniform,
    hedge: false,
  }));
  const best = runs.at(-1);
  if (best === undefined) throw new TypeError("no run is recorded");
  const own = (
    name: string,
    schedule: ScheduleName,
    more: Partial<ReplayPlan> = {},
  ): ReplayPlan => ({
    name,
    recorded: { ...best, validationInLine: false },
    schedule,
    batchBarrier: false,
    hedge: false,
    ...ours,
    ...more,
  });
  const staleness = { limit: 1, numWarmupBatches: 1 };
  return [
    ...recipe,
    own("one-step-pipeline", "one-step-pipeline"),
    own("streaming-1", "streaming", { staleness }),
    own("streaming-1-auto-448", "streaming", { staleness, slots: { capacity: 448 } }),
    own("streaming-on-policy-320", "streaming", { slots: 320 }),
    own("streaming-1-heavy-tail-hedged", "streaming", {
      staleness,
      latency: { kind: "lognormal", mean: 20, sigma: 1 },
      hedge: true,
    }),
  ];
}

function tableOf(
  results: readonly (readonly [ReplayPlan, ReplayResult])[],
  { scale, steps, trainBatchSize }: ReplayScale,
): Table {
  const isWhole = steps === workload.steps && trainBatchSize === workload.trainBatchSize;
  const baseline = results.find(([{ name }]) => name === "recipe-sync")?.[1].seconds;
  const rows = results.map(([plan, result]) => {
    const { recorded, name, slots, batchBarrier } = plan;
    const published = batchBarrier && isWhole ? recorded.publishedSeconds : undefined;
    const all = typeof slots === "number" ? slots : slots.capacity;
    const floor = ((steps - 1) * result.samples * result.meanLatencySeconds) / (steps * all);
    return [
      name,
      clock(result.seconds),
      published === undefined ? "" : clock(published),
      published === undefined ? "" : percent(result.seconds / published - 1),
      baseline === undefined ? "" : percent(result.seconds / baseline - 1),
      clock(floor),
      `${(result.busy * 100).toFixed(1)} %`,
      clock(result.exposedWaitSeconds),
      result.meanLatencySeconds.toFixed(2),
    ];
  });
  return {
    title: `${steps} steps of ${trainBatchSize} x ${workload.n}, times divided by ${scale}; from the end of step 1`,
    rows: [
      [
        "",
        "time",
        "published",
        "error",
        "reduction",
        "floor",
        "slots busy",
        "exposed wait",
        "s a call",
      ],
      ...rows,
    ],
  };
}

function clock(seconds: number): string {
  const rounded = Math.round(seconds);
  const parts = [Math.floor(rounded / 3600), Math.floor(rounded / 60) % 60, rounded % 60];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

function percent(share: number): string {
  return `${share >= 0 ? "+" : ""}${(share * 100).toFixed(2)} %`;
}

function latencyOf(spec: string): Latency {
  const [kind, numbers = ""] = spec.split(":");
  const [first = Number.NaN, second = Number.NaN] = numbers.split(",").map(Number);
  if (kind === "uniform" && first >= 0 && second >= first) {
    return { kind, from: first, to: second };
  }
  if (kind === "lognormal" && first > 0 && second > 0) return { kind, mean: first, sigma: second };
  throw new FlagError(`--latency takes uniform:FROM,TO or lognormal:MEAN,SIGMA, not "${spec}"`);
}

/** All of them known. */
function namesOf(flag: string, text: string, known: readonly string[]): readonly string[] {
  const names = text.split(",");
  const unknown = names.find((name) => !known.includes(name));
  if (unknown === undefined) return names;
  throw new FlagError(`${flag} takes ${known.join(", ")}, not "${unknown}"`);
}

/** One line that is written over; nothing where stderr is a file. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001B[K${text}`);
}

await runCommand("bench", main);
