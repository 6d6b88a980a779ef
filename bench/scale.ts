/**
 * What does a call hold while a million are pending, and does anything stay behind after ten million calls?
 *
 * Bytes are what the collector leaves, of the driver's thread and of the actor's, each measured in its own.
 */
import * as ray from "@rayling/core";
import { bytesInUse, bytesNow } from "./measure/memory.ts";
import type { Progress, Report, Table } from "./measure/report.ts";
import { Prober } from "./subjects/actors.ts";
import { expectedSum, sum } from "./subjects/subject.ts";

/** How many of each. */
export interface ScalePlan {
  readonly pendingCalls: number;
  readonly calls: number;
}

/** Call it inside a session. */
export async function measureScale(plan: ScalePlan, say: Progress): Promise<Report> {
  say(`${grouped(plan.pendingCalls)} calls pending at once`);
  const pending = await pendingCalls(plan.pendingCalls);
  say(`${grouped(plan.calls)} calls`);
  const calls = await manyCalls(plan.calls);
  const scale: Table = {
    title: "Many at once",
    rows: [
      ["", "count", "s", "bytes each"],
      ["calls pending, submitted in one turn", ...scaleCells(plan.pendingCalls, pending)],
    ],
  };
  const leak: Table = {
    title: "What stays behind",
    rows: [
      ["", "count", "s", "driver MB before", "after", "host MB before", "after"],
      ["calls", grouped(plan.calls), ...leakCells(calls)],
    ],
  };
  return {
    tables: [scale, leak],
    measured: {
      "pending calls: bytes each": pending.bytesEach,
      "calls: heap after x before": growth(calls),
    },
    details: { plan, pending, calls },
  };
}

interface Scale {
  readonly seconds: number;
  readonly bytesEach: number;
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

interface Leak {
  readonly seconds: number;
  readonly driver: Growth;
  readonly host: Growth;
}

interface Growth {
  readonly before: number;
  readonly after: number;
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
  const before = await bytesOfBoth(prober);
  const started = performance.now();
  for (let calls = 0; calls < count; calls += callsInFlight) await batch(calls);
  const seconds = (performance.now() - started) / 1000;
  const after = await bytesOfBoth(prober);
  await ray.kill(prober);
  return {
    seconds,
    driver: { before: before.driver, after: after.driver },
    host: { before: before.host, after: after.host },
  };
}

async function bytesOfBoth(
  prober: ReturnType<typeof Prober.remote>,
): Promise<{ readonly driver: number; readonly host: number }> {
  const host = await ray.get(prober.bytesInUse.remote());
  return { driver: await bytesInUse(), host };
}

function growth({ driver, host }: Leak): number {
  return Math.max(driver.after / driver.before, host.after / host.before);
}

function scaleCells(count: number, { seconds, bytesEach }: Scale): readonly string[] {
  return [grouped(count), seconds.toFixed(2), grouped(bytesEach)];
}

function leakCells({ seconds, driver, host }: Leak): readonly string[] {
  const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(2);
  const bytes = [driver.before, driver.after, host.before, host.after];
  return [seconds.toFixed(1), ...bytes.map(megabytes)];
}

function grouped(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

function verify(found: number, expected: number): void {
  if (found !== expected) throw new Error(`the calls gave ${found} in place of ${expected}`);
}
