/** How many samples are at work in an executor, and what stands ready behind them. */

import { setImmediate as turn } from "node:timers/promises";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sized } from "../../../../test/fixtures/suite.ts";
import { newRunTable } from "../../src/executor/run-table/run-tables.ts";
import { ScoreExecutorActor } from "../../src/executor/score-executor.ts";
import type { ScoreReply } from "../../src/executor/run.ts";
import type { SampleOutcome } from "../../src/outcome.ts";
import { readSettings } from "../../src/settings/settings.ts";
import type { ExecutorSettings } from "../../src/settings/settings.ts";
import { fromTables, toTables } from "../../src/exchange/column-table.ts";
import { ExecutorCalls } from "../../src/worker/executors/executor-calls.ts";
import { Job } from "../../src/worker/executors/job.ts";
import { SentRuns } from "../../src/worker/executors/sent-runs.ts";
import { ExecutorPool } from "../../src/worker/executors/pool/executor-pool.ts";
import { readyOf } from "../../src/worker/slots.ts";
import { fixture, numbers, sampleOf } from "../loop.ts";
import { scoreIn } from "./score-in.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

test("an executor that gives a sign of life says whose results wait for a call", async () => {
  const { pipeline } = readSettings({ reward: fixture("troublemaker.ts:inThread") });
  const channel = new BroadcastChannel("rayling in thread");
  const begun: unknown[] = [];
  channel.addEventListener("message", (event) => begun.push((event as MessageEvent).data));
  const table = newRunTable("thread", 2);
  const executor = ScoreExecutorActor.remote(pipeline, table.place, 2);
  try {
    await ray.get(executor.ready.remote());
    const samples = toTables(["hold 0", "hold 1"].map(sampleOf));
    const answer = ray.get(
      executor.take.remote({ ids: [1, 2], slots: [0, 1], samples, first: [], aborted: [] }),
    );
    await expect.poll(() => begun).toEqual(["hold 0", "hold 1"]);
    expect(await ray.get(executor.breathe.remote())).toMatchObject({ done: [], used: [] });
    channel.postMessage("go on hold 0");
    expect((await answer).ids).toEqual([1]);
    channel.postMessage("go on hold 1");
    await expect
      .poll(() => ray.get(executor.breathe.remote()))
      .toMatchObject({ done: [2], used: [] });
    const next = executor.take.remote({
      ids: [],
      slots: [],
      samples: [],
      first: [],
      aborted: [],
    });
    expect((await ray.get(next)).ids).toEqual([2]);
    expect(await ray.get(executor.breathe.remote())).toMatchObject({ done: [], used: [] });
  } finally {
    channel.close();
    await ray.kill(executor);
    table.close();
  }
});

test.each<[RewardLoopOptions, number]>([
  [{ executors: 1, concurrency: 128 }, 32],
  [{ executors: 1, concurrency: 128, retry: true, hedge: true }, 32],
  [{ executors: 1, concurrency: 3 }, 0],
  // Another one may be free before.
  [{ executors: 2, concurrency: 128 }, 0],
  // It would hold a lease while it stands there.
  [{ executors: 1, concurrency: 128, limits: { requestsPerMinute: 60 } }, 0],
])("of %j so many stand ready", (options, ready) => {
  expect(readyOf(readSettings(options))).toBe(ready);
});

