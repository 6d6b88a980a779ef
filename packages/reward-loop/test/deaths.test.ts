/** Threads die in the middle of a run: no sample is lost, none counted twice, and who did it is told. */

import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { inFull, sized } from "../../../test/fixtures/suite.ts";
import {
  expectOnlyInvalid,
  failureAt,
  fixture,
  numbers,
  sampleOf,
  scoreByDeadline,
  scoreTexts,
} from "./loop.ts";

// Workers are threads here, too: that they end is what some cases are about.
beforeAll(() => ray.init({ prewarm: 0 }));
afterAll(() => ray.shutdown());

const troublemaker = fixture("troublemaker.ts");

describe.each(sized({ gate: ["sync", "later"], full: ["sync", "atOnce", "later"] }))(
  "process.exit in a score function (%s)",
  (name) => {
    test("only those samples are invalid, each with its exit code", async () => {
      const exits = { 1: "exit", 2: "exit" };
      const outcomes = await scoreTexts({ reward: `${troublemaker}:${name}` }, numbers(16, exits));
      expectOnlyInvalid(
        outcomes,
        Object.fromEntries(Object.keys(exits).map((index) => [index, "EXECUTOR_DIED"])),
      );
      for (const index of [1, 2]) {
        expect(failureAt(outcomes, index)).toMatchObject({ deathKind: "exited", exitCode: 7 });
      }
    });
  },
);

describe("a synchronous function whose thread ends", () => {
  const texts = numbers(300, { 50: "exit", 200: "exit" });
  const runsOf = async (count: number, ms: number): Promise<readonly number[]> => {
    const runs = new SharedArrayBuffer(count * Int32Array.BYTES_PER_ELEMENT);
    const reward = { path: troublemaker, name: "counted", rewardKwargs: { ms, runs } };
    await using loop = await RewardLoopManager.create({ workers: 1, executors: 1, reward });
    const given = texts.slice(0, count).map((text, index) => {
      return { ...sampleOf(text), extraInfo: { index } };
    });
    const outcomes = await Promise.all(given.map((sample) => loop.computeScore(sample)));
    const exits = [50, 200].filter((index) => index < count);
    expectOnlyInvalid(outcomes, Object.fromEntries(exits.map((index) => [index, "EXECUTOR_DIED"])));
    return [...new Int32Array(runs)];
  };

  test("nothing that has ended runs again", async () => {
    expect(await runsOf(70, 1)).toEqual(Array.from({ length: 70 }, () => 1));
  });

  test("of runs that take next to no time, a message's worth runs again", async () => {
    const counts = await runsOf(300, 0);
    expect(Math.min(...counts)).toBe(1);
    expect(Math.max(...counts)).toBeLessThanOrEqual(2);
    expect(counts.filter((count) => count > 1).length).toBeLessThanOrEqual(2 * 64);
  });
});

const slowEnds = { slowly: "EXECUTOR_DIED", never: "SCORE_TIMEOUT" } as const;

const endsTooLate = async (how: keyof typeof slowEnds): Promise<void> => {
  const { outcomes } = await scoreByDeadline(
    () => ({ reward: `${troublemaker}:sync` }),
    numbers(10, { 4: `exit ${how}` }),
  );
  expectOnlyInvalid(outcomes, { 4: slowEnds[how] });
};

test("a thread that ends slowly, far later than the deadline, is EXECUTOR_DIED", () =>
  endsTooLate("slowly"));

// Its thread has to be ended.
test.runIf(
  inFull(
    "it has five seconds to end in; that there is such a time is above, and failures.test.ts has threads that are blocked",
  ),
)("a thread that never ends is SCORE_TIMEOUT", () => endsTooLate("never"));

test("an exception that nobody catches is traced to its sample, although it names none", async () => {
  const outcomes = await scoreTexts(
    { reward: `${troublemaker}:unnamed` },
    numbers(20, { 13: "throw uncaught" }),
  );
  expectOnlyInvalid(outcomes, { 13: "EXECUTOR_DIED" });
  expect(failureAt(outcomes, 13)).toMatchObject({ deathKind: "uncaught-exception" });
  expect(failureAt(outcomes, 13).message).toContain("nobody catches this");
});

test("a score function that eats all memory takes only its own sample along", async () => {
  const outcomes = await scoreTexts(
    { reward: `${troublemaker}:sync`, resourceLimits: { maxOldGenerationSizeMb: 48 } },
    numbers(12, { 9: "memory" }),
  );
  expectOnlyInvalid(outcomes, { 9: "EXECUTOR_DIED" });
  expect(failureAt(outcomes, 9)).toMatchObject({ deathKind: "out-of-memory" });
});

test.each(sized({ gate: ["slowValue"], full: ["value", "slowValue"] }))(
  "a worker that is killed in the middle (%s) costs no sample and counts none twice",
  async (name) => {
    let done = 0;
    const outcomes = await scoreTexts(
      { workers: 2, concurrency: 16, reward: `${fixture("rewards.ts")}:${name}` },
      numbers(400),
      async (_, loop) => {
        done += 1;
        // Both, one after the other, and the first one's successor as well.
        const victim = { 40: 0, 80: 1, 200: 0 }[done];
        if (victim === undefined) return;
        // A successor may not have its name yet.
        const find = (): Promise<ray.ActorHandle<object>> =>
          ray.getActor(loop.workerNames[victim] ?? "");
        const worker = await vi.waitFor(find, { timeout: 60_000 });
        await ray.kill(worker);
      },
    );
    expectOnlyInvalid(outcomes, {});
  },
);

