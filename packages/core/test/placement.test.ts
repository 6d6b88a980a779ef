import { describe, expect, test } from "vitest";
import { meets } from "../src/placement/labels.ts";
import { Lines } from "../src/placement/request-queues.ts";
import { type ClusterView, decide, type PoolView, toRequest } from "../src/placement/policy.ts";
import { toAmounts, toUnits } from "../src/placement/resources.ts";
import type { Allocation, ResourceRequest } from "../src/placement/placement.ts";
import { Scheduler } from "../src/placement/scheduler.ts";
import {
  type Amounts,
  type Demand,
  type LabelCondition,
  makeDemand,
  type Strategy,
} from "../src/rpc/resource-demand.ts";
import { Fifo } from "../src/shared/fifo.ts";

const node = (
  nodeId: string,
  available: Amounts,
  total: Amounts = { CPU: 4 },
  labels: Readonly<Record<string, string>> = {},
): PoolView => ({ nodeId, labels, total: toUnits(total), available: toUnits(available) });

const wants = (amounts: Amounts, strategy?: Strategy): Demand =>
  makeDemand(amounts, amounts, strategy);
const cpus = (amount: number, strategy?: Strategy): Demand => wants({ CPU: amount }, strategy);

const view = (nodes: readonly PoolView[], more: Partial<ClusterView<PoolView>> = {}) => ({
  nodes,
  lastSpread: undefined,
  bundlesOf: () => undefined,
  ...more,
});
/** The node's id, or what else was decided. */
const decided = (demand: Demand, cluster: ClusterView<PoolView>): unknown => {
  const decision = decide(toRequest(demand), cluster);
  return decision.kind === "place" ? decision.pool.nodeId : decision;
};

describe("amounts", () => {
  test("of fractions add up exactly", () => {
    const scheduler = new Scheduler();
    scheduler.addNode("n", { CPU: 1 });
    for (let step = 0; step < 10; step++) scheduler.request(cpus(0.1), "tenth");
    expect(scheduler.resources.available).toEqual({ CPU: 0 });
  });

  test("are ten-thousandths, and whole bytes for memory", () => {
    const amounts = { CPU: 0.0001, license: 2.5, memory: 3 * 2 ** 40 };
    expect([...toUnits(amounts).values()]).toEqual([1, 25_000, 3 * 2 ** 40]);
    expect(toAmounts(toUnits(amounts))).toEqual(amounts);
  });
});

