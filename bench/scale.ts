/**
 * Question: what does a call hold while a million are pending, and an actor among ten thousand?
 * Does anything stay behind after ten million calls and a hundred thousand actors?
 *
 * Bytes are what the collector leaves, of the driver's thread and of the hosts that live in it,
 * each measured in its own.
 */
import * as ray from "@rayling/core";
import { bytesInUse, bytesNow } from "./measure/memory.ts";
import type { Progress, Report, Table } from "./measure/report.ts";
import { Prober } from "./subjects/actors.ts";
import { expectedSum, sum } from "./subjects/subject.ts";

/** How many of each. */
export interface ScalePlan {
  readonly pendingCalls: number;
  readonly actors: number;
  readonly calls: number;
  readonly actorLives: number;
}

type ProberHandle = ReturnType<typeof Prober.remote>;

interface Scale {
  readonly seconds: number;
  readonly bytesEach: number;
}

interface Leak {
  readonly seconds: number;
  readonly driver: Growth;
  readonly hosts: Growth;
}

interface Growth {
  readonly before: number;
  readonly after: number;
}

/** Call it inside a session. */
export async function measureScale(plan: ScalePlan, say: Progress): Promise<Report> {
  say(`${grouped(plan.pendingCalls)} calls pending at once`);
  const pending = await pendingCalls(plan.pendingCalls);
  say(`${grouped(plan.calls)} calls`);
  const calls = await manyCalls(plan.calls);
  say(`${grouped(plan.actors)} shared actors at once, ${grouped(plan.actorLives)} in turn`);
  const { actors, lives } = await sharedActors(plan);
  const scale: Table = {
    title: "Many at once",
    rows: [
      ["", "count", "s", "bytes each"],
      ["calls, submitted in one turn", ...scaleCells(plan.pendingCalls, pending)],
      ["shared actors, each made and called once", ...scaleCells(plan.actors, actors)],
    ],
  };
  const leak: Table = {
    title: "What stays behind",
    rows: [
      ["", "count", "s", "driver MB before", "after", "hosts MB before", "after"],
      ["calls", ...leakCells(plan.calls, calls)],
      ["shared actors made, called and dropped", ...leakCells(plan.actorLives, lives)],
    ],
  };
  return {
    tables: [scale, leak],
    measured: {
      "pending calls: bytes each": pending.bytesEach,
      "shared actors: s": actors.seconds,
      "shared actors: bytes each": actors.bytesEach,
      "calls: heap after x before": growth(calls),
      "actors: heap after x before": growth(lives),
    },
    details: { plan, pending, actors, calls, lives },
  };
}

/** In one turn no answer can come: all are pending when the last is submitted. */
async function pendingCalls(count: number): Promise<Scale> {
  const prober = Prober.remote();
  await ray.get(prober.add.remote(1, 1));
  const before = await bytesInUse();
  const started = performance.now();
  const refs = Array.from({ length: count }, (_, index) => prober.add.remote(1, index));
  const submittedMs = performance.now() - started;
  const bytesEach = (bytesNow() - before) / count;
  const answered = performance.now();
  verify(sum(await ray.get(refs)), expectedSum(1, count));
  const answeredMs = performance.now() - answered;
  await ray.kill(prober);
  return { seconds: (submittedMs + answeredMs) / 1000, bytesEach };
}

const callsInFlight = 1000;

async function manyCalls(count: number): Promise<Leak> {
  const prober = Prober.remote();
  const batch = async (base: number): Promise<void> => {
    const refs = Array.from({ length: callsInFlight }, (_, index) =>
      prober.add.remote(base, index),
    );
    verify(sum(await ray.get(refs)), expectedSum(base, callsInFlight));
  };
  // Compiled code and tables of their full size belong to the start.
  for (let base = 0; base < 200; base++) await batch(base);
  const leak = await leakOf([prober], async () => {
    for (let calls = 0; calls < count; calls += callsInFlight) await batch(calls);
  });
  await ray.kill(prober);
  return leak;
}

