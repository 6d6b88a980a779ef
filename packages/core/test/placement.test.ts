import { describe, expect, test } from "vitest";
import { decide, type NodeView } from "../src/placement/policy.ts";
import { add } from "../src/placement/resources.ts";
import { Scheduler } from "../src/placement/scheduler.ts";
import { Fifo } from "../src/shared/fifo.ts";

const node = (available: number, total = 4): NodeView => ({
  nodeId: `n${available}`,
  total: { CPU: total },
  available: { CPU: available },
});
const cpus = (amount: number): { place: { CPU: number }; hold: { CPU: number } } => ({
  place: { CPU: amount },
  hold: { CPU: amount },
});

test("fractions of resources add up exactly", () => {
  let sum = {};
  for (let step = 0; step < 10; step++) sum = add(sum, { CPU: 0.1 });
  expect(sum).toEqual({ CPU: 1 });
  expect(add(sum, { CPU: 0.3 }, -1)).toEqual({ CPU: 0.7 });
});

test.each([
  [
    "the first node with room",
    cpus(2),
    [node(1), node(3), node(4)],
    { kind: "place", nodeId: "n3" },
  ],
  ["no node yet", cpus(2), [node(1)], { kind: "wait", feasible: true, reason: "needs 2 CPU of 1" }],
  [
    "no node ever",
    cpus(8),
    [node(4)],
    { kind: "wait", feasible: false, reason: "needs 8 CPU of 4" },
  ],
  ["no nodes at all", cpus(1), [], { kind: "wait", feasible: false, reason: "needs 1 CPU of 0" }],
  ["a request for nothing", cpus(0), [node(0)], { kind: "place", nodeId: "n0" }],
])("the policy takes %s", (_name, request, nodes, decision) => {
  expect(decide(request, nodes)).toEqual(decision);
});

describe("the scheduler", () => {
  const ready = async (allocation: Promise<unknown>): Promise<boolean> =>
    Promise.race([
      allocation.then(() => true),
      new Promise<boolean>((resolve) => setImmediate(resolve, false)),
    ]);

  test("gives what is free, holds the rest back in order, and lets what fits pass", async () => {
    const scheduler = new Scheduler();
    scheduler.addNode("n", { CPU: 2 });
    const first = await scheduler.acquire(cpus(2), "first");
    const big = scheduler.acquire(cpus(2), "big");
    const small = scheduler.acquire(cpus(0), "small");
    expect(await ready(small)).toBe(true);
    expect(await ready(big)).toBe(false);
    first.release();
    first.release();
    expect(await ready(big)).toBe(true);
    expect(scheduler.nodes[0]?.available).toEqual({ CPU: 0 });
  });

  test("lends what a blocked holder does not use, beyond the total when it wakes", async () => {
    const scheduler = new Scheduler();
    scheduler.addNode("n", { CPU: 1 });
    const blocked = await scheduler.acquire(cpus(1), "blocked");
    blocked.lend(true);
    blocked.lend(true);
    const other = await scheduler.acquire(cpus(1), "other");
    blocked.lend(false);
    expect(scheduler.nodes[0]?.available).toEqual({ CPU: -1 });
    other.release();
    blocked.release();
    blocked.lend(true);
    expect(scheduler.nodes[0]?.available).toEqual({ CPU: 1 });
  });

  test("rejects who waits when it closes", async () => {
    const scheduler = new Scheduler();
    const waiting = scheduler.acquire({ place: { CPU: 0.5 }, hold: {} }, "waiting");
    scheduler.close(new Error("closing"));
    await expect(waiting).rejects.toThrow("closing");
  });
});

test("a fifo keeps its order over many pushes and shifts", () => {
  const fifo = new Fifo<number>();
  const seen: (number | undefined)[] = [];
  for (let round = 0; round < 5000; round++) {
    fifo.push(2 * round);
    fifo.push(2 * round + 1);
    if (round % 3 !== 0) seen.push(fifo.shift());
  }
  expect(fifo.peek()).toBe(seen.length);
  seen.push(...fifo.drain());
  expect(seen).toEqual(Array.from({ length: 10_000 }, (_, index) => index));
  expect([fifo.size, fifo.shift(), fifo.peek()]).toEqual([0, undefined, undefined]);
});