describe("samples that stand ready in an executor", () => {
  test("begin when there is room, without a message, and not when they were given up", async () => {
    const { pipeline } = readSettings({ reward: fixture("troublemaker.ts:inThread") });
    const channel = new BroadcastChannel("rayling in thread");
    const begun: unknown[] = [];
    channel.addEventListener("message", (event) => begun.push((event as MessageEvent).data));
    const table = newRunTable("thread", 8);
    const executor = ScoreExecutorActor.remote(pipeline, table.place, 2);
    try {
      await ray.get(executor.ready.remote());
      const texts = ["hold 0", "hold 1", "hold 2", "hold 3", "hold 4"];
      const answers = ray.get(
        executor.take.remote({
          ids: [1, 2, 3, 4, 5],
          slots: [0, 1, 2, 3, 4],
          samples: toTables(texts.map(sampleOf)),
          first: [],
          aborted: [],
        }),
      );
      await expect.poll(() => begun).toEqual(["hold 0", "hold 1"]);
      await ray.get(executor.breathe.remote());
      expect(begun).toHaveLength(2);
      // One that stands ready, and one that is at work and heeds nothing.
      const aborted = [3, 2, 1, 0];
      let next = ray.get(
        executor.take.remote({ ids: [], slots: [], samples: [], first: [], aborted }),
      );
      await expect.poll(() => begun).toEqual(["hold 0", "hold 1", "hold 3"]);
      const { ids, rows } = await answers;
      expect(ids).toEqual([3]);
      expect(fromTables(rows)).toMatchObject([{ ok: false, error: { name: "AbortError" } }]);
      channel.postMessage("go on hold 1");
      await expect.poll(() => begun).toEqual(["hold 0", "hold 1", "hold 3", "hold 4"]);
      // What was given up takes no room, also when it ends.
      for (const one of ["0", "3", "4"]) channel.postMessage(`go on hold ${one}`);
      const others: number[] = [];
      while (others.length < 4) {
        const more = await next;
        others.push(...more.ids);
        const replies = fromTables<ScoreReply>(more.rows);
        expect(replies.every(({ ok }) => ok)).toBe(true);
        if (others.length === 4) break;
        next = ray.get(
          executor.take.remote({ ids: [], slots: [], samples: [], first: [], aborted: [] }),
        );
      }
      expect(others.toSorted((one, other) => one - other)).toEqual([1, 2, 4, 5]);
      expect(begun).toHaveLength(4);
    } finally {
      channel.close();
      await ray.kill(executor);
      table.close();
    }
  });

  test("and are given up there do not wear it out, however many they are", async () => {
    const state = new Int32Array(new SharedArrayBuffer(8));
    const reward = { path: fixture("gate.ts"), name: "held", rewardKwargs: { state } };
    const settings = readSettings({ executors: 1, concurrency: 2, reward });
    const pool = new ExecutorPool(settings, (count) => `held_${count}`);
    const submit = (text: string, signal?: AbortSignal): Promise<SampleOutcome> =>
      scoreIn(pool, sampleOf(text), { signal });
    try {
      await pool.ready();
      const first = submit("holds the thread");
      await expect.poll(() => Atomics.load(state, 0)).toBe(1);
      for (let count = 0; count < 3; count++) {
        const givenUp = new AbortController();
        const ready = submit(`ready ${count}`, givenUp.signal);
        givenUp.abort();
        expect(await ready).toMatchObject({ valid: false, attempts: 0 });
      }
      // No slot is left for it, either.
      const last = submit("behind all of them");
      Atomics.store(state, 1, 1);
      Atomics.notify(state, 1);
      expect(await first).toMatchObject({ valid: true });
      expect(await last).toMatchObject({ valid: true, attempts: 1 });
      const names = (await ray.listNamedActors()).map(({ name }) => name);
      expect(names.filter((name) => name.startsWith("held_"))).toEqual(["held_0"]);
    } finally {
      await pool.close();
    }
  });

  test("and others go on beside one that takes long, however many are given up at work", async () => {
    const settings = readSettings({
      executors: 1,
      concurrency: 3,
      reward: fixture("flaky.ts:untilAborted"),
    });
    const pool = new ExecutorPool(settings, (count) => `given_up_${count}`);
    const long = new AbortController();
    try {
      await pool.ready();
      const first = scoreIn(pool, sampleOf("wait"), { signal: long.signal });
      for (let count = 0; count < 40; count++) {
        const givenUp = new AbortController();
        const waits = scoreIn(pool, sampleOf("wait"), { signal: givenUp.signal });
        // The next sample goes in a call of its own.
        await turn();
        // Samples begin in their order: when this one has ended the one before it is at work.
        expect(await scoreIn(pool, sampleOf("quick"), {})).toMatchObject({ rewardScore: count });
        givenUp.abort();
        expect(await waits).toMatchObject({ valid: true, rewardScore: 0 });
      }
      long.abort();
      expect(await first).toMatchObject({ valid: true, attempts: 1 });
      const names = (await ray.listNamedActors()).map(({ name }) => name);
      expect(names.filter((name) => name.startsWith("given_up_"))).toEqual(["given_up_0"]);
    } finally {
      await pool.close();
    }
  });

  test("are no attempts when they are given up, and say how long they stood there", async () => {
    const settings = readSettings({
      executors: 1,
      concurrency: 4,
      reward: fixture("troublemaker.ts:inThread"),
    });
    const pool = new ExecutorPool(settings, (count) => `ready_${count}`);
    const channel = new BroadcastChannel("rayling in thread");
    const begun: unknown[] = [];
    channel.addEventListener("message", (event) => begun.push((event as MessageEvent).data));
    const submit = (text: string, signal?: AbortSignal): Promise<SampleOutcome> =>
      scoreIn(pool, sampleOf(text), { signal });
    try {
      await pool.ready();
      const held = ["hold 0", "hold 1", "hold 2", "hold 3"];
      const outcomes = held.map((text) => submit(text));
      const givenUp = new AbortController();
      const ready = submit("hold 4", givenUp.signal);
      await expect.poll(() => begun).toHaveLength(4);
      givenUp.abort();
      const { valid, attempts, waitedMs } = await ready;
      expect({ valid, attempts }).toEqual({ valid: false, attempts: 0 });
      expect(waitedMs).toBeGreaterThan(0);
      for (const text of held) channel.postMessage(`go on ${text}`);
      const others = await Promise.all(outcomes);
      expect(others.map((one) => one.attempts)).toEqual([1, 1, 1, 1]);
    } finally {
      channel.close();
      await pool.close();
    }
  });

  test.each(sized({ gate: [1, 3], full: [1, 2, 3] }))(
    "are not at work: %i executors together have `concurrency`",
    async (executors) => {
      const state = new Int32Array(new SharedArrayBuffer(16));
      const reward = { path: fixture("gate.ts"), name: "countedOrNoted", rewardKwargs: { state } };
      const options = { workers: 1, executors, concurrency: 14, reward };
      await using loop = await RewardLoopManager.create(options);
      const areValid = async (samples: readonly RewardSample[]): Promise<boolean> => {
        const outcomes = await Promise.all(samples.map((sample) => loop.computeScore(sample)));
        return outcomes.every(({ valid }) => valid);
      };
      const held = areValid(numbers(40).map((text) => sampleOf(`held ${text}`)));
      await expect.poll(() => Atomics.load(state, 0)).toBe(14);
      Atomics.store(state, 1, 1);
      Atomics.notify(state, 1);
      expect(await held).toBe(true);
      // With one that cannot travel with others, which go by themselves, too.
      const deep = { ...sampleOf("deep"), extraInfo: { deep: nested(496) } };
      expect(await areValid([deep, ...numbers(300).map(sampleOf)])).toBe(true);
      expect(Atomics.load(state, 3)).toBeLessThanOrEqual(14);
    },
  );
});

