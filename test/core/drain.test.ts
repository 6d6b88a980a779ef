/** A node that is emptied: what can go elsewhere does, and nothing is lost or done twice on the way. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { bigTask, Ledger, type LedgerHandle, Mover, Pump } from "../fixtures/draining.ts";
import { isAlone } from "../fixtures/isolation.ts";
import { keep } from "../fixtures/keep.ts";

const cluster = new ray.Cluster();
let ledger: LedgerHandle;
let old: ray.NodeInfo;

beforeEach(async () => {
  await ray.init({ numCpus: 2, prewarm: 0 });
  old = await cluster.addNode({ numCpus: 2, labels: { zone: "old" } });
  ledger = keep(Ledger.remote());
});
afterEach(() => ray.shutdown());

const infoOf = async ({ nodeId }: ray.NodeInfo): Promise<ray.NodeInfo | undefined> =>
  (await ray.nodes()).find((node) => node.nodeId === nodeId);
const onOld = (): ray.ActorOptions => ({
  numCpus: 1,
  schedulingStrategy: { kind: "NODE_AFFINITY", nodeId: old.nodeId, soft: true },
});
const poll = <T>(look: () => Promise<T>): ReturnType<typeof expect.poll<T>> =>
  expect.poll(look, { timeout: 60_000 });
const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
const rowOf = async (actorId: string): Promise<ray.state.ActorRow | undefined> =>
  (await ray.state.listActors({ detail: true })).find((row) => row.actorId === actorId);

test("an actor goes on elsewhere: every call runs once and in order, those of other actors too, and it is no restart", async () => {
  const mover = keep(
    Mover.options({ ...onOld(), maxRestarts: 1, maxConcurrency: 1 }).remote(ledger),
  );
  const pump = keep(Pump.options({ numCpus: 0.5 }).remote());
  expect(await ray.get(mover.nodeId.remote())).toBe(old.nodeId);
  const pumped = pump.pump.remote(mover, 1000, 1400);
  const own = upTo(200).map((n) => mover.note.remote(n));
  const drained = ray.drainNode(old);
  own.push(...upTo(200).map((n) => mover.note.remote(200 + n)));
  const results = await ray.get(own);
  const others = await ray.get(pumped);
  expect(await drained).toBe(true);
  expect(results.map(({ n }) => n)).toEqual(upTo(400));
  expect(others.map(({ n }) => n)).toEqual(upTo(400).map((n) => 1000 + n));
  const notes = await ray.get(ledger.notes.remote());
  expect(notes.filter((n) => n < 1000)).toEqual(upTo(400));
  expect(notes.filter((n) => n >= 1000)).toEqual(upTo(400).map((n) => 1000 + n));
  expect(await ray.get(mover.nodeId.remote())).not.toBe(old.nodeId);
  if (!isAlone) return;
  // It has its restart still.
  await expect(ray.get(mover.crash.remote())).rejects.toBeInstanceOf(ray.ActorUnavailableError);
  expect(await ray.get(mover.note.remote(5000))).toMatchObject({ n: 5000 });
});

test("what runs ends first; what waits is for the next life", async () => {
  const mover = keep(
    Mover.options({ ...onOld(), maxRestarts: 1, maxConcurrency: 2 }).remote(ledger),
  );
  const held = mover.hold.remote(1);
  await poll(() => ray.get(ledger.notes.remote())).toEqual([1]);
  const drained = ray.drainNode(old);
  await poll(async () => (await infoOf(old))?.draining).toBe(true);
  expect(await infoOf(old)).toMatchObject({ alive: true, draining: true });
  // Until it has heard of it, it takes calls; then they are for its next life, and only this one could open itself.
  let n = 2;
  let late = mover.note.remote(n);
  while ((await ray.wait([late], { timeoutMs: 3000 })).ready.length > 0) {
    late = mover.note.remote(++n);
  }
  await ray.kill(mover, { noRestart: false });
  await expect(ray.get(held)).rejects.toBeInstanceOf(ray.ActorUnavailableError);
  expect(await ray.get(late)).toMatchObject({ n });
  expect(await drained).toBe(true);
  expect(await infoOf(old)).toMatchObject({
    alive: false,
    draining: false,
    deathReason: expect.stringContaining("was drained") as string,
  });
});

test("one that may not be restarted stays until it ends by itself", async () => {
  const stays = keep(Mover.options(onOld()).remote(ledger));
  expect(await ray.get(stays.nodeId.remote())).toBe(old.nodeId);
  const drained = ray.drainNode(old);
  await poll(async () => (await infoOf(old))?.draining).toBe(true);
  expect(await ray.get(stays.note.remote(1))).toEqual({ n: 1, nodeId: old.nodeId });
  await ray.kill(stays);
  expect(await drained).toBe(true);
});

test("when the time is over, the rest ends with the node: it is lost, or starts elsewhere", async () => {
  const stays = keep(Mover.options(onOld()).remote(ledger));
  const holds = keep(Mover.options({ ...onOld(), maxRestarts: 1 }).remote(ledger));
  const held = holds.hold.remote(1);
  expect(await ray.get(stays.nodeId.remote())).toBe(old.nodeId);
  await poll(() => ray.get(ledger.notes.remote())).toEqual([1]);
  expect(await ray.drainNode(old, { timeoutMs: 0 })).toBe(false);
  await expect(ray.get(stays.nodeId.remote())).rejects.toMatchObject({
    name: "ActorDiedError",
    deathCause: { kind: "node-died" },
  });
  await expect(ray.get(held)).rejects.toBeInstanceOf(ray.ActorUnavailableError);
  expect(await ray.get(holds.nodeId.remote())).not.toBe(old.nodeId);
});

test("without room elsewhere it stays at work, and goes when there is", async () => {
  const blocker = keep(Mover.options({ numCpus: 2 }).remote(ledger));
  expect(await ray.get(blocker.nodeId.remote())).not.toBe(old.nodeId);
  const mover = keep(Mover.options({ ...onOld(), maxRestarts: 1 }).remote(ledger));
  expect(await ray.get(mover.nodeId.remote())).toBe(old.nodeId);
  const drained = ray.drainNode(old);
  await poll(async () => (await infoOf(old))?.draining).toBe(true);
  const { actorId } = (
    await ray.state.listActors({ filters: [["nodeId", "=", old.nodeId]] })
  )[0] ?? {
    actorId: "",
  };
  await poll(async () => (await rowOf(actorId))?.pendingReason).toContain("CPU");
  expect(await ray.get(mover.note.remote(1))).toEqual({ n: 1, nodeId: old.nodeId });
  const fresh = await cluster.addNode({ numCpus: 1 });
  expect(await drained).toBe(true);
  expect(await ray.get(mover.nodeId.remote())).toBe(fresh.nodeId);
});

test("nothing new is placed there", async () => {
  const drained = ray.drainNode(old);
  await drained;
  const hard = { kind: "NODE_AFFINITY", nodeId: old.nodeId, soft: false } as const;
  await expect(
    ray.get(keep(Mover.options({ schedulingStrategy: hard }).remote(ledger)).nodeId.remote()),
  ).rejects.toBeInstanceOf(ray.ActorUnschedulableError);
  const soft = keep(Mover.options(onOld()).remote(ledger));
  expect(await ray.get(soft.nodeId.remote())).not.toBe(old.nodeId);
});

test("results of its tasks and actors outlive it", async () => {
  const strategy = { kind: "NODE_AFFINITY", nodeId: old.nodeId, soft: true } as const;
  const task = bigTask.options({ schedulingStrategy: strategy, maxRetries: 0 }).remote(50_000);
  const mover = keep(Mover.options({ ...onOld(), maxRestarts: 1 }).remote(ledger));
  const big = mover.big.remote(50_000);
  await ray.wait([task, big], { numReturns: 2 });
  expect(await ray.drainNode(old)).toBe(true);
  expect((await ray.get(task))[49_999]).toBe(5);
  expect((await ray.get(big))[49_999]).toBe(7);
});

test("a placement group looks for new bundles, and its actors follow", async () => {
  await cluster.addNode({ numCpus: 1, labels: { zone: "new" } });
  const group = ray.placementGroup([{ CPU: 1 }], {
    bundleLabelSelector: [{ zone: "in(old, new)" }],
  });
  await ray.get(group.ready());
  const inGroup = { kind: "PLACEMENT_GROUP", placementGroup: group } as const;
  const mover = keep(
    Mover.options({ numCpus: 1, schedulingStrategy: inGroup, maxRestarts: 1 }).remote(ledger),
  );
  expect(await ray.get(mover.nodeId.remote())).toBe(old.nodeId);
  expect(await ray.drainNode(old)).toBe(true);
  const now = await ray.get(mover.nodeId.remote());
  expect((await infoOf({ ...old, nodeId: now }))?.labels).toMatchObject({ zone: "new" });
  expect(Object.values(await ray.placementGroupTable()).map(({ state }) => state)).toEqual([
    "CREATED",
  ]);
});

test.each([
  ["is killed", async (mover: ReturnType<typeof Mover.remote>) => ray.kill(mover)],
  [
    "leaves by itself",
    async (mover: ReturnType<typeof Mover.remote>) => {
      await ray.get(mover.leave.remote()).catch(() => undefined);
    },
  ],
])("one that %s on the way stays dead", async (_how, end) => {
  const blocker = keep(Mover.options({ numCpus: 2 }).remote(ledger));
  await ray.get(blocker.nodeId.remote());
  const mover = keep(Mover.options({ ...onOld(), maxRestarts: 5 }).remote(ledger));
  await ray.get(mover.nodeId.remote());
  const drained = ray.drainNode(old);
  await poll(async () => (await infoOf(old))?.draining).toBe(true);
  await end(mover);
  expect(await drained).toBe(true);
  await expect(ray.get(mover.nodeId.remote())).rejects.toBeInstanceOf(ray.ActorDiedError);
  await ray.kill(blocker);
  expect((await ray.availableResources())["CPU"]).toBe(2);
});

describe("bad input", () => {
  test("names what is no node that can be drained", async () => {
    const [head] = await ray.nodes();
    for (const node of [head, { nodeId: "nowhere" }, {}, undefined]) {
      await expect(ray.drainNode(node as ray.NodeInfo)).rejects.toMatchObject({ option: "node" });
    }
    await expect(ray.drainNode(old, { timeoutMs: -1 })).rejects.toMatchObject({
      option: "timeoutMs",
    });
  });
});
