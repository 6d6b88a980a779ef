/**
 * Rates of a session on a real Ray beside Ray's own, in turns, as figures for people; and what waits
 * holds no threads. In the full suite alone, because it asks PyPI for Ray, and starts a cluster.
 */
import { readFileSync } from "node:fs";
import * as ray from "@rayling/core";
import { expect, test, vi } from "vitest";
import { Counter, double } from "../../../../test/fixtures/on-cluster.ts";
import { figure, tookSince } from "./figures.ts";
import type { RealCluster } from "./cluster.ts";
import { oneCluster } from "./one-cluster.ts";

vi.setConfig({ testTimeout: 600_000, hookTimeout: 900_000 });

const { session } = oneCluster({ nodes: [{ num_cpus: 2 }, { num_cpus: 2 }, { num_cpus: 2 }] });

/** Resolves when nobody holds a CPU any more, so that both sides begin alike. */
async function isIdle(running: RealCluster): Promise<void> {
  const free = async (): Promise<unknown> =>
    (await running.do<Record<string, number>>("available"))["CPU"];
  await expect.poll(free).toBe(6);
}

const rounds = 7;

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return (performance.now() - startMs) / 1000;
}

/** Prints both rates, and the quotient, as medians of the rounds. */
function compare(what: string, count: number, theirs: readonly number[], ours: readonly number[]) {
  const quotients = theirs.map((seconds, round) => seconds / ours[round]!);
  const rate = (seconds: readonly number[]): string =>
    Math.round(count / median(seconds)).toString();
  const all = quotients.map((one) => one.toFixed(2)).join(", ");
  figure(
    what,
    `${rate(ours)}/s, Ray ${rate(theirs)}/s: ${median(quotients).toFixed(2)} x (${all})`,
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[values.length >> 1]!;
}

test.for([200, 1000])("%i tasks of one CPU at once", async (count, { skip }) => {
  const running = await session(skip);
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = -1; round < rounds; round++) {
    await isIdle(running);
    const theirSeconds = await running.do<number>("time_tasks", count);
    await isIdle(running);
    const ourSeconds = await secondsOf(async () => {
      const values = await ray.get(Array.from({ length: count }, (_, one) => double.remote(one)));
      expect(values.at(-1)).toBe(2 * (count - 1));
    });
    // The first round starts processes.
    if (round < 0) continue;
    theirs.push(theirSeconds);
    ours.push(ourSeconds);
  }
  compare(`${count} tasks on leases`, count, theirs, ours);
});

test("1,000 tasks in bundles that were reserved in advance", async ({ skip }) => {
  const running = await session(skip, { bundles: [{ CPU: 2 }, { CPU: 2 }, { CPU: 2 }] });
  const ours: number[] = [];
  const theirs: number[] = [];
  const tasks = (): Promise<unknown> =>
    ray.get(Array.from({ length: 1000 }, (_, one) => double.remote(one)));
  await tasks();
  for (let round = 0; round < rounds; round++) ours.push(await secondsOf(tasks));
  await ray.shutdown();
  // The bundles were all that there is.
  await isIdle(running);
  await running.do("time_tasks", 1000);
  for (let round = 0; round < rounds; round++) {
    theirs.push(await running.do<number>("time_tasks", 1000));
  }
  compare("1,000 tasks in bundles", 1000, theirs, ours);
});

test("calls of an actor, 1,000 in flight", async ({ skip }) => {
  const running = await session(skip);
  const counter = Counter.remote();
  const calls = async (times: number): Promise<void> => {
    for (let one = 0; one < times; one++) {
      await ray.get(Array.from({ length: 1000 }, () => counter.add.remote(1)));
    }
  };
  await calls(20);
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    theirs.push(await running.do<number>("time_calls", 5, 1000));
    ours.push((await secondsOf(() => calls(50))) / 10);
  }
  compare("direct calls of an actor, 1,000 in flight", 5000, theirs, ours);
});

test("1,000 actors that wait hold no threads", async ({ skip }) => {
  const running = await session(skip);
  expect(await ray.get(Counter.options({ numCpus: 1 }).remote().add.remote(1))).toBe(1);
  const count = (): Record<string, number> => ({
    driver: threadsOf(process.pid),
    gateway: threadsOf(running.processes("gateway")[0]!),
    "all of Ray": running.allProcesses().reduce((sum, pid) => sum + threadsOf(pid), 0),
  });
  const before = count();
  // Of many kinds: equal ones wait in one line.
  const startMs = performance.now();
  const actors = Array.from({ length: 1000 }, (_, index) =>
    Counter.options({ numCpus: 1 + (index % 100) / 100, resources: { never: 1 } }).remote(),
  );
  await expect
    .poll(async () => (await running.do<string[]>("groups")).length, { timeout: 300_000 })
    .toBe(1000);
  tookSince(startMs, "1,000 actors are pending placement groups after");
  const after = count();
  for (const [who, threads] of Object.entries(after)) {
    figure(`threads of ${who} with 1,000 pending actors`, `${threads}, before ${before[who]}`);
    expect(threads - before[who]!).toBeLessThan(100);
  }
  await Promise.all(actors.map((actor) => ray.kill(actor)));
  await expect.poll(() => running.do("groups"), { timeout: 300_000 }).toEqual([]);
});

function threadsOf(pid: number): number {
  try {
    return Number(/^Threads:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
  } catch {
    // It has ended.
    return 0;
  }
}
