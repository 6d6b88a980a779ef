/**
 * Question: what does a schedule that does not wait save, where a policy really learns, and what
 * does it cost in accuracy?
 *
 * The quickstart for several seeds: from one start under each schedule, with a judge as slow beside
 * the policy's own work as those of the published runs. Three times as many steps: accuracies are
 * compared where they hardly rise any more.
 */
import { writeFile } from "node:fs/promises";
import * as ray from "@rayling/core";
import { quickstart } from "@rayling/trainer/quickstart";
import type { QuickstartResult, QuickstartRun } from "@rayling/trainer/quickstart";
import { readFlags, runCommand, whole, takes } from "./measure/command-line.ts";
import { describeMachine, machineLines } from "./measure/machine.ts";
import { writeBlock } from "./measure/readme.ts";
import { markdownTables, terminalTables } from "./measure/report.ts";
import type { Table } from "./measure/report.ts";

const usage = `node bench/quickstart.ts [flags]

The quickstart for several seeds, under sync and under one-step-off-policy.

  --seeds NUMBERS  with commas; default 1,2,3
  --steps N        of GRPO under each schedule; default 600
  --json PATH      also write the figures there
  --markdown       write the table into bench/README.md
  --help           print this`;

const kinds = {
  seeds: takes.text,
  steps: takes.text,
  json: takes.text,
  markdown: takes.nothing,
  help: takes.nothing,
} as const;

async function main(args: readonly string[]): Promise<void> {
  const flags = readFlags(args, kinds);
  if (flags.help === true) return console.log(usage);
  const seeds = (flags.seeds ?? "1,2,3").split(",").map((seed) => whole("--seeds", seed, 0));
  const steps = whole("--steps", flags.steps ?? "600");
  const lines = machineLines(describeMachine(["node bench/quickstart.ts", ...args]));
  await ray.init({ numCpus: 8 });
  const results: QuickstartResult[] = [];
  for (const seed of seeds) {
    results.push(await quickstart({ seed, steps }));
    if (process.stderr.isTTY) process.stderr.write(`\r\u001B[Kseed ${seed}`);
  }
  await ray.shutdown();
  const table = tableOf(results, seeds, steps);
  if (flags.json !== undefined) await writeFile(flags.json, JSON.stringify({ seeds, results }));
  if (flags.markdown === true) {
    const markdown = `${lines.map((line) => `- ${line}`).join("\n")}\n\n${markdownTables([table])}`;
    await writeBlock("node bench/quickstart.ts --markdown", markdown);
  } else {
    console.log(`${lines.join("\n")}\n\n${terminalTables([table])}`);
  }
}

function tableOf(all: readonly QuickstartResult[], seeds: readonly number[], steps: number): Table {
  const rows = all.flatMap((result, index) =>
    result.runs.map((run) =>
      rowOf(`seed ${seeds[index]}, ${run.schedule}`, result, run, result.runs[0]),
    ),
  );
  const names = all[0]?.runs.map(({ schedule }) => schedule) ?? [];
  const means = names.map((schedule, at) => {
    const ofSchedule = all.flatMap(({ runs }) => runs[at] ?? []);
    const first = all.flatMap(({ runs }) => runs[0] ?? []);
    const before = {
      accuracy: meanOf(all.map((one) => one.accuracy)),
      greedyAccuracy: meanOf(all.map((one) => one.greedyAccuracy)),
    };
    return rowOf(`mean, ${schedule}`, before, meanRun(ofSchedule), meanRun(first));
  });
  return {
    title: `GRPO on additions, ${steps} steps of 32 x 8`,
    rows: [
      [
        "",
        "s",
        "time",
        "accuracy before",
        "after",
        "greedy before",
        "after",
        "exposed wait, s",
        "slots busy",
      ],
      ...rows,
      ...means,
    ],
  };
}

function rowOf(
  name: string,
  before: Pick<QuickstartResult, "accuracy" | "greedyAccuracy">,
  run: QuickstartRun,
  first: QuickstartRun | undefined,
): string[] {
  const { seconds, accuracy, greedyAccuracy, exposedWaitSeconds, slotsBusy } = run;
  const saved = seconds / (first?.seconds ?? seconds) - 1;
  return [
    name,
    seconds.toFixed(1),
    `${(saved * 100).toFixed(1)} %`,
    before.accuracy.toFixed(3),
    accuracy.toFixed(3),
    before.greedyAccuracy.toFixed(3),
    greedyAccuracy.toFixed(3),
    exposedWaitSeconds.toFixed(1),
    `${(slotsBusy * 100).toFixed(1)} %`,
  ];
}

function meanRun(runs: readonly QuickstartRun[]): QuickstartRun {
  const mean = (pick: (run: QuickstartRun) => number): number => meanOf(runs.map(pick));
  return {
    schedule: runs[0]?.schedule ?? "sync",
    steps: runs[0]?.steps ?? 0,
    seconds: mean(({ seconds }) => seconds),
    accuracy: mean(({ accuracy }) => accuracy),
    greedyAccuracy: mean(({ greedyAccuracy }) => greedyAccuracy),
    exposedWaitSeconds: mean(({ exposedWaitSeconds }) => exposedWaitSeconds),
    slotsBusy: mean(({ slotsBusy }) => slotsBusy),
    samples: mean(({ samples }) => samples),
    invalid: mean(({ invalid }) => invalid),
  };
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

await runCommand("bench", main);