test("an executor that is killed from outside costs no sample, and nobody is blamed", async () => {
  let done = 0;
  const outcomes = await scoreTexts(
    { executors: 2, concurrency: 16, reward: `${fixture("rewards.ts")}:slowValue` },
    numbers(120),
    async () => {
      done += 1;
      if (done !== 30) return;
      const named = await ray.listNamedActors();
      const executors = named.filter(({ name }) => name.includes("_executor_"));
      await Promise.all(executors.map(async ({ name }) => ray.kill(await ray.getActor(name))));
    },
  );
  expectOnlyInvalid(outcomes, {});
});

test.runIf(
  inFull(
    "samples of a worker that is killed in the middle are given to others above, whoever asked for them",
  ),
)("a batch survives the death of its worker", async () => {
  await using loop = await RewardLoopManager.create({
    workers: 2,
    executors: 1,
    reward: `${fixture("rewards.ts")}:slowValue`,
  });
  const running = Promise.all(numbers(200).map((text) => loop.computeScore(sampleOf(text))));
  await ray.kill(await ray.getActor(loop.workerNames[0] ?? ""));
  expectOnlyInvalid(await running, {});
});

test("eight workers share a thread, which outlives one of them and ends with the loop", async () => {
  const loop = await RewardLoopManager.create({
    workers: 9,
    executors: 1,
    reward: `${fixture("rewards.ts")}:value`,
  });
  const placeOf = async (name: string): Promise<string | undefined> => {
    const rows = await ray.state.listActors({ filters: [["name", "=", name]] });
    return rows.find(({ state }) => state === "ALIVE")?.workerId;
  };
  const [first = "", ...others] = loop.workerNames;
  const thread = await placeOf(first);
  const places = await Promise.all(others.map(placeOf));
  expect(places.slice(0, 7)).toEqual(Array.from({ length: 7 }, () => thread));
  expect(places[7]).not.toBe(thread);
  await ray.kill(await ray.getActor(first));
  const samples = numbers(90).map((text) => loop.computeScore(sampleOf(text)));
  expectOnlyInvalid(await Promise.all(samples), {});
  expect(await Promise.all(others.map(placeOf))).toEqual(places);
  // Its successor is alone: what ended it ends nobody else when it comes again.
  const isAlone = async (): Promise<boolean> => {
    const place = await placeOf(first);
    return place !== undefined && place !== thread && place !== places[7];
  };
  await expect.poll(isAlone).toBe(true);
  await loop.close();
  const isAlive = async (id = ""): Promise<boolean | undefined> =>
    (await ray.state.getWorker(id))?.isAlive;
  await expect.poll(() => Promise.all([thread, places[7]].map(isAlive))).toEqual([false, false]);
});

test("groups go to the workers that are left when one is lost", async () => {
  // Each worker is full of what never ends, so that what one had does not go to the other.
  await using loop = await RewardLoopManager.create({
    workers: 2,
    executors: 2,
    concurrency: 1,
    reward: `${fixture("parts.ts")}:Endless`,
  });
  const endless = ["1", "2"].map((text) => loop.computeScore(sampleOf(text)));
  const ended = Promise.allSettled(endless);
  const [name = ""] = loop.workerNames;
  for (let deaths = 0; deaths < 6; deaths++) {
    // It is the next one when it has executors.
    const isThere = async (): Promise<boolean> =>
      (await ray.listNamedActors()).some((one) =>
        one.name.startsWith(`${name}_executor_${deaths}_`),
      );
    await expect.poll(isThere, { timeout: 60_000 }).toBe(true);
    await ray.kill(await ray.getActor(name));
  }
  expect(await loop.postProcessScores([1, 2])).toEqual({ valid: true, scores: [2, 3] });
  await loop.close();
  expect((await ended).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
});

test("a module that ends every thread which loads it ends the loop with a clear error, and leaves no actor", async () => {
  const creating = RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward: fixture("exits-on-load.ts"),
  });
  await expect(creating).rejects.toMatchObject({ code: "EXECUTOR_START", deathKind: "exited" });
  expect(await ray.listNamedActors()).toEqual([]);
});

test("a module that never finishes loading ends the loop with a clear error", async () => {
  const creating = RewardLoopManager.create({
    workers: 1,
    executors: 1,
    startTimeoutMs: 500,
    reward: fixture("hangs-on-load.ts"),
  });
  await expect(creating).rejects.toMatchObject({
    code: "EXECUTOR_START",
    deathKind: "start-timeout",
  });
});

test.each([
  ["does not exist", "no-such-module.ts", "REWARD_MODULE_NOT_FOUND"],
  ["throws while it loads", "throws-on-load.ts", "REWARD_MODULE_IMPORT"],
  ["lacks the export", "rewards.ts:nothing", "REWARD_EXPORT_NOT_FOUND"],
])("a module that %s is an error of the loop, not of samples", async (_, name, code) => {
  await expect(
    RewardLoopManager.create({ workers: 1, executors: 1, reward: fixture(name) }),
  ).rejects.toMatchObject({ code });
  expect(await ray.listNamedActors()).toEqual([]);
});
