/**
 * The targets, and whether a run reached it. Keys name what the suites measure.
 */
import type { Table } from "./measure/report.ts";

interface Target {
  readonly key: string;
  readonly what: string;
  readonly sense: "at least" | "at most";
  readonly goal: number;
  /** Where another one holds for all threads on one CPU. */
  readonly goalOnOneCpu?: number;
}

/** The key of the same figure where all threads ran on one CPU. */
function onOneCpu(key: string): string {
  return `${key}, one CPU`;
}

/** All figures under the keys of one CPU. */
export function allOnOneCpu(
  measured: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> {
  const entries = Object.entries(measured);
  return Object.fromEntries(entries.map(([key, value]) => [onOneCpu(key), value] as const));
}

const targets: readonly Target[] = [
  target("serial: thread x raw", "one call at a time, time x raw postMessage", "at most", 1, 1.2),
  target(
    "serial: thread x best open peer",
    "one call at a time, time x fastest peer that does not block its worker",
    "at most",
    1,
  ),
  target("serial: thread CPU x raw", "one call at a time, CPU x raw postMessage", "at most", 1.3),
  target("in-flight-64: thread x raw", "64 in flight, rate x raw batched", "at least", 0.6),
  target("in-flight-64: thread x best peer", "64 in flight, rate x fastest peer", "at least", 1),
  target("in-flight-1000: thread x raw", "1,000 in flight, rate x raw batched", "at least", 0.6),
  target(
    "in-flight-1000: thread CPU x raw",
    "1,000 in flight, CPU a call x raw batched",
    "at most",
    1.66,
  ),
  target(
    "in-flight-1000: thread x best peer",
    "1,000 in flight, rate x fastest peer",
    "at least",
    8,
  ),
  target(
    "in-flight-64: process x raw",
    "64 in flight to a process, rate x raw socket",
    "at least",
    0.6,
  ),
  target(
    "in-flight-1000: process x raw",
    "1,000 in flight to a process, rate x raw socket",
    "at least",
    0.6,
  ),
  target(
    "hosts: thread x bare",
    "an actor in a thread, published, time x bare thread",
    "at most",
    1.3,
  ),
  ...inState("cold", "the first calls of a process"),
  ...inState("crowded", "beside two busy processes"),
  target("put + get x memcpy", "put + get of 800 MB, time x one memcpy", "at most", 1.1),
  target("shared actors: s", "10,000 shared actors created, s", "at most", 2),
  target("pending calls: bytes each", "a pending call of 1,000,000, bytes", "at most", 300),
  target("shared actors: bytes each", "an idle shared actor, bytes", "at most", 6000),
  target("calls: heap after x before", "heap after 10,000,000 calls x before", "at most", 1.1),
  target("actors: heap after x before", "heap after 100,000 actors x before", "at most", 1.1),
  target("machines: TCP x raw", "1,000 in flight over TCP, rate x raw TCP", "at least", 0.5),
  target("machines: TLS x TCP", "1,000 in flight over TLS, rate x TCP", "at least", 0.75),
  target("machines: TLS x TCP, serial", "one call at a time over TLS, time x TCP", "at most", 1.25),
  target("machines: pull GB/s", "a value pulled over TCP of the loopback, GB/s", "at least", 1),
  target("machines: placement us", "a group placed among 1,000 nodes, us", "at most", 100),
  target(
    "rewards: makespan x bound",
    "5,120 calls, 256 at once, time x (N x mean / slots + tail)",
    "at most",
    1.02,
  ),
  target(
    "rewards: hedged heavy tail x light",
    "heavy tail with hedges, time x light",
    "at most",
    1.1,
  ),
  target(
    "rewards: samples/s",
    "a score function that costs nothing, samples/s",
    "at least",
    100_000,
    50_000,
  ),
  target("rewards: us CPU each", "the same, us CPU a sample", "at most", 20),
  target(
    "rewards: samples/s x verl",
    "a score function that costs nothing, rate x verl's",
    "at least",
    10,
  ),
  target(
    "rewards: us CPU each, synchronous",
    "a synchronous function that costs nothing, us CPU a sample",
    "at most",
    20,
  ),
  target("rewards: bytes each", "100,000 samples at once, bytes each", "at most", 2048),
  target("rewards: capacity used", "a capacity that is found out, share used", "at least", 0.95),
  target("rewards: refused", "the same, share of calls refused", "at most", 0.01),
  target("serve: requests/s", "rayling serve, one sample a request, samples/s", "at least", 2000),
  target(
    "serve: samples/s in batches",
    "rayling serve, batches of 256, samples/s",
    "at least",
    20_000,
  ),
  target("serve: CPU x loop", "the same, CPU x the reward loop without HTTP", "at most", 1.5),
  target("losses: dearest x exp", "the dearest policy loss, CPU x its exponentials", "at most", 2),
  target(
    "advantages: dearest x exp",
    "the dearest advantage, CPU x its exponentials",
    "at most",
    2,
  ),
  target("pools, warm: map x plain", "ActorPool.map, warm, time x plain workers", "at most", 1.05),
  target(
    "pools, warm: mapUnordered x plain",
    "ActorPool.mapUnordered, warm, time x plain workers",
    "at most",
    1.05,
  ),
  target(
    "pools, warm: one ahead x plain",
    "the same, one item ahead, warm, time x plain workers",
    "at most",
    1.05,
  ),
  target("pools, cold: map x plain", "ActorPool.map, cold, time x plain workers", "at most", 1.2),
  target(
    "pools, cold: mapUnordered x plain",
    "ActorPool.mapUnordered, cold, time x plain workers",
    "at most",
    1.2,
  ),
  target(
    "pools, cold: one ahead x plain",
    "the same, one item ahead, cold, time x plain workers",
    "at most",
    1.2,
  ),
  ofRay("1:1 actor calls sync", 40),
  ofRay("1:1 actor calls async", 100),
  ofRay("n:n actor calls async", 100),
  ofRay("single client wait 1k refs", 100),
  ofRay("single client tasks async", 20),
  ofRay("single client put gigabytes", 1),
  ofRay("multi client put gigabytes", 1),
  ofRay("multi client put gigabytes, huge pages", 1),
];

function target(
  key: string,
  what: string,
  sense: Target["sense"],
  ...[goal, goalOnOneCpu = goal]: readonly [goal: number, goalOnOneCpu?: number]
): Target {
  return { key, what, sense, goal, goalOnOneCpu };
}

/** Calls in a state that is harder than a quiet machine and a warm process. */
function inState(state: "cold" | "crowded", what: string): readonly Target[] {
  return [
    target(
      `${state}, serial: thread x best open peer`,
      `${what}, one at a time, time x fastest peer that does not block its worker`,
      "at most",
      1.5,
    ),
    target(
      `${state}, in-flight: thread x best peer`,
      `${what}, 1,000 in flight, rate x fastest peer`,
      "at least",
      3,
    ),
  ];
}

/** A row of Ray's microbenchmark, by its name. */
function ofRay(row: string, goal: number): Target {
  return target(`${row} x Ray`, `${row}, rate x Ray`, "at least", goal);
}

/**
 * Returns the table of the targets that this run says something about. One that was measured in
 * both states is met only if it is met in both.
 */
export function targetTable(measured: Readonly<Record<string, number>>): Table | undefined {
  const rows = targets.flatMap(({ key, what, sense, goal, goalOnOneCpu = goal }) => {
    const found = [measured[key], measured[onOneCpu(key)]] as const;
    const goals = [goal, goalOnOneCpu] as const;
    if (found.every((value) => value === undefined)) return [];
    const isMet = found.every((value, state) => {
      const aim = goals[state];
      if (value === undefined || aim === undefined) return true;
      return sense === "at least" ? value >= aim : value <= aim;
    });
    const aim = [...new Set(goals)].map((value) => value.toLocaleString("en-US")).join(" / ");
    return [[what, `${sense} ${aim}`, ...found.map(cellOf), isMet ? "met" : "missed"]];
  });
  return rows.length === 0
    ? undefined
    : { title: "Targets", rows: [["", "target", "this run", "one CPU", ""], ...rows] };
}

function cellOf(value: number | undefined): string {
  return value === undefined ? "" : Number(value.toPrecision(3)).toLocaleString("en-US");
}