/** So many that every shared thread has some. */
const residents = 400;

async function sharedActors(
  plan: ScalePlan,
): Promise<{ readonly actors: Scale; readonly lives: Leak }> {
  const home = await oneOfEachThread(await makeShared(residents));
  const before = await bytesOfAll(home);
  const started = performance.now();
  const actors = await makeShared(plan.actors);
  const seconds = (performance.now() - started) / 1000;
  const after = await bytesOfAll(home);
  const bytes = after.driver + after.hosts - before.driver - before.hosts;
  await killAll(actors);
  const live = async (count: number): Promise<void> => {
    for (let made = 0; made < count; made += callsInFlight) {
      await makeShared(callsInFlight);
      // Nobody holds them any more: they end when the collector finds that out.
      if (made % (5 * callsInFlight) === 0) bytesNow();
    }
    await quiet(home);
  };
  // As with calls: compiled code and tables of their full size belong to the start.
  await live(plan.actorLives / 2);
  const lives = await leakOf(home, () => live(plan.actorLives));
  return { actors: { seconds, bytesEach: bytes / plan.actors }, lives };
}

async function makeShared(count: number): Promise<ProberHandle[]> {
  const shared = Prober.options({ isolation: "shared" });
  const actors = Array.from({ length: count }, () => shared.remote());
  const sums = await ray.get(actors.map((actor, index) => actor.add.remote(1, index)));
  verify(sum(sums), expectedSum(1, count));
  return actors;
}

async function killAll(actors: readonly ProberHandle[]): Promise<void> {
  await Promise.all(actors.map((actor) => ray.kill(actor)));
}

async function oneOfEachThread(actors: readonly ProberHandle[]): Promise<ProberHandle[]> {
  const threads = await ray.get(actors.map((actor) => actor.thread.remote()));
  return actors.filter((_, index) => threads.indexOf(threads[index] ?? Number.NaN) === index);
}

/** The last ones are on their way: until the hosts hold no less than before. */
async function quiet(home: readonly ProberHandle[]): Promise<void> {
  let least = Number.POSITIVE_INFINITY;
  for (let more = 0; more < 10; more++) {
    const { driver, hosts } = await bytesOfAll(home);
    if (driver + hosts > 0.99 * least) return;
    least = driver + hosts;
  }
}

async function leakOf(home: readonly ProberHandle[], work: () => Promise<void>): Promise<Leak> {
  const before = await bytesOfAll(home);
  const started = performance.now();
  await work();
  const seconds = (performance.now() - started) / 1000;
  const after = await bytesOfAll(home);
  return {
    seconds,
    driver: { before: before.driver, after: after.driver },
    hosts: { before: before.hosts, after: after.hosts },
  };
}

/** @param home one actor of each host */
async function bytesOfAll(
  home: readonly ProberHandle[],
): Promise<{ readonly driver: number; readonly hosts: number }> {
  const hosts = sum(await ray.get(home.map((actor) => actor.bytesInUse.remote())));
  return { driver: await bytesInUse(), hosts };
}

function growth({ driver, hosts }: Leak): number {
  return Math.max(driver.after / driver.before, hosts.after / hosts.before);
}

function scaleCells(count: number, { seconds, bytesEach }: Scale): readonly string[] {
  return [grouped(count), seconds.toFixed(2), grouped(bytesEach)];
}

function leakCells(count: number, { seconds, driver, hosts }: Leak): readonly string[] {
  const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(2);
  const bytes = [driver.before, driver.after, hosts.before, hosts.after];
  return [grouped(count), seconds.toFixed(1), ...bytes.map(megabytes)];
}

function grouped(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

function verify(found: number, expected: number): void {
  if (found !== expected) throw new Error(`the calls gave ${found} in place of ${expected}`);
}