describe("the policy", () => {
  const half = { CPU: 2 };
  test.each<[string, Demand, ClusterView<PoolView>, unknown]>([
    ["packs the first node", cpus(1), view([node("a", { CPU: 4 }), node("b", { CPU: 4 })]), "a"],
    [
      "packs it until half of it is used",
      cpus(1),
      view([node("a", { CPU: 2.5 }), node("b", { CPU: 4 })]),
      "a",
    ],
    [
      "then takes the least used one",
      cpus(1),
      view([node("a", half), node("b", { CPU: 1 }), node("c", { CPU: 4 })]),
      "c",
    ],
    [
      "takes what is left when all are more than half used",
      cpus(1),
      view([node("a", { CPU: 1 }), node("b", { CPU: 2 })]),
      "b",
    ],
    [
      "waits for a node that is busy",
      cpus(2),
      view([node("a", { CPU: 1 })]),
      { kind: "wait", feasible: true, reason: "needs 2 CPU of 1" },
    ],
    [
      "waits for a node that is bigger",
      cpus(8),
      view([node("a", { CPU: 4 })]),
      { kind: "wait", feasible: false, reason: "needs 8 CPU of 4" },
    ],
    [
      "waits for any node",
      cpus(1),
      view([]),
      { kind: "wait", feasible: false, reason: "needs 1 CPU of 0" },
    ],
    [
      "places who needs nothing, also where nothing is left",
      cpus(0),
      view([node("a", { CPU: -1 })]),
      "a",
    ],
    [
      "names everything that is missing",
      wants({ CPU: 1, tpu: 2 }),
      view([node("a", { CPU: 0 })]),
      { kind: "wait", feasible: false, reason: "needs 2 tpu of 0" },
    ],
    [
      "keeps nodes with GPUs for those who want one",
      cpus(1),
      view([node("gpu", { CPU: 4, GPU: 1 }, { CPU: 4, GPU: 1 }), node("plain", { CPU: 1 })]),
      "plain",
    ],
    [
      "but not while others wait",
      cpus(1),
      view([node("gpu", { CPU: 4, GPU: 1 }, { CPU: 4, GPU: 1 }), node("plain", { CPU: 0 })]),
      "gpu",
    ],
    [
      "spreads from where it was",
      cpus(1, { kind: "SPREAD" }),
      view([node("a", half), node("b", half), node("c", half)], { lastSpread: "a" }),
      "b",
    ],
    [
      "spreads past a full one",
      cpus(1, { kind: "SPREAD" }),
      view([node("a", half), node("b", { CPU: 0 }), node("c", half)], { lastSpread: "a" }),
      "c",
    ],
    [
      "goes to the node that it must",
      cpus(1, { kind: "NODE_AFFINITY", nodeId: "b", soft: false }),
      view([node("a", half), node("b", half)]),
      "b",
    ],
    [
      "waits for the node that it must go to",
      cpus(1, { kind: "NODE_AFFINITY", nodeId: "b", soft: true }),
      view([node("a", half), node("b", { CPU: 0 })]),
      { kind: "wait", feasible: true, reason: "needs 1 CPU of 0" },
    ],
    [
      "refuses when that node is gone",
      cpus(1, { kind: "NODE_AFFINITY", nodeId: "b", soft: false }),
      view([node("a", half)]),
      {
        kind: "reject",
        refusal: "unschedulable",
        reason: "node b, which it must run on, is gone or never existed",
      },
    ],
    [
      "refuses when that node is too small",
      cpus(5, { kind: "NODE_AFFINITY", nodeId: "a", soft: false }),
      view([node("a", half), node("b", { CPU: 8 }, { CPU: 8 })]),
      {
        kind: "reject",
        refusal: "unschedulable",
        reason: "node a, which it must run on, does not have the resources for it (5 CPU of 4)",
      },
    ],
    [
      "falls back when that node is gone and it only should go there",
      cpus(1, { kind: "NODE_AFFINITY", nodeId: "b", soft: true }),
      view([node("a", half)]),
      "a",
    ],
    [
      "falls back when that node is too small",
      cpus(5, { kind: "NODE_AFFINITY", nodeId: "a", soft: true }),
      view([node("a", half), node("b", { CPU: 8 }, { CPU: 8 })]),
      "b",
    ],
    [
      "refuses who is in a group that was removed",
      cpus(1, {
        kind: "PLACEMENT_GROUP",
        group: { groupId: "g", bundles: [] },
        bundleIndex: -1,
        captureChildTasks: false,
      }),
      view([node("a", half)]),
      {
        kind: "reject",
        refusal: "placement-group-removed",
        reason: "its placement group g was removed",
      },
    ],
    [
      "waits for its group",
      cpus(1, {
        kind: "PLACEMENT_GROUP",
        group: { groupId: "g", bundles: [] },
        bundleIndex: 1,
        captureChildTasks: false,
      }),
      view([node("a", half)], { bundlesOf: () => [node("a", half), undefined] }),
      { kind: "wait", feasible: true, reason: "its placement group g has no place yet" },
    ],
    [
      "takes any bundle with room, or the one it was told",
      cpus(2, {
        kind: "PLACEMENT_GROUP",
        group: { groupId: "g", bundles: [] },
        bundleIndex: -1,
        captureChildTasks: false,
      }),
      view([node("a", half)], { bundlesOf: () => [node("x", { CPU: 1 }), node("y", half)] }),
      "y",
    ],
  ])("%s", (_name, demand, cluster, expected) => {
    expect(decided(demand, cluster)).toEqual(expected);
  });

  const zones = view([
    node("a", { CPU: 0 }, { CPU: 4 }, { zone: "a" }),
    node("b", half, { CPU: 4 }, { zone: "b", disk: "ssd" }),
    node("c", half, { CPU: 4 }, { zone: "c" }),
  ]);
  test.each<[string, Demand, unknown]>([
    [
      "hard labels",
      cpus(1, { kind: "NODE_LABEL", hard: { zone: { in: ["c", "x"] } }, soft: {} }),
      "c",
    ],
    [
      "hard labels that a busy node has",
      cpus(1, { kind: "NODE_LABEL", hard: { zone: { in: ["a"] } }, soft: {} }),
      { kind: "wait", feasible: true, reason: "needs 1 CPU of 0" },
    ],
    [
      "hard labels that no node has",
      cpus(1, {
        kind: "NODE_LABEL",
        hard: { zone: { in: ["x"] }, disk: { exists: true } },
        soft: {},
      }),
      { kind: "wait", feasible: false, reason: "no node with zone in (x) and disk" },
    ],
    ["soft labels", cpus(1, { kind: "NODE_LABEL", hard: {}, soft: { zone: { in: ["c"] } } }), "c"],
    [
      "soft labels that nobody free has",
      cpus(1, { kind: "NODE_LABEL", hard: {}, soft: { zone: { in: ["a"] } } }),
      "b",
    ],
    [
      "a selector",
      makeDemand({ CPU: 1 }, {}, { kind: "DEFAULT" }, [{ disk: { doesNotExist: true } }]),
      "c",
    ],
    [
      "what to fall back to",
      makeDemand({ CPU: 1 }, {}, { kind: "DEFAULT" }, [
        { zone: { in: ["a"] } },
        { zone: { notIn: ["a", "b"] } },
      ]),
      "c",
    ],
    [
      "the best of what all must wait for",
      makeDemand({ CPU: 1 }, {}, { kind: "DEFAULT" }, [
        { zone: { in: ["x"] } },
        { zone: { in: ["a"] } },
      ]),
      { kind: "wait", feasible: true, reason: "needs 1 CPU of 0" },
    ],
  ])("knows %s", (_name, demand, expected) => {
    expect(decided(demand, zones)).toEqual(expected);
  });

  test("takes a label that is not there as not in any list", () => {
    expect(meets({}, { zone: { notIn: ["a"] } })).toBe(true);
    const exists: LabelCondition = { exists: true };
    expect(meets({}, { toString: exists })).toBe(false);
  });
});

