/** Executors in processes (verl's manager remote): what would end a thread's whole process costs its own sample there, and no other. */

import { existsSync } from "node:fs";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inFull } from "../../../test/fixtures/suite.ts";
import { newRunTable, runTableAt } from "../src/executor/run-table/run-tables.ts";
import {
  expectOnlyInvalid,
  failureAt,
  fixture,
  numbers,
  sampleOf,
  scoreByDeadline,
  scoreTexts,
} from "./loop.ts";

beforeAll(() => ray.init({ prewarm: 0 }));
afterAll(() => ray.shutdown());

const remote: RewardLoopOptions = { manager: "remote", workers: 1, executors: 1 };
const troublemaker = fixture("troublemaker.ts");

const pidsOf = (outcomes: readonly SampleOutcome[]): Set<unknown> =>
  new Set(outcomes.map((one) => (one.valid ? one.rewardExtraInfo["pid"] : undefined)));

test("score functions run in processes of their own, async ones many at once", async () => {
  const loop = await RewardLoopManager.create({
    ...remote,
    workers: 2,
    reward: `${troublemaker}:withPid`,
  });
  const outcomes = await Promise.all(numbers(100).map((text) => loop.computeScore(sampleOf(text))));
  expectOnlyInvalid(outcomes, {});
  const pids = pidsOf(outcomes);
  expect(pids.size).toBe(2);
  expect(pids).not.toContain(process.pid);
  await loop.close();
  for (const pid of pids) {
    await expect.poll(() => isAlive(pid as number), { timeout: 30_000 }).toBe(false);
  }
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe.each(["sync", "later"])("%s", (name) => {
  const reward = `${troublemaker}:${name}`;
  const inGate = name === "sync";

  test.runIf(
    name === "later" ||
      inFull("of one sample at a time it is sooner known which ended it; `later` has many"),
  )("whatever ends its process costs that sample only, and it is said how it ended", async () => {
    const outcomes = await scoreTexts(
      { ...remote, reward },
      numbers(12, { 1: "abort", 2: "exit", 3: "kill" }),
    );
    expectOnlyInvalid(outcomes, {
      1: "EXECUTOR_DIED",
      2: "EXECUTOR_DIED",
      3: "EXECUTOR_DIED",
    });
    expect([1, 2, 3].map((index) => failureAt(outcomes, index))).toMatchObject([
      { deathKind: "signal", signal: "SIGABRT" },
      { deathKind: "exited", exitCode: 7 },
      { deathKind: "signal", signal: "SIGKILL" },
    ]);
  });

  test.runIf(inGate || inFull("failures.test.ts has an endless loop beside others, in a thread"))(
    "an endless loop is ended at its deadline",
    async () => {
      const { outcomes } = await scoreByDeadline(
        () => ({ ...remote, reward }),
        numbers(20, { 9: "spin" }),
      );
      expectOnlyInvalid(outcomes, { 9: "SCORE_TIMEOUT" });
    },
  );

  test.runIf(
    inGate || inFull("how it ends is the same in sync; who is named is in the ends above"),
  )("memory beyond its limit, in small steps or at once, costs that sample only", async () => {
    const outcomes = await scoreTexts(
      { ...remote, reward, resourceLimits: { maxOldGenerationSizeMb: 64 } },
      numbers(12, { 3: "memory", 9: "huge" }),
    );
    expectOnlyInvalid(outcomes, { 3: "EXECUTOR_DIED", 9: "EXECUTOR_DIED" });
    expect([3, 9].map((index) => failureAt(outcomes, index))).toMatchObject([
      { deathKind: "out-of-memory" },
      { deathKind: "out-of-memory" },
    ]);
  });
});

test("an exception that nobody catches is traced to its sample, although it names none", async () => {
  const outcomes = await scoreTexts(
    { ...remote, reward: `${troublemaker}:unnamed` },
    numbers(20, { 13: "throw uncaught" }),
  );
  expectOnlyInvalid(outcomes, { 13: "EXECUTOR_DIED" });
  expect(failureAt(outcomes, 13)).toMatchObject({ deathKind: "uncaught-exception" });
});

test("processes that somebody else kills, again and again, cost no sample", async () => {
  let done = 0;
  const outcomes = await scoreTexts(
    { ...remote, concurrency: 4, reward: `${troublemaker}:withPid` },
    numbers(60),
    ({ outcome }) => {
      done += 1;
      if (done % 30 === 15 && outcome.valid) {
        const pid = outcome.rewardExtraInfo["pid"] as number;
        if (isAlive(pid)) process.kill(pid, "SIGKILL");
      }
    },
  );
  expectOnlyInvalid(outcomes, {});
  expect(pidsOf(outcomes).size).toBeGreaterThan(2);
});

test("a worker that is killed takes its processes along, and costs no sample", async () => {
  let done = 0;
  const outcomes = await scoreTexts(
    { ...remote, workers: 2, concurrency: 4, reward: `${troublemaker}:withPid` },
    numbers(60),
    async (_, loop) => {
      done += 1;
      if (done === 20) await ray.kill(await ray.getActor(loop.workerNames[0] ?? ""));
    },
  );
  expectOnlyInvalid(outcomes, {});
  for (const pid of pidsOf(outcomes)) {
    await expect.poll(() => isAlive(pid as number), { timeout: 30_000 }).toBe(false);
  }
});

const failsToLoad = async (
  name: string,
  deathKind: string,
  startTimeoutMs = 60_000,
): Promise<void> => {
  const creating = RewardLoopManager.create({ ...remote, startTimeoutMs, reward: fixture(name) });
  await expect(creating).rejects.toMatchObject({ code: "EXECUTOR_START", deathKind });
  expect(await ray.listNamedActors()).toEqual([]);
};

test("a module that never finishes loading ends the loop with a clear error", () =>
  failsToLoad("hangs-on-load.ts", "start-timeout", 1000));

test.runIf(
  inFull(
    "six processes start; deaths.test.ts has it of threads, and how a process's end is told is above",
  ),
)("a module that ends every process that loads it ends the loop with a clear error", () =>
  failsToLoad("exits-on-load.ts", "exited"),
);

test.each([
  [{ manager: "remote", executorIsolation: "thread" }, "executorIsolation must be left out"],
  [{ manager: "remote", managerOptions: { workers: 2 } }, "managerOptions.workers must be left"],
  [{ executorIsolation: "shared" }, 'executorIsolation must be "thread" or "process"'],
])("%j is refused", async (options, message) => {
  await expect(RewardLoopManager.create(options as RewardLoopOptions)).rejects.toThrow(message);
});

describe.each(["thread", "process"] as const)("the run table of a %s", (isolation) => {
  test("says at its worker what was written at its executor", () => {
    const own = newRunTable(isolation, 3);
    const its = runTableAt(own.place);
    expect([own.slots, own.runningId, own.isExiting, own.ageMs(2)]).toEqual([
      3,
      0,
      false,
      undefined,
    ]);
    its.runningId = 2 ** 31 - 1;
    its.start(2);
    expect(own.runningId).toBe(2 ** 31 - 1);
    expect([0, 1, 2].map((slot) => own.hasStarted(slot))).toEqual([false, false, true]);
    expect(own.ageMs(2)).toBeGreaterThanOrEqual(0);
    own.clear(2);
    expect(own.ageMs(2)).toBeUndefined();
    its.runningId = 0;
    its.exiting();
    expect([own.runningId, own.isExiting]).toEqual([0, true]);
    own.close();
    its.close();
  });
});

test("the file of a run table is gone when the executor has it, or when it will not come", () => {
  const pathOf = (table: ReturnType<typeof newRunTable>): string =>
    table.place.kind === "file" ? table.place.path : "";
  const [one, other] = [newRunTable("process", 1), newRunTable("process", 1)];
  expect([existsSync(pathOf(one)), existsSync(pathOf(other))]).toEqual([true, true]);
  const its = runTableAt(one.place);
  other.close();
  expect([existsSync(pathOf(one)), existsSync(pathOf(other))]).toEqual([false, false]);
  one.close();
  its.close();
});
