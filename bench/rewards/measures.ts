/**
 * The measurements of the reward loop, and of libraries that bound promises. Each makes a loop of
 * its own.
 */
import { setTimeout as delay } from "node:timers/promises";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import Bottleneck from "bottleneck";
import pLimit from "p-limit";
import PQueue from "p-queue";
import { bytesInUse } from "../measure/memory.ts";
import { lightMs, limited } from "../subjects/judged.ts";

export interface RewardsPlan {
  readonly samples: number;
  readonly slots: number;
  /** For the function that costs nothing. */
  readonly free: number;
  /** Asked at once, and not answered. */
  readonly held: number;
  /** Asked of a judge over HTTP. */
  readonly judged: number;
  /** Asked of an endpoint whose room has to be found out. */
  readonly found: number;
  readonly rounds: number;
  /** An interpreter that has ray, torch and verl: verl's own loop takes part. */
  readonly python?: string;
}

const workers = 2;
/** Steps of which the median is taken. */
const counted = 5;
/** Steps of a loop before its later ones: V8 compiles for some seconds. */
const stepsBefore = 15;
const module = new URL("../subjects/judged.ts", import.meta.url).href;

export function bounded({
  samples,
  slots,
}: RewardsPlan): Readonly<Record<string, () => Promise<unknown>>> {
  const indices = [...Array(samples).keys()];
  const judge = (index: number): Promise<void> => delay(lightMs(index));
  return {
    "p-limit": () => {
      const limit = pLimit(slots);
      return Promise.all(indices.map((index) => limit(() => judge(index))));
    },
    "p-queue": () => {
      const queue = new PQueue({ concurrency: slots });
      return Promise.all(indices.map((index) => queue.add(() => judge(index))));
    },
    bottleneck: () => {
      const limiter = new Bottleneck({ maxConcurrent: slots });
      return Promise.all(indices.map((index) => limiter.schedule(() => judge(index))));
    },
  };
}

export interface LoopSteps {
  readonly first: number;
  /** The median of the few after it. */
  readonly next: number;
  /** The median of a few later ones, when what runs is warm. */
  readonly later: number;
}

/** Measures steps of a training. */
export async function loopMs(
  name: "light" | "heavy",
  { samples, slots }: RewardsPlan,
  options: RewardLoopOptions = {},
): Promise<LoopSteps> {
  await using loop = await RewardLoopManager.create({
    workers,
    executors: 1,
    concurrency: slots / workers,
    reward: `${module}:${name}`,
    ...options,
  });
  const step = (from: number): Promise<number> =>
    timed(() => Promise.all(samplesOf(samples, from).map((sample) => loop.computeScore(sample))));
  const first = await step(samples);
  const ms: number[] = [];
  while (ms.length < stepsBefore + counted) ms.push(await step(0));
  return { first, next: medianMs(ms.slice(0, counted)), later: medianMs(ms.slice(-counted)) };
}

function medianMs(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[all.length >> 1] ?? Number.NaN;
}

export interface Latency {
  readonly p50: number;
  readonly p99: number;
}

/** A synchronous function in a loop of its own, never without work, and an async one in another. */
export async function besideMs({
  free,
}: RewardsPlan): Promise<{ readonly alone: Latency; readonly blocked: Latency }> {
  const count = Math.max(20, Math.round(free / 250));
  const common = { workers: 1, executors: 1 };
  await using brief = await RewardLoopManager.create({ ...common, reward: `${module}:brief` });
  await using blocking = await RewardLoopManager.create({
    ...common,
    reward: `${module}:blocking`,
  });
  const [sample] = samplesOf(1);
  if (sample === undefined) throw new Error("one sample is there");
  const measure = async (): Promise<Latency> => {
    const latencies: number[] = [];
    for (let index = 0; index < count; index++) {
      latencies.push(await timed(() => brief.computeScore(sample)));
    }
    const sorted = latencies.toSorted((a, b) => a - b);
    const at = (share: number): number => sorted[Math.ceil(share * count) - 1] ?? Number.NaN;
    return { p50: at(0.5), p99: at(0.99) };
  };
  await measure();
  const alone = await measure();
  const over = new AbortController();
  const busy = (async () => {
    while (!over.signal.aborted) await blocking.computeScore(sample);
  })();
  const blocked = await measure();
  over.abort();
  await busy;
  return { alone, blocked };
}

/** Rounds that come first and do not count, for a function that costs nothing. */
export const warmUps = 2;

