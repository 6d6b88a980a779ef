/** Which executor gets a sample. */

import * as ray from "@rayling/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readSettings } from "../../src/settings/settings.ts";
import { ExecutorPool } from "../../src/worker/executors/executor-pool.ts";
import type { SubmitOptions } from "../../src/worker/executors/job.ts";
import { fixture, sampleOf } from "../loop.ts";
import { scoreIn } from "./score-in.ts";

beforeAll(() => ray.init());
afterAll(() => ray.shutdown());

test("the second call of a sample waits for another executor than that of the first, and holds nobody behind it", async () => {
  const settings = readSettings({
    workers: 1,
    executors: 2,
    concurrency: 2,
    reward: fixture("troublemaker.ts:inThread"),
  });
  const pool = new ExecutorPool(settings, (count) => `pair_${count}`);
  const channel = new BroadcastChannel("rayling in thread");
  const atWork = new Set<unknown>();
  channel.addEventListener("message", (event) => atWork.add((event as MessageEvent).data));
  const threadOf = async (text: string, options: SubmitOptions = {}): Promise<unknown> => {
    const outcome = await scoreIn(pool, sampleOf(text), options);
    return outcome.valid ? outcome.rewardExtraInfo["thread"] : outcome.error;
  };
  const hold = async (text: string, options?: SubmitOptions): Promise<{ thread: unknown }> => {
    const thread = threadOf(text, options);
    await expect.poll(() => atWork.has(text)).toBe(true);
    return { thread };
  };
  try {
    await pool.ready();
    // One full executor, and one that has the first call and room for another sample.
    const full = await hold("hold 1");
    const leaving = await hold("hold 2");
    const alsoFull = await hold("hold 3");
    const pair: SubmitOptions["pair"] = { first: undefined, second: undefined };
    const first = await hold("hold first", { pair });
    channel.postMessage("go on hold 2");
    await leaving.thread;
    const second = threadOf("second", { pair });
    const behind = await threadOf("behind");
    channel.postMessage("go on hold 1");
    const full1 = await full.thread;
    expect(await second).toBe(full1);
    channel.postMessage("go on hold 3");
    expect(await alsoFull.thread).toBe(full1);
    channel.postMessage("go on hold first");
    expect(await first.thread).not.toBe(full1);
    expect(behind).toBe(await first.thread);
  } finally {
    channel.close();
    await pool.close();
  }
});
