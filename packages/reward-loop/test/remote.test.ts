/** Executors in processes (verl's manager remote): what would end a thread's whole process costs its own sample there, and no other. */

import { existsSync } from "node:fs";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import { afterAll, describe, expect, test } from "vitest";
import { newRunTable, runTableAt } from "../src/executor/run-tables.ts";
import { expectOnlyInvalid, failureAt, fixture, numbers, sampleOf, scoreTexts } from "./loop.ts";

afterAll(() => ray.shutdown());

const remote: RewardLoopOptions = { manager: "remote", workers: 2, executors: 1 };
const troublemaker = fixture("troublemaker.ts");

const pidsOf = (outcomes: readonly SampleOutcome[]): Set<unknown> =>
  new Set(outcomes.map((one) => (one.valid ? one.rewardExtraInfo["pid"] : undefined)));

test("score functions run in processes of their own, async ones many at once", async () => {
  const loop = await RewardLoopManager.create({ ...remote, reward: `${troublemaker}:withPid` });
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

  test.each([
    ["exit", { deathKind: "exited", exitCode: 7 }],
    ["abort", { deathKind: "signal", signal: "SIGABRT" }],
    ["kill", { deathKind: "signal", signal: "SIGKILL" }],
  ])("%s costs that sample only, and it is said how it ended", async (how, expected) => {
    const outcomes = await scoreTexts({ ...remote, reward }, numbers(60, { 20: how }));
    expectOnlyInvalid(outcomes, { 20: "EXECUTOR_DIED" });
    expect(failureAt(outcomes, 20)).toMatchObject(expected);
  });

  test("many that end theirs are all told, each for itself", async () => {
    const ends = { 1: "abort", 2: "exit", 3: "kill", 11: "abort", 19: "exit" };
    const outcomes = await scoreTexts({ ...remote, reward, workers: 1 }, numbers(20, ends));
    expectOnlyInvalid(
      outcomes,
      Object.fromEntries(Object.keys(ends).map((index) => [index, "EXECUTOR_DIED"])),
    );
  });

  test("an endless loop is ended at its deadline", async () => {
    const outcomes = await scoreTexts(
      { ...remote, reward, timeoutMs: 300 },
      numbers(40, { 9: "hang" }),
    );
    expectOnlyInvalid(outcomes, { 9: "SCORE_TIMEOUT" });
  });

  test.each(["memory", "huge"])("%s beyond its limit costs that sample only", async (how) => {
    const outcomes = await scoreTexts(
      { ...remote, reward, resourceLimits: { maxOldGenerationSizeMb: 64 } },
      numbers(30, { 9: how }),
    );
    expectOnlyInvalid(outcomes, { 9: "EXECUTOR_DIED" });
    expect(failureAt(outcomes, 9)).toMatchObject({ deathKind: "out-of-memory" });
  });
});

test("an exception that nobody catches is traced to its sample, although it names none", async () => {
  const outcomes = await scoreTexts(
    { ...remote, reward: `${troublemaker}:unnamed` },
    numbers(40, { 13: "throw uncaught" }),
  );
  expectOnlyInvalid(outcomes, { 13: "EXECUTOR_DIED" });
  expect(failureAt(outcomes, 13)).toMatchObject({ deathKind: "uncaught-exception" });
});

test("processes that somebody else kills, again and again, cost no sample", async () => {
  let done = 0;
  const outcomes = await scoreTexts(
    { ...remote, reward: `${troublemaker}:withPid` },
    numbers(400),
    ({ outcome }) => {
      done += 1;
      if (done % 100 === 50 && outcome.valid) {
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
    { ...remote, reward: `${troublemaker}:withPid` },
    numbers(200),
    async (_, loop) => {
      done += 1;
      if (done === 40) await ray.kill(await ray.getActor(loop.workerNames[0] ?? ""));
    },
  );
  expectOnlyInvalid(outcomes, {});
  for (const pid of pidsOf(outcomes)) {
    await expect.poll(() => isAlive(pid as number), { timeout: 30_000 }).toBe(false);
  }
});

test.each([
  ["ends every process that loads it", "exits-on-load.ts", "exited", 60_000],
  ["never finishes loading", "hangs-on-load.ts", "start-timeout", 5000],
])(
  "a module that %s ends the loop with a clear error",
  async (_, name, deathKind, startTimeoutMs) => {
    const creating = RewardLoopManager.create({
      ...remote,
      workers: 1,
      startTimeoutMs,
      reward: fixture(name),
    });
    await expect(creating).rejects.toMatchObject({ code: "EXECUTOR_START", deathKind });
    expect(await ray.listNamedActors()).toEqual([]);
  },
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
