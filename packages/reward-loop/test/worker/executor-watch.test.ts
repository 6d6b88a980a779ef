/** Whom the watch over an executor asks about, and when it has a thread ended. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { SignOfLife } from "../../src/executor/score-executor.ts";
import type { RunTable } from "../../src/executor/run-table/run-table.ts";
import { runTableAt } from "../../src/executor/run-table/run-tables.ts";
import { readSettings } from "../../src/settings/settings.ts";
import type { Blame } from "../../src/worker/executors/blame.ts";
import { ExecutorWatch } from "../../src/worker/executors/executor-watch.ts";
import { Job } from "../../src/worker/executors/job.ts";
import { SentRuns } from "../../src/worker/executors/sent-runs.ts";
import type { SentRun } from "../../src/worker/executors/sent-runs.ts";
import { fixture, sampleOf } from "../loop.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "hrtime"] });
  // A start at 0 ns would be none.
  vi.advanceTimersByTime(1);
});
afterEach(() => vi.useRealTimers());

const alive: SignOfLife = { done: [], used: [], failed: [], busyMs: 0 };

class Watched {
  readonly runs: SentRuns;
  readonly watch: ExecutorWatch;
  /** As the executor sees it. */
  readonly table: RunTable;
  readonly late: { readonly run: SentRun; readonly code: string }[] = [];
  readonly blames: Blame[] = [];
  asked = 0;
  /** Whether the thread answers. */
  isAlive = true;

  constructor(timeoutMs?: number) {
    this.runs = new SentRuns(readSettings({ reward: fixture("scorers.ts:exact"), concurrency: 8 }));
    this.table = runTableAt(this.runs.place);
    this.watch = new ExecutorWatch(this.runs, timeoutMs, {
      breathe: () => {
        this.asked += 1;
        return this.isAlive ? Promise.resolve(alive) : new Promise(() => undefined);
      },
      overlaps: () => true,
      late: (run, { code }) => {
        this.late.push({ run, code });
        this.runs.setAside(run);
      },
      blocked: (blame) => {
        this.blames.push(blame);
        this.watch.stop();
      },
      changed: () => undefined,
    });
  }

  /** A run that has begun. */
  begin(): SentRun {
    const ends = { settled: () => undefined, rejected: () => undefined };
    const owner = { place: () => undefined, hasOutcome: () => undefined };
    const job = new Job(0, ends, {}, owner);
    job.sample = sampleOf("a");
    const run = this.runs.add(job, () => undefined);
    this.table.start(run.slot);
    this.watch.sent();
    return run;
  }

  giveUp(run: SentRun): void {
    run.note({ givenUpAt: performance.now() });
    this.watch.givenUp();
  }
}

test("a run that ends soon after it was given up is not asked about", async () => {
  const one = new Watched();
  for (let more = 0; more < 20; more++) {
    const run = one.begin();
    one.giveUp(run);
    await vi.advanceTimersByTimeAsync(10);
    one.runs.answered(run);
  }
  await vi.advanceTimersByTimeAsync(10_000);
  expect(one.asked).toBe(0);
});

test("a run that goes on after it was given up is reported, though others are given up all the time", async () => {
  const one = new Watched();
  const endless = one.begin();
  one.giveUp(endless);
  for (let more = 0; more < 20; more++) {
    const run = one.begin();
    one.giveUp(run);
    await vi.advanceTimersByTimeAsync(10);
    one.runs.answered(run);
  }
  expect(one.late.map(({ run }) => run)).toEqual([endless]);
  expect(one.late[0]?.code).toBe("SCORE_TIMEOUT");
  expect(one.asked).toBe(1);
});

test("a deadline is kept where a run was given up before it", async () => {
  const one = new Watched(200);
  const slow = one.begin();
  const given = one.begin();
  one.giveUp(given);
  await vi.advanceTimersByTimeAsync(60);
  expect(one.late.map(({ run }) => run)).toEqual([given]);
  await vi.advanceTimersByTimeAsync(200);
  expect(one.late.map(({ run }) => run)).toEqual([given, slow]);
});

test("a thread without CPU is not ended because the code of a run that has its outcome is on its stack", async () => {
  const one = new Watched();
  const earlier = one.begin();
  one.runs.setAside(earlier);
  one.isAlive = false;
  one.giveUp(one.begin());
  one.table.runningId = earlier.id;
  await vi.advanceTimersByTimeAsync(900);
  expect(one.asked).toBe(1);
  expect(one.blames).toEqual([]);
  // A second is more than a busy machine takes: it is blocked.
  await vi.advanceTimersByTimeAsync(300);
  expect(one.blames).toHaveLength(1);
  expect(one.blames[0]).toMatchObject({ isKnown: true });
  expect(one.blames[0]?.culprit).toBeUndefined();
});
