/**
 * Question: how long would the published runs have taken with our schedules, on the recorded times
 * of their GPUs and the latencies of their judges?
 *
 * The recipe's own arrangement first, which has to come to what was published; then ours.
 * Everything is real but the GPU and the judge, which sleep, and all times are divided by the
 * scale.
 */
import { readFile, writeFile } from "node:fs/promises";
import type { ScheduleName } from "@rayling/trainer";
import { FlagError, readFlags, runCommand, takes, whole } from "../measure/command-line.ts";
import type { FlagValues } from "../measure/command-line.ts";
import { describeMachine, machineLines } from "../measure/machine.ts";
import type { Machine } from "../measure/machine.ts";
import { writeBlock } from "../measure/readme.ts";
import { markdownTables, terminalTables } from "../measure/report.ts";
import type { Latency } from "./judge.ts";
import { isInAll, mainRun, plansOf } from "./plans.ts";
import type { OwnSettings, ReplayPlan } from "./plans.ts";
import { recordedRuns, withTimings, workload } from "./recorded.ts";
import { replayRows } from "./rows.ts";
import type { Row } from "./rows.ts";
import type { ReplayResult, ReplayScale } from "./run.ts";
import { tablesOf } from "./tables.ts";

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

  --run NAME         ${Object.keys(recordedRuns).join(" | ")} | all; default ${mainRun}
  --timings FOLDER   the times of each step in place of medians, from its files <run>-{baseline,pipeline,one-step,both,both-decoupled}.csv
  --scale N          all times are divided by it; default 500
  --parallel N       rows at a time, each in a process of its own; default 1
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
  parallel: takes.text,
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
  const chosen = chosenOf(plans, flags);
  const parallel = whole("--parallel", flags.parallel ?? "1");
  const machine = describeMachine(["node bench/replay/main.ts", ...args]);
  const before = flags.beside === undefined ? undefined : await figuresAt(flags.beside, size);
  const { rows: own, failures } = await replayRows(chosen, { size, parallel, progress });
  const ids = plans.map(idOf);
  const others = (before?.rows ?? []).filter(
    ([other]) => !chosen.some((plan) => idOf(plan) === idOf(other)),
  );
  const results = [...own, ...others].toSorted(
    ([one], [other]) => ids.indexOf(idOf(one)) - ids.indexOf(idOf(other)),
  );
  const lines = [
    ...machineLines(machine),
    ...(before === undefined
      ? []
      : [
          `${[...new Set(others.map(([other]) => other.name))].join(", ")}: ${before.lines.at(-1)}`,
        ]),
  ];
  const tables = tablesOf(results, size);
  if (flags.markdown === true && failures.length === 0) {
    const markdown = `${lines.map((line) => `- ${line}`).join("\n")}\n\n${markdownTables(tables)}`;
    await writeBlock("node bench/replay/main.ts --markdown", markdown);
  } else {
    console.log(`${lines.join("\n")}\n\n${terminalTables(tables)}`);
  }
  console.log(`pages: ${size.report}`);
  if (flags.json !== undefined) {
    const rows = own.map(([plan, { phases, ...result }]) => ({ plan, ...result, phases }));
    await writeFile(flags.json, `${JSON.stringify({ machine, size, rows })}\n`);
  }
  // A block of which a part is missing would pass for the whole.
  if (failures.length > 0) throw new AggregateError(failures, "rows failed, the rest is as above");
}

/** The same in every run of this command. */
function idOf({ run, name }: ReplayPlan): string {
  return `${run} ${name}`;
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
  const name = flags.run ?? mainRun;
  const latency = latencyOf(flags.latency ?? "uniform:0,40");
  const ours: OwnSettings = { latency, slots: whole("--slots", flags.slots ?? "256") };
  const plansOfRun = async (run: string): Promise<readonly ReplayPlan[]> => {
    const medians = recordedRuns[run];
    if (medians === undefined) {
      throw new FlagError(`--run takes ${Object.keys(recordedRuns).join(", ")}, all, not "${run}"`);
    }
    const { timings } = flags;
    return plansOf(
      run,
      timings === undefined ? medians : await withTimings(run, medians, timings),
      ours,
    );
  };
  if (name !== "all") return await plansOfRun(name);
  const plans = await Promise.all(Object.keys(recordedRuns).map(plansOfRun));
  return plans.flat().filter(isInAll);
}

/** @throws FlagError */
function chosenOf(plans: readonly ReplayPlan[], flags: Flags): readonly ReplayPlan[] {
  const names = [...new Set(plans.map((plan) => plan.name))];
  const schedules = namesOf("--schedule", flags.schedule ?? "all", scheduleNames);
  const only = namesOf("--only", flags.only ?? names.join(","), names);
  const chosen = plans.filter(
    ({ name, schedule }) =>
      only.includes(name) && (schedules.includes("all") || schedules.includes(schedule)),
  );
  if (chosen.length > 0) return chosen;
  throw new FlagError(`--only and --schedule have no row in common; rows are ${names.join(", ")}`);
}

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