describe("the scheduler", () => {
  const placed = async (request: ResourceRequest): Promise<Allocation> => {
    const outcome = await request.outcome;
    if (outcome.kind !== "placed") throw new Error(`it was ${outcome.kind}`);
    return outcome.allocation;
  };
  const waits = ({ reason }: ResourceRequest): boolean => reason !== undefined;

  test("gives what is free, holds the rest back in order, and lets what fits pass", async () => {
    const scheduler = new Scheduler();
    scheduler.addNode("n", { CPU: 2 });
    const first = await placed(scheduler.request(cpus(2), "first"));
    const big = scheduler.request(cpus(2), "big");
    const small = scheduler.request(cpus(0), "small");
    expect([waits(big), waits(small)]).toEqual([true, false]);
    expect(scheduler.pending()).toMatchObject([{ label: "big", reason: "needs 2 CPU of 0" }]);
    first.release();
    first.release();
    expect(waits(big)).toBe(false);
    expect(scheduler.resources.available).toEqual({ CPU: 0 });
  });

  test("serves those who want different things in the order of request", async () => {
    const scheduler = new Scheduler();
    scheduler.addNode("n", { CPU: 2 });
    const all = await placed(scheduler.request(cpus(2), "all"));
    const order: string[] = [];
    const ask = (amount: number, label: string): void =>
      void scheduler.request(cpus(amount), label).outcome.then(() => order.push(label));
    ask(1, "one");
    ask(0.5, "half");
    ask(1, "another one");
    ask(0.5, "another half");
    all.release();
    await Promise.resolve();
    await new Promise(setImmediate);
    expect(order).toEqual(["one", "half", "another half"]);
    expect(scheduler.pending().map(({ label }) => label)).toEqual(["another one"]);
  });

  test("tells who waits by line: each with its first and its size, in the order of request", async () => {
    let now = 100;
    const scheduler = new Scheduler(() => now++);
    scheduler.addNode("n", { CPU: 2 });
    const all = await placed(scheduler.request(cpus(2), "all"));
    const requests = [
      scheduler.request(cpus(1), "first of two"),
      scheduler.request(cpus(2), "alone"),
      scheduler.request(cpus(1), "second of two"),
    ];
    expect(scheduler.pendingLines()).toEqual([
      {
        label: "first of two",
        size: 2,
        wants: [{ CPU: 1 }],
        feasible: true,
        reason: "needs 1 CPU of 0",
        sinceMs: 101,
      },
      {
        label: "alone",
        size: 1,
        wants: [{ CPU: 2 }],
        feasible: true,
        reason: "needs 2 CPU of 0",
        sinceMs: 102,
      },
    ]);
    requests[0]?.withdraw();
    expect(scheduler.pendingLines().map(({ label, size }) => [label, size])).toEqual([
      ["alone", 1],
      ["second of two", 1],
    ]);
    all.release();
    expect(scheduler.pendingLines().map(({ label }) => label)).toEqual(["second of two"]);
  });

  test("forgets who withdraws, wherever it stands, and warns about a line once", async () => {
    const warnings: string[] = [];
    const listen = (warning: Error): number => warnings.push(warning.message);
    process.on("warning", listen);
    const scheduler = new Scheduler();
    scheduler.addNode("n", { CPU: 1 });
    const requests = ["a", "b", "c", "d"].map((label) => scheduler.request(cpus(64), label));
    requests[1]?.withdraw();
    requests[0]?.withdraw();
    requests[3]?.withdraw();
    expect(await requests[0]?.outcome).toEqual({ kind: "withdrawn" });
    expect(scheduler.pending().map(({ label, feasible }) => [label, feasible])).toEqual([
      ["c", false],
    ]);
    scheduler.addNode("big", { CPU: 64 });
    const allocation = await placed(requests[2] as ResourceRequest);
    requests[2]?.withdraw();
    expect(allocation.nodeId).toBe("big");
    expect(scheduler.pending()).toEqual([]);
    await new Promise(setImmediate);
    process.off("warning", listen);
    expect(warnings).toEqual(["a needs 64 CPU of 1 and waits until a node has as much"]);
  });

  test("lends the CPUs that a blocked holder does not use, beyond the total when it wakes", async () => {
    const scheduler = new Scheduler();
    scheduler.addNode("n", { CPU: 1, tool: 1 });
    const blocked = await placed(scheduler.request(wants({ CPU: 1, tool: 1 }), "blocked"));
    blocked.lend(true);
    blocked.lend(true);
    expect(scheduler.resources.available).toEqual({ CPU: 1, tool: 0 });
    const other = await placed(scheduler.request(cpus(1), "other"));
    blocked.lend(false);
    expect(scheduler.nodes[0]?.available.get("CPU")).toBe(-10_000);
    expect(scheduler.resources.available).toEqual({ CPU: 0, tool: 0 });
    other.release();
    blocked.lend(true);
    blocked.release();
    blocked.lend(true);
    expect(scheduler.resources.available).toEqual({ CPU: 1, tool: 1 });
  });

  test("takes nothing back for a node that is gone, and refuses who must go there", async () => {
    const scheduler = new Scheduler();
    scheduler.addNode("a", { CPU: 1 });
    scheduler.addNode("b", { CPU: 1 });
    const there = await placed(
      scheduler.request(cpus(1, { kind: "NODE_AFFINITY", nodeId: "b", soft: false }), "there"),
    );
    const next = scheduler.request(
      cpus(1, { kind: "NODE_AFFINITY", nodeId: "b", soft: false }),
      "next",
    );
    scheduler.removeNode("b");
    expect(there.isLost).toBe(true);
    there.release();
    expect(await next.outcome).toMatchObject({ kind: "refused", refusal: "unschedulable" });
    expect(scheduler.resources).toEqual({ total: { CPU: 1 }, available: { CPU: 1 } });
  });

  test("serves who waits for a group when it is placed, and for its room when it is removed", async () => {
    const scheduler = new Scheduler();
    scheduler.addNode("n", { CPU: 1 });
    const group = { groupId: "g", bundles: [{ CPU: 2 }] };
    scheduler.createGroup({
      ...group,
      name: undefined,
      strategy: "PACK",
      selectors: [{}],
      owner: undefined,
    });
    const place: Strategy = {
      kind: "PLACEMENT_GROUP",
      group,
      bundleIndex: -1,
      captureChildTasks: false,
    };
    const inside = scheduler.request(cpus(1, place), "inside");
    expect(scheduler.pending().map(({ label, feasible }) => [label, feasible])).toEqual([
      ["placement group g", false],
      ["inside", true],
    ]);
    scheduler.addNode("small", { CPU: 1 });
    const blocker = await placed(
      scheduler.request(cpus(1, { kind: "NODE_AFFINITY", nodeId: "small", soft: false }), "b"),
    );
    scheduler.addNode("big", { CPU: 2 });
    const allocation = await placed(inside);
    const outside = scheduler.request(cpus(2), "outside");
    expect(waits(outside)).toBe(true);
    scheduler.removeGroup("g");
    expect(allocation.isLost).toBe(true);
    // What is held comes back when its holder has ended.
    expect(waits(outside)).toBe(true);
    allocation.release();
    expect((await placed(outside)).nodeId).toBe("big");
    allocation.release();
    blocker.release();
    expect(scheduler.resources.available).toEqual({ CPU: 2 });
    expect(await scheduler.groupReady("g")).toBe("REMOVED");
  });

  test("knows whether a group that waits could ever be placed", async () => {
    const scheduler = new Scheduler();
    scheduler.addNode("n", { CPU: 1 });
    const early = scheduler.request(cpus(2), "early");
    scheduler.createGroup({
      groupId: "g",
      name: undefined,
      bundles: [{ CPU: 2 }],
      strategy: "PACK",
      selectors: [{}],
      owner: undefined,
    });
    expect(scheduler.pending().at(-1)).toMatchObject({
      label: "placement group g",
      feasible: false,
    });
    scheduler.addNode("big", { CPU: 2 });
    expect(scheduler.pending()).toMatchObject([{ label: "placement group g", feasible: true }]);
    scheduler.removeNode("big");
    expect(scheduler.pending()).toMatchObject([{ label: "placement group g", feasible: false }]);
    expect((await placed(early)).isLost).toBe(true);
  });

  test("rejects who waits when it closes, and who comes later", async () => {
    const scheduler = new Scheduler();
    const waiting = scheduler.request(cpus(1), "waiting");
    scheduler.close(new Error("closing"));
    await expect(waiting.outcome).rejects.toThrow("closing");
    await expect(scheduler.request(cpus(1), "late").outcome).rejects.toThrow("closing");
  });
});

test("of those who want the same, only the first is looked at", () => {
  const lines = new Lines();
  let room = 0;
  let looks = 0;
  const waiting = 10_000;
  for (let sequence = 0; sequence < waiting; sequence++) {
    lines.enter("same", {
      sequence,
      label: "one",
      wants: [],
      sinceMs: 0,
      attempt: () => {
        looks += 1;
        if (room === 0) return { feasible: true, reason: "no room" };
        room -= 1;
        return undefined;
      },
      close: () => undefined,
    });
  }
  expect(looks).toBe(1);
  for (let round = 0; round < waiting; round++) {
    room += 1;
    lines.serve();
  }
  // One that is served and one that is not, in every round but the last.
  expect([looks, lines.pending().length]).toEqual([2 * waiting, 0]);
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
