/** How many samples are at work in an executor, and what stands ready behind them. */

import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newRunTable } from "../../src/executor/run-tables.ts";
import { ScoreExecutorActor } from "../../src/executor/score-executor.ts";
import type { ScoreReply } from "../../src/executor/score-executor.ts";
import { readSettings } from "../../src/settings.ts";
import { fromTables, toTables } from "../../src/travel/table.ts";
import { sharesOf } from "../../src/worker/executor-share.ts";
import { fixture, numbers, sampleOf } from "../loop.ts";

beforeAll(() => ray.init());
afterAll(() => ray.shutdown());

test.each<[RewardLoopOptions, { atOnce: number; ready: number }[]]>([
  [{ executors: 1, concurrency: 128 }, [{ atOnce: 128, ready: 32 }]],
  [
    { executors: 2, concurrency: 17 },
    [
      { atOnce: 9, ready: 2 },
      { atOnce: 8, ready: 2 },
    ],
  ],
  // A quarter of it is less than one.
  [
    { executors: 2, concurrency: 7 },
    [
      { atOnce: 7, ready: 0 },
      { atOnce: 7, ready: 0 },
    ],
  ],
  [
    { executors: 1, concurrency: 128, limits: { requestsPerMinute: 60 } },
    [{ atOnce: 128, ready: 0 }],
  ],
  [{ executors: 1, concurrency: 128, retry: true, hedge: true }, [{ atOnce: 128, ready: 32 }]],
])("the executors of %j", (options, shares) => {
  expect(sharesOf(readSettings(options))).toEqual(shares);
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
        }),
      );
      await expect.poll(() => begun).toEqual(["hold 0", "hold 1"]);
      await ray.get(executor.breathe.remote());
      expect(begun).toHaveLength(2);
      // One that stands ready, and one that is at work and heeds nothing.
      await ray.get([executor.abort.remote(3), executor.abort.remote(1)]);
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
        const more = await ray.get(
          executor.take.remote({ ids: [], slots: [], samples: [], first: [] }),
        );
        others.push(...more.ids);
        const replies = fromTables(more.rows) as ScoreReply[];
        expect(replies.every(({ ok }) => ok === true)).toBe(true);
      }
      expect(others.toSorted()).toEqual([1, 2, 4, 5]);
      expect(begun).toHaveLength(4);
    } finally {
      channel.close();
      await ray.kill(executor);
      table.close();
    }
  });

  test.each([1, 2, 3])(
    "are not at work: %i executors together have `concurrency`",
    async (executors) => {
      const score = async (
        name: string,
        count: number,
      ): Promise<[Int32Array, Promise<boolean>]> => {
        const state = new Int32Array(new SharedArrayBuffer(8));
        const reward = { path: fixture("gate.ts"), name, rewardKwargs: { state } };
        const options = { workers: 1, executors, concurrency: 14, reward };
        const loop = await RewardLoopManager.create(options);
        const outcomes = numbers(count).map((text) => loop.computeScore(sampleOf(text)));
        const areValid = Promise.all(outcomes).then(async (all) => {
          await loop.close();
          return all.every(({ valid }) => valid);
        });
        return [state, areValid];
      };
      const [held, heldOnes] = await score("counted", 40);
      await expect.poll(() => Atomics.load(held, 0)).toBe(14);
      Atomics.store(held, 1, 1);
      Atomics.notify(held, 1);
      expect(await heldOnes).toBe(true);
      const [most, quickOnes] = await score("noted", 300);
      expect(await quickOnes).toBe(true);
      expect(Atomics.load(most, 1)).toBeLessThanOrEqual(14);
    },
  );
});
