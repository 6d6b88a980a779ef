/** A training that is ended by kill -9 in the middle of a step, and gone on with: nothing is lost, nothing is trained twice, and where the order of updates is fixed the weights are the same. */

import { spawn } from "node:child_process";
import { existsSync, readFileSync, watch } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { ScheduleName, StalenessOptions } from "@rayling/trainer";
import { describe, expect, onTestFinished, test } from "vitest";
import type { BanditLine, BanditRun } from "../fixtures/bandit-run.ts";
import { inFull, sized } from "../../../../test/fixtures/suite.ts";

const script = fileURLToPath(new URL("../fixtures/bandit-run.ts", import.meta.url));

type StepLine = Extract<BanditLine, { step: number }>;
type EndLine = Extract<BanditLine, { version: number }>;

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "rayling-resume-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs to its end, or until `killedWhen` resolves. */
async function ran(run: BanditRun, killedWhen?: Promise<void>): Promise<BanditLine[]> {
  const child = spawn(process.execPath, [script, JSON.stringify(run)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: BanditLine[] = [];
  const exited = new Promise<number | null>((resolve) => void child.once("exit", resolve));
  void killedWhen?.then(() => child.kill("SIGKILL"));
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(JSON.parse(line) as BanditLine);
  }
  const code = await exited;
  if (killedWhen === undefined) expect(code).toBe(0);
  return lines;
}

/** Resolves when the file has so many lines. */
async function hasLines(path: string, count: number): Promise<void> {
  await becomes(path, (text) => text.split("\n").length > count);
}

/** Resolves when that is what the file says. */
async function says(path: string, wanted: string): Promise<void> {
  await becomes(path, (text) => text === wanted);
}

async function becomes(path: string, isWanted: (text: string) => boolean): Promise<void> {
  const there = Promise.withResolvers<void>();
  const look = (): void => {
    if (existsSync(path) && isWanted(readFileSync(path, "utf8"))) there.resolve();
  };
  const watcher = watch(join(path, ".."), look);
  look();
  await there.promise;
  watcher.close();
}

function stepsOf(lines: readonly BanditLine[]): StepLine[] {
  return lines.filter((line): line is StepLine => "step" in line);
}

function endOf(lines: readonly BanditLine[]): EndLine | undefined {
  return lines.find((line): line is EndLine => "version" in line);
}

interface Case {
  readonly schedule: ScheduleName;
  readonly staleness?: StalenessOptions;
  /** Whether its updates come in a fixed order. */
  readonly isFixed: boolean;
  readonly bound: number;
}

/** With what is ahead outstanding. One of a fixed order is below, with filtered groups. */
const inGate: readonly Case[] = [
  {
    schedule: "streaming",
    staleness: { limit: 2, numWarmupBatches: 2, strategy: "wait" },
    isFixed: false,
    bound: 2,
  },
];

const cases: readonly Case[] = [
  { schedule: "sync", isFixed: true, bound: 0 },
  { schedule: "one-step-off-policy", isFixed: true, bound: 1 },
  { schedule: "mini-batch-pipeline", isFixed: false, bound: 0 },
  { schedule: "one-step-pipeline", isFixed: false, bound: 1 },
  { schedule: "streaming", isFixed: false, bound: 0 },
  ...inGate,
];

describe("kill -9 in the middle of a step", () => {
  test.for(sized({ gate: inGate, full: cases }))(
    "$schedule, at most $bound steps old",
    async ({ schedule, staleness, isFixed, bound }) => {
      const steps = 6;
      const common = { schedule, steps, saveFreq: 1, ...(staleness && { staleness }) };
      const folder = await newFolder();
      const scored = join(folder, "scored");
      const goOn = join(folder, "go on");
      // Step 4 has 8 of its 16 samples scored, and the others wait.
      const rewardKwargs = { scored, stopAt: 57, goOn };
      const run = { ...common, folder: join(folder, "run"), rewardKwargs };
      const first = stepsOf(await ran(run, hasLines(scored, 60)));
      expect(first.length).toBeLessThan(steps);
      await writeFile(goOn, "");
      const second = await ran(run);
      const again = stepsOf(second);
      const begun = again[0]?.step ?? 0;
      // What was told and not kept is trained again: it is as if it had not been.
      const whole = [...first.filter(({ step }) => step < begun), ...again];
      expect(whole.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6]);
      const ids = whole.flatMap((line) => line.ids);
      expect(new Set(ids).size).toBe(96);
      expect(ids).toHaveLength(96);
      expect(Math.max(...whole.map(({ worst }) => worst))).toBeLessThanOrEqual(bound);
      if (!isFixed) return;
      const straight = await ran({ ...common, folder: join(folder, "straight"), rewardKwargs: {} });
      expect(endOf(second)).toEqual(endOf(straight));
    },
  );
});

type Setting = Pick<BanditRun, "schedule" | "filters" | "advEstimator">;
const ahead: [string, Setting] = [
  "one-step-off-policy, with filtered groups",
  { schedule: "one-step-off-policy", filters: true },
];
const settings: [string, Setting][] = [
  ahead,
  ["sync, with filtered groups", { schedule: "sync", filters: true }],
  ["one-step-off-policy, remax", { schedule: "one-step-off-policy", advEstimator: "remax" }],
];