describe("of hundreds of samples that are given up in one turn", () => {
  const newSettings = (): {
    readonly settings: ExecutorSettings;
    readonly state: Int32Array;
  } => {
    const state = new Int32Array(new SharedArrayBuffer(8));
    const reward = { path: fixture("gate.ts"), name: "abortable", rewardKwargs: { state } };
    return { settings: readSettings({ executors: 1, concurrency: 600, reward }), state };
  };
  const newPool = async (): Promise<{
    readonly pool: ExecutorPool;
    readonly state: Int32Array;
  }> => {
    const { settings, state } = newSettings();
    const pool = new ExecutorPool(settings, (count) => `hundreds_${performance.now()}_${count}`);
    await pool.ready();
    return { pool, state };
  };
  const waiting = (count: number): RewardSample[] =>
    Array.from({ length: count }, () => sampleOf("wait"));
  const deep = { ...sampleOf("wait"), extraInfo: { deep: nested(496) } };

  test("each hears of it, though no other call follows", async () => {
    const { settings, state } = newSettings();
    const runs = new SentRuns(settings);
    const answered: number[] = [];
    // Without the watch over its deadlines: the machine may be slow.
    const calls = new ExecutorCalls(
      settings,
      { name: `hear_${performance.now()}`, table: runs.place, slots: runs.slots.count },
      {
        find: (id) => runs.find(id),
        answered: ({ id }) => void answered.push(id),
        changed: () => undefined,
        died: ({ message }) => expect.fail(message),
        silent: (error) => expect.fail(String(error)),
      },
    );
    try {
      await calls.ready(120_000);
      const owner = { place: () => undefined, hasOutcome: () => undefined };
      const ends = { settled: () => undefined, rejected: () => undefined };
      const sent = waiting(520).map((sample) => {
        const job = new Job(0, ends, {}, owner);
        job.sample = sample;
        const run = runs.add(job, () => undefined);
        calls.send(run);
        return run;
      });
      await expect.poll(() => Atomics.load(state, 0)).toBe(520);
      for (const run of sent) calls.abort(run);
      await expect.poll(() => answered.length).toBe(520);
      expect(Atomics.load(state, 1)).toBe(520);
    } finally {
      await calls.kill();
      runs.close();
    }
  });

  test.each([
    { what: "in calls with others", samples: waiting(520) },
    // The 256 of its call go one by one.
    { what: "by themselves first", samples: [deep, ...waiting(519)] },
    { what: "by themselves last", samples: [...waiting(519), deep] },
  ])("in which they were sent, none goes on: $what", async ({ samples }) => {
    const { pool, state } = await newPool();
    try {
      const [givenUp, later] = [new AbortController(), new AbortController()];
      const outcomes = samples.map((one) => scoreIn(pool, one, { signal: givenUp.signal }));
      givenUp.abort();
      const last = scoreIn(pool, sampleOf("last"), {});
      const all = await Promise.all(outcomes);
      expect(all.map(({ valid }) => valid)).toEqual(samples.map(() => false));
      // Samples begin in their order.
      expect(await last).toMatchObject({ valid: true, rewardScore: 1 });
      await expect.poll(() => Atomics.load(state, 0) - Atomics.load(state, 1)).toBe(0);
      // Every place is free again.
      const next = waiting(600).map((one) => scoreIn(pool, one, { signal: later.signal }));
      await expect.poll(() => Atomics.load(state, 0) - Atomics.load(state, 1)).toBe(600);
      later.abort();
      await Promise.all(next);
    } finally {
      await pool.close();
    }
  });
});

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = [value];
  return value;
}
