/**
 * Rayling's side of the rows of Ray's microbenchmark: what one unit is, and the work. rows.py is
 * the other side and does the same.
 *
 * The driver looks at what it gets: a row that answers something else ends the run.
 */
import { availableParallelism } from "node:os";
import * as ray from "@rayling/core";
import type { Workload } from "../measure/rates.ts";
import {
  Actor,
  AsyncActor,
  callAll,
  Client,
  many,
  putBig,
  putSmall,
  refsInside,
  type Server,
  smallValue,
} from "./actors.ts";

export interface RayRow {
  readonly name: string;
  /** The unit that is counted per second. */
  readonly unit: string;
  /** Call it inside a session. */
  readonly prepare: () => Promise<PreparedRow>;
}

export interface PreparedRow extends Workload {
  /** End with the row. */
  readonly actors: readonly ray.ActorHandle<object>[];
}

const halfOfCpus = Math.max(1, Math.floor(availableParallelism() / 2));

/** Names as Ray's. */
export const rayRows: readonly RayRow[] = [
  row("single client get calls", "gets", getCalls),
  row("single client put calls", "puts", async () => work(1, () => ray.put(0))),
  row("multi client put calls", "puts", async () =>
    work(1000, () => times(10, () => putSmall.remote(100))),
  ),
  row("single client put gigabytes", "GB", putGigabytes),
  row("multi client put gigabytes", "GB", async () =>
    work(8, () => times(10, () => putBig.remote(10, 10 * 1024 * 1024))),
  ),
  row("single client tasks and get batch", "rounds", async () =>
    work(1, () => checked(many(1000, () => smallValue.remote()))),
  ),
  row("single client get object containing 10k refs", "gets", getRefs),
  row("single client wait 1k refs", "rounds", async () => work(1, waitRefs)),
  row("single client tasks sync", "tasks", async () =>
    work(1, () => checked([smallValue.remote()])),
  ),
  row("single client tasks async", "tasks", async () =>
    work(1000, () => checked(many(1000, () => smallValue.remote()))),
  ),
  row("multi client tasks async", "tasks", multiTasks),
  row("1:1 actor calls sync", "calls", () => sync(Actor.remote())),
  row("1:1 actor calls async", "calls", () => inFlight(Actor.remote())),
  row("1:1 actor calls concurrent", "calls", () =>
    inFlight(Actor.options({ maxConcurrency: 16 }).remote()),
  ),
  row("1:n actor calls async", "calls", () => oneToN(() => Actor.remote())),
  row("n:n actor calls async", "calls", () => nToN(() => Actor.remote())),
  row("n:n actor calls with arg async", "calls", nToNWithRef),
  row("1:1 async-actor calls sync", "calls", () => sync(AsyncActor.remote())),
  row("1:1 async-actor calls async", "calls", () => inFlight(AsyncActor.remote())),
  row("1:1 async-actor calls with args async", "calls", withArgs),
  row("1:n async-actor calls async", "calls", () => oneToN(() => AsyncActor.remote())),
  row("n:n async-actor calls async", "calls", () => nToN(() => AsyncActor.remote())),
  row("placement group create/removal", "groups", async () => work(100, placementGroups)),
];

/** Resources of the session beside CPUs: the placement groups ask for it. */
export const rowResources: Readonly<Record<string, number>> = { custom: 100 };

function row(name: string, unit: string, prepare: () => Promise<PreparedRow>): RayRow {
  return { name, unit, prepare };
}

function work(
  units: number,
  run: () => unknown,
  actors: readonly ray.ActorHandle<object>[] = [],
): PreparedRow {
  return { units, run, actors };
}

async function getCalls(): Promise<PreparedRow> {
  const ref = ray.put(0);
  return work(1, () => ray.get(ref));
}

async function putGigabytes(): Promise<PreparedRow> {
  const values = new BigInt64Array(100 * 1024 * 1024);
  return work(0.8, () => ray.put(values));
}

async function getRefs(): Promise<PreparedRow> {
  const count = 10_000;
  const ref = refsInside.remote(count);
  return work(1, async () => verify((await ray.get(ref)).length, count));
}

async function waitRefs(): Promise<void> {
  const count = 1000;
  let pending: ray.ObjectRef<Uint8Array>[] = [...many(count, () => smallValue.remote())];
  for (let index = 0; index < count; index++) ({ pending } = await ray.wait(pending));
  verify(pending.length, 0);
}

async function multiTasks(): Promise<PreparedRow> {
  const actors = Array.from({ length: 4 }, () => Actor.remote());
  const run = (): unknown => ray.get(actors.map((actor) => actor.submitTasks.remote(10_000)));
  return work(40_000, run, actors);
}

async function sync(actor: Server): Promise<PreparedRow> {
  return work(1, () => checked([actor.smallValue.remote()]), [actor]);
}

async function inFlight(actor: Server): Promise<PreparedRow> {
  return work(1000, () => checked(many(1000, () => actor.smallValue.remote())), [actor]);
}

async function withArgs(): Promise<PreparedRow> {
  const actor = AsyncActor.remote();
  const run = (): unknown => checked(many(1000, (index) => actor.smallValueArg.remote(index)));
  return work(1000, run, [actor]);
}

async function oneToN(create: () => Server): Promise<PreparedRow> {
  const servers = Array.from({ length: halfOfCpus }, create);
  const client = Client.remote(servers);
  const run = (): unknown => ray.get(client.callServers.remote(5000));
  return work(5000 * servers.length, run, [client, ...servers]);
}

async function nToN(create: () => Server): Promise<PreparedRow> {
  const servers = Array.from({ length: halfOfCpus }, create);
  return work(20_000, () => times(4, () => callAll.remote(servers, 5000)), servers);
}

async function nToNWithRef(): Promise<PreparedRow> {
  const servers = Array.from({ length: halfOfCpus }, () => Actor.remote());
  const clients = servers.map((server) => Client.remote([server]));
  const run = (): unknown =>
    ray.get(clients.map((client) => client.callServersWithRef.remote(1000)));
  return work(1000 * clients.length, run, [...clients, ...servers]);
}

async function placementGroups(): Promise<void> {
  const groups = Array.from({ length: 100 }, () => ray.placementGroup([{ custom: 0.001 }]));
  for (const group of groups) verify(Number(await group.wait(30_000)), 1);
  for (const group of groups) await ray.removePlacementGroup(group);
}

function times(count: number, start: () => ray.ObjectRef): Promise<unknown> {
  return ray.get(Array.from({ length: count }, start));
}

async function checked(refs: readonly ray.ObjectRef<Uint8Array>[]): Promise<void> {
  for (const value of await ray.get(refs)) verify(value.length, 2);
}

function verify(found: number, expected: number): void {
  if (found !== expected) throw new Error(`a row got ${found} in place of ${expected}`);
}