/** Returns the best of a few rounds after the warm-ups. */
export async function freeRate(
  name: "nothing" | "nothingSync",
  { free, rounds }: Pick<RewardsPlan, "free" | "rounds">,
  options: RewardLoopOptions = {},
): Promise<{ perSecond: number; cpuUs: number }> {
  await using loop = await RewardLoopManager.create({
    workers,
    executors: 1,
    concurrency: 256,
    reward: `${module}:${name}`,
    ...options,
  });
  let best = { perSecond: 0, cpuUs: Infinity };
  for (let round = 0; round < rounds + warmUps; round++) {
    const before = process.cpuUsage();
    const startMs = performance.now();
    for await (const { outcome } of loop.scoreStream(samplesOf(free, round * free))) {
      if (!outcome.valid) throw new Error(outcome.error.message);
    }
    const perSecond = (free * 1000) / (performance.now() - startMs);
    const { user, system } = process.cpuUsage(before);
    if (round >= warmUps && perSecond > best.perSecond)
      best = { perSecond, cpuUs: (user + system) / free };
  }
  return best;
}

/** Options that have to do with each call, by what they do. */
export const policies: Readonly<Record<string, RewardLoopOptions>> = {
  "retries, and a time for all of them": { retry: true, totalTimeoutMs: 60_000 },
  hedges: { hedge: true },
  "limits of its endpoint": { limits: { concurrency: 1000, requestsPerMinute: 1e9 } },
  "a cap on spending": { spend: { prices: { perCall: 1 }, cap: 1e9 } },
  "a cache, of samples that are new": { cache: ":memory:" },
};

export interface HeldBytes {
  readonly driver: number;
  readonly process: number;
}

/** Measures what a sample adds while it waits for its score, with all that the loop keeps of it. */
export async function heldBytes(held: number): Promise<HeldBytes> {
  const counter = new SharedArrayBuffer(8);
  const count = new Int32Array(counter);
  await using loop = await RewardLoopManager.create({
    workers,
    executors: 1,
    concurrency: Math.ceil(held / workers),
    reward: { path: module, name: "held", rewardKwargs: { counter } },
  });
  const samples = samplesOf(held);
  const [driverBefore, processBefore] = [await bytesInUse(), process.memoryUsage.rss()];
  const outcomes = samples.map((sample) => loop.computeScore(sample));
  for (let now = 0; now < held; now = Atomics.load(count, 0)) {
    await Atomics.waitAsync(count, 0, now).value;
  }
  const each = {
    driver: ((await bytesInUse()) - driverBefore) / held,
    process: (process.memoryUsage.rss() - processBefore) / held,
  };
  Atomics.store(count, 1, 1);
  Atomics.notify(count, 1);
  for (const { valid } of await Promise.all(outcomes)) {
    if (!valid) throw new Error("a sample that was held is invalid");
  }
  return each;
}

/**
 * How much of an endpoint is used from the 20th round trip on, and how many calls of all it
 * refused.
 */
export async function foundOut({
  found,
}: RewardsPlan): Promise<{ readonly used: number; readonly refused: number }> {
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    concurrency: 4 * limited.capacity,
    reward: `${module}:tooMany`,
    limits: { concurrency: "auto" },
    retry: { attempts: 1000, budget: Infinity },
  });
  const outcomes = await Promise.all(samplesOf(found).map((sample) => loop.computeScore(sample)));
  const infos = outcomes.map((one) => {
    if (!one.valid) throw new Error(one.error.message);
    const { atMs, refused } = one.rewardExtraInfo;
    return { atMs: Number(atMs), refused: Number(refused) };
  });
  const doneAt = infos.map(({ atMs }) => atMs).toSorted((a, b) => a - b);
  const from = (doneAt[0] ?? 0) + 19 * limited.ms;
  // At the end there is too little left to use it up.
  const to = (doneAt.at(-1) ?? 0) - 2 * limited.ms;
  const done = doneAt.filter((at) => at > from && at <= to).length;
  const room = (limited.capacity * (to - from)) / limited.ms;
  const all = Math.max(...infos.map(({ refused }) => refused));
  return { used: done / room, refused: all / (found + all) };
}

interface Sample {
  readonly dataSource: string;
  readonly response: string;
  readonly groundTruth: string;
}

function samplesOf(count: number, from = 0): Sample[] {
  return Array.from({ length: count }, (_, index) => ({
    dataSource: "bench",
    response: String(from + index),
    groundTruth: "",
  }));
}

export function shortestMs(samples: number, slots: number): number {
  const freeAt = Array<number>(slots).fill(0);
  for (let index = 0; index < samples; index++) {
    const slot = freeAt.indexOf(Math.min(...freeAt));
    freeAt[slot] = (freeAt[slot] ?? 0) + lightMs(index);
  }
  return Math.max(...freeAt);
}

export function boundMs(samples: number, slots: number): number {
  const each = lightOf(samples);
  return each.reduce((sum, ms) => sum + ms, 0) / slots + Math.max(...each);
}

export function lightOf(count: number, from = 0): number[] {
  return Array.from({ length: count }, (_, index) => lightMs(from + index));
}

export async function timed(run: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await run();
  return performance.now() - startMs;
}
