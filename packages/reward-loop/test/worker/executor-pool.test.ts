/** Which executor gets a sample, and what happens where none can be created. */

import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import * as ray from "@rayling/core";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { ExecutorStartError } from "../../src/errors.ts";
import { readSettings } from "../../src/settings/settings.ts";
import type { RewardFunctionOptions } from "../../src/settings/settings.ts";
import { ExecutorPool } from "../../src/worker/executors/pool/executor-pool.ts";
import { StartRetries } from "../../src/worker/executors/pool/start-retries.ts";
import type { SubmitOptions } from "../../src/worker/executors/job.ts";
import { fixture, sampleOf } from "../loop.ts";
import { scoreIn } from "./score-in.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
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

describe("without a number of executors", () => {
  const openPool = (name: string, more: RewardFunctionOptions = {}) => {
    const state = new Int32Array(new SharedArrayBuffer(8));
    const reward = { path: fixture("gate.ts"), name, rewardKwargs: { state } };
    const settings = readSettings({ workers: 1, concurrency: 4, reward, ...more });
    const prefix = `needed_${performance.now()}_`;
    const pool = new ExecutorPool(settings, (count) => `${prefix}${count}`);
    const release = (): void => {
      Atomics.store(state, 1, 1);
      Atomics.notify(state, 1);
    };
    const begun = (count: number) => expect.poll(() => Atomics.load(state, 0)).toBe(count);
    const executors = async (): Promise<number> =>
      (await ray.listNamedActors()).filter((one) => one.name.startsWith(prefix)).length;
    return { pool, release, begun, executors };
  };

  test("one is there", async () => {
    const { pool, executors } = openPool("heldOrDone");
    try {
      await pool.ready();
      expect(await executors()).toBe(1);
      expect(await scoreIn(pool, sampleOf("1"))).toMatchObject({ rewardScore: 1 });
    } finally {
      await pool.close();
    }
  });

  test("samples behind one that holds its thread get another", async () => {
    const { pool, release, begun, executors } = openPool("held");
    try {
      await pool.ready();
      const outcomes = ["1", "2"].map((text) => scoreIn(pool, sampleOf(text)));
      // Nobody releases the first before the second has begun.
      await begun(2);
      release();
      expect(await Promise.all(outcomes)).toMatchObject([{ rewardScore: 1 }, { rewardScore: 1 }]);
      expect(await executors()).toBe(2);
      expect(pool.traits.overlaps).toBe(false);
    } finally {
      release();
      await pool.close();
    }
  });

  test("an asynchronous function that blocks its thread gets another for the samples to come", async () => {
    const { pool, release, begun, executors } = openPool("heldOrDone");
    try {
      await pool.ready();
      const first = scoreIn(pool, sampleOf("held"));
      await begun(1);
      await expect.poll(executors).toBe(2);
      // More than there is room for beside the first.
      const others = ["1", "1", "1", "1"].map((text) => scoreIn(pool, sampleOf(text)));
      expect(await Promise.race(others)).toMatchObject({ rewardScore: 1 });
      release();
      for (const outcome of await Promise.all([first, ...others])) expect(outcome.valid).toBe(true);
    } finally {
      release();
      await pool.close();
    }
  });

  test("a hedge has both from the start", async () => {
    const { pool, executors } = openPool("counted", { hedge: true });
    try {
      await pool.ready();
      expect(await executors()).toBe(2);
    } finally {
      await pool.close();
    }
  });
});