test.for(sized({ gate: [ahead], full: settings }))(
  "%s: the weights are those of a run that was never stopped",
  async ([, setting]) => {
    const folder = await newFolder();
    const scored = join(folder, "scored");
    const goOn = join(folder, "go on");
    const common = { ...setting, steps: 6, saveFreq: 1 };
    // In the middle of the fourth batch, or of the fifth.
    const rewardKwargs = { scored, stopAt: 73, goOn };
    const run = { ...common, folder: join(folder, "run"), rewardKwargs };
    const first = stepsOf(await ran(run, hasLines(scored, 76)));
    expect(first.length).toBeLessThan(6);
    await writeFile(goOn, "");
    const second = await ran(run);
    const begun = stepsOf(second)[0]?.step ?? 0;
    expect(begun).toBeGreaterThan(1);
    const whole = [...first.filter(({ step }) => step < begun), ...stepsOf(second)];
    expect(whole.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(new Set(whole.flatMap(({ ids }) => ids)).size).toBe(96);
    const straight = await ran({ ...common, folder: join(folder, "straight"), rewardKwargs: {} });
    expect(endOf(second)).toEqual(endOf(straight));
    expect(whole.map(({ ids }) => ids)).toEqual(stepsOf(straight).map(({ ids }) => ids));
  },
);

test.runIf(
  inFull(
    "schedules.test.ts drops and filters groups, outstanding.test.ts has those of a checkpoint, and streaming is killed above",
  ),
)(
  "streaming, with a group that is dropped and others that are filtered out: none comes back, all else is trained once",
  async () => {
    const folder = await newFolder();
    const scored = join(folder, "scored");
    const goOn = join(folder, "go on");
    const run: BanditRun = {
      schedule: "streaming",
      staleness: { limit: 2, numWarmupBatches: 2, strategy: "drop" },
      filters: true,
      // More than what is judged before the kill is enough for, however few are filtered out.
      steps: 9,
      saveFreq: 1,
      folder: join(folder, "run"),
      // The first group is never judged before the kill, which comes when it was dropped: at the end of step 3.
      rewardKwargs: { scored, stopAt: 141, goOn, holds: "1:0:0:0" },
    };
    const first = stepsOf(await ran(run, hasLines(scored, 144)));
    await writeFile(goOn, "");
    const again = stepsOf(await ran(run));
    const begun = again[0]?.step ?? 0;
    expect(begun).toBeGreaterThan(3);
    const whole = [...first.filter(({ step }) => step < begun), ...again];
    expect(whole.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(whole.map(({ ids }) => ids.length)).toEqual(Array.from({ length: 9 }, () => 16));
    const ids = whole.flatMap((line) => line.ids);
    expect(new Set(ids).size).toBe(144);
    expect(ids.filter((id) => id.startsWith("1:0:0:0/"))).toEqual([]);
    expect(Math.max(...whole.map(({ worst }) => worst))).toBeLessThanOrEqual(2);
    const sumOf = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0);
    // In samples; what else is too old by then is dropped as well.
    const evicted = sumOf(whole.map((line) => line.evicted)) / 4;
    expect(whole[2]?.evicted).toBeGreaterThanOrEqual(4);
    expect(sumOf(whole.map(({ filtered }) => filtered))).toBeGreaterThan(0);
    const scores = new Map<string, Set<string>>();
    for (const line of readFileSync(scored, "utf8").trimEnd().split("\n")) {
      const [group = "", score = ""] = line.split(" ");
      scores.set(group, (scores.get(group) ?? new Set()).add(score));
    }
    const differing = [...scores].filter(([, ones]) => ones.size > 1).map(([group]) => group);
    const trained = new Set(ids.map((id) => id.split("/")[0] ?? ""));
    expect([...trained].filter((group) => !differing.includes(group))).toEqual([]);
    // Whatever was worth it and is not trained was dropped, or is left over: of two batches ahead, and one that was generated in the place of others.
    const rest = differing.filter((group) => !trained.has(group)).length;
    expect(rest - evicted).toBeLessThanOrEqual(12);
  },
);

test("a step that a checkpoint has was told before it, and its validation, which was still judged when the kill came, is told by the next run", async () => {
  const folder = await newFolder();
  const goOn = join(folder, "go on");
  const run = {
    schedule: "one-step-off-policy",
    steps: 3,
    saveFreq: 1,
    testFreq: 1,
    folder: join(folder, "run"),
    rewardKwargs: { goOn, holdsValidation: true },
  } as const;
  await mkdir(run.folder);
  // Step 2 is not over, and not kept, before step 1 is judged.
  const latest = join(run.folder, "latest_checkpointed_iteration.txt");
  const first = await ran(run, says(latest, "1"));
  expect(stepsOf(first)[0]?.step).toBe(1);
  await writeFile(goOn, "");
  const second = await ran(run);
  expect(stepsOf(second).map(({ step }) => step)).toEqual([2, 3]);
  const validated = second.flatMap((line) => ("validated" in line ? [line.validated] : []));
  expect(validated).toEqual([1, 2, 3]);
  // Behind the last step nobody knows whether it was told: it is, once more, and nothing is trained.
  const third = await ran(run);
  expect(stepsOf(third)).toEqual([]);
  expect(third).toContainEqual({ validated: 3 });
});

test("what was scored before the kill is not scored again", async () => {
  const folder = await newFolder();
  const scored = join(folder, "scored");
  const goOn = join(folder, "go on");
  const rewardKwargs = { scored, stopAt: 33, goOn };
  const run = {
    schedule: "one-step-off-policy",
    steps: 2,
    saveFreq: 1,
    folder: join(folder, "run"),
    rewardKwargs,
  } as const;
  await ran(run);
  // Both batches were scored, 16 samples each, before anything had to wait.
  expect(readFileSync(scored, "utf8").trimEnd().split("\n")).toHaveLength(32);
  const more = await ran({ ...run, steps: 2 });
  expect(stepsOf(more)).toEqual([]);
  expect(endOf(more)?.version).toBe(4);
  expect(readFileSync(scored, "utf8").trimEnd().split("\n")).toHaveLength(32);
});