describe("an executor that cannot be created", () => {
  /** A process needs a file for its run table: it gets none where the attempt is to fail. */
  const poolFailingAt = (
    name: string,
    fails: (attempt: number) => boolean,
    { executors = 1, pauseMs }: { executors?: number; pauseMs?: () => number } = {},
  ): ExecutorPool => {
    const settings = readSettings({
      workers: 1,
      executors,
      concurrency: 2,
      executorIsolation: "process",
      reward: fixture("troublemaker.ts:sync"),
    });
    const nameOf = (attempt: number): string => {
      vi.stubEnv("TMPDIR", fails(attempt) ? import.meta.filename : folder);
      return `${name}_${attempt}`;
    };
    return new ExecutorPool(settings, nameOf, pauseMs);
  };
  const folder = tmpdir();
  afterEach(() => void vi.unstubAllEnvs());

  test.each([
    { what: "the next one", text: "exit", failing: [1, 2], lives: 3 },
    { what: "that of a suspect", text: "kill", failing: [2], lives: 1 },
  ])(
    "is tried again after a pause, and costs no sample: $what",
    async ({ text, failing, lives }) => {
      const name = `failing_${text}_${performance.now()}`;
      const pool = poolFailingAt(name, (attempt) => failing.includes(attempt));
      try {
        await pool.ready();
        const texts = ["1", text, "2", "3"];
        const outcomes = texts.map((one) => scoreIn(pool, sampleOf(one), {}));
        expect(await Promise.all(outcomes)).toMatchObject([
          { valid: true, rewardScore: 1 },
          { valid: false, error: { code: "EXECUTOR_DIED" } },
          { valid: true, rewardScore: 2 },
          { valid: true, rewardScore: 3 },
        ]);
        const names = (await ray.listNamedActors()).map((one) => one.name);
        expect(names).toContain(`${name}_${lives}`);
      } finally {
        await pool.close();
      }
    },
  );

  test("is no error of those that another one scores, however long none can be, and is created when it can", async () => {
    const name = `failing_long_${performance.now()}`;
    let attempts = 0;
    let canBe = false;
    const fails = (attempt: number): boolean => {
      attempts = attempt;
      return attempt >= 2 && !canBe;
    };
    const pool = poolFailingAt(name, fails, { executors: 2, pauseMs: () => 5 });
    const told: string[] = [];
    const hear = ({ message }: Error): void => void told.push(message);
    process.on("warning", hear);
    try {
      await pool.ready();
      // It has to be tried alone, and cannot be.
      expect(await scoreIn(pool, sampleOf("kill"), {})).toMatchObject({
        valid: false,
        attempts: 1,
        error: {
          code: "EXECUTOR_DIED",
          message: expect.stringMatching(
            /none starts .*: No score executor can .*ENOTDIR/,
          ) as unknown,
        },
      });
      await expect.poll(() => attempts).toBeGreaterThan(20);
      expect(pool.hasFailed).toBe(false);
      const fewer = told.filter((text) => text.includes("goes on with fewer executors"));
      expect(fewer).toEqual([expect.stringMatching(/: No score executor can .*ENOTDIR/)]);
      expect(await scoreIn(pool, sampleOf("1"), {})).toMatchObject({ rewardScore: 1 });
      canBe = true;
      const others = async (): Promise<string[]> =>
        (await ray.listNamedActors()).map((one) => one.name).filter((one) => one > `${name}_2`);
      await expect.poll(others).toHaveLength(1);
      const outcome = await scoreIn(pool, sampleOf("kill"), {});
      expect(outcome).toMatchObject({ attempts: 3, error: { deathKind: "signal" } });
    } finally {
      process.off("warning", hear);
      await pool.close();
    }
  });

  test("is an error of all samples, with its cause, where none has ever been there", async () => {
    const pool = poolFailingAt("never", () => true);
    const error = await pool.ready().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ExecutorStartError);
    expect(error).toMatchObject({
      attempts: 1,
      deathKind: "not-created",
      cause: { code: "ENOTDIR" },
      message: expect.stringMatching(
        /^No score executor can be created: .*executor-pool.test.ts, the folder .*ENOTDIR/,
      ) as unknown,
    });
    await expect(scoreIn(pool, sampleOf("1"), {})).rejects.toBe(error);
    expect(pool.hasFailed).toBe(true);
    await pool.close();
  });

  test("says which folder's disk is full, and leaves no file there", async () => {
    const full = await mkdtemp(join(tmpdir(), "rayling-full-"));
    onTestFinished(() => rm(full, { recursive: true }));
    const table = new URL("../../src/executor/run-table/file-run-table.ts", import.meta.url).href;
    const program = `const { FileRunTable } = await import(${JSON.stringify(table)});
      try { FileRunTable.create(2); } catch ({ code, message }) { console.log(code, message); }`;
    // No file may grow. Without a signal for that a write fails, and its error has no path.
    const limits = "trap '' XFSZ; ulimit -f 0; export NODE_DISABLE_COMPILE_CACHE=1";
    const { stdout } = await promisify(execFile)(
      "sh",
      ["-c", `${limits}; exec "$0" --input-type=module -e "$1"`, process.execPath, program],
      { env: { ...process.env, TMPDIR: full } },
    );
    expect(stdout).toContain("EFBIG no file for its runs");
    expect(stdout).toContain(`in ${full}, the folder for temporary files (TMPDIR): EFBIG`);
    expect(await readdir(full)).toEqual([]);
  });

  test("is tried eight times, however many fail each time, and ever later", () => {
    vi.useFakeTimers();
    try {
      const atMs: number[] = [];
      const starts = new StartRetries(() => void atMs.push(Date.now() - began));
      const began = Date.now();
      starts.loaded();
      for (let round = 0; round < 8; round++) {
        for (let executor = 0; executor < 3; executor++) {
          expect(starts.failed()).toBe(true);
          starts.later();
        }
        vi.runAllTimers();
      }
      expect(starts.failed()).toBe(false);
      const pauses = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 16_000, 16_000];
      const sums = pauses.map((_, at) => pauses.slice(0, at + 1).reduce((sum, ms) => sum + ms));
      expect(atMs).toEqual(sums);
    } finally {
      vi.useRealTimers();
    }
  });
});
