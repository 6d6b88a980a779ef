import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { sharesMemory, together } from "../fixtures/isolation.ts";
import { keep } from "../fixtures/keep.ts";
import { sized } from "../fixtures/suite.ts";
import { echo, Gate, Holder, nested, passGate, placeOfTask, spin } from "../fixtures/scheduling.ts";

const free = async (name: string): Promise<number | undefined> =>
  (await ray.availableResources())[name];
const isReady = async (ref: ray.ObjectRef): Promise<boolean> =>
  (await ray.wait([ref], { timeoutMs: 200 })).ready.length === 1;

const oneNode: ray.InitOptions = {
  numCpus: 2,
  numGpus: 1,
  memory: 1000,
  resources: { tool: 1 },
  prewarm: 0,
  ...together,
};

describe("on one node", () => {
  beforeEach(() => ray.init(oneNode));
  afterEach(ray.shutdown);

  test("more actors than CPUs wait, and run when others have ended", async () => {
    const actors = Array.from({ length: 5 }, () => keep(Holder.options({ numCpus: 1 }).remote()));
    const pings = actors.map((actor) => actor.ping.remote());
    expect(await ray.get(pings.slice(0, 2))).toEqual(["pong", "pong"]);
    expect(await isReady(pings[2] as (typeof pings)[number])).toBe(false);
    for (const [index, actor] of actors.entries()) {
      expect(await ray.get(pings[index] as (typeof pings)[number])).toBe("pong");
      await ray.kill(actor);
    }
    expect(await free("CPU")).toBe(2);
  });

  test("an actor that asks for nothing needs a CPU to start and then holds none", async () => {
    const actors = Array.from({ length: 4 }, () => keep(Holder.remote()));
    await ray.get(actors.map((actor) => actor.ping.remote()));
    expect(await free("CPU")).toBe(2);
    const all = keep(Holder.options({ numCpus: 2 }).remote());
    await ray.get(all.ping.remote());
    const late = Holder.remote().ping.remote();
    expect(await isReady(late)).toBe(false);
    await ray.kill(all);
    expect(await ray.get(late)).toBe("pong");
  });

  test.runIf(sharesMemory)("as many fractions run at once as fit, exactly", async () => {
    const gate = keep(Gate.remote());
    const cell = new Int32Array(new SharedArrayBuffer(4));
    // Neither is a binary fraction; each task is a worker.
    const [tool, most] = sized<[number, number]>({ gate: [0.2, 5], full: [0.1, 10] });
    const tasks = Array.from({ length: most + 1 }, () =>
      passGate.options({ numCpus: 0, resources: { tool } }).remote(cell, gate),
    );
    expect(await ray.get(gate.arrived.remote(most))).toBe(most);
    expect(await free("tool")).toBe(0);
    Atomics.store(cell, 0, 1);
    Atomics.notify(cell, 0);
    expect(await ray.get(tasks)).toHaveLength(most + 1);
    expect(await free("tool")).toBe(1);
  });

  test.runIf(sharesMemory)("tasks take what their options say, and give it back", async () => {
    const gate = keep(Gate.remote());
    const cell = new Int32Array(new SharedArrayBuffer(4));
    const wants = { numCpus: 0.5, numGpus: 1, memory: 10, resources: { tool: 0.5 } };
    const task = passGate.options(wants).remote(cell, gate);
    await ray.get(gate.arrived.remote(1));
    expect(await ray.availableResources()).toMatchObject({
      CPU: 1.5,
      GPU: 0,
      memory: 990,
      tool: 0.5,
    });
    Atomics.store(cell, 0, 1);
    Atomics.notify(cell, 0);
    await ray.get(task);
    expect(await ray.availableResources()).toEqual(await ray.clusterResources());
  });

  test("what no node has is waited for without an error, and a warning says so", async () => {
    const warned = new Promise<Error>((resolve) => {
      process.on("warning", (warning) => warning.name === "RaylingWarning" && resolve(warning));
    });
    const absent = echo.options({ resources: { absent: 1 } }).remote(1);
    expect(await isReady(absent)).toBe(false);
    expect((await warned).message).toContain("needs 1 absent of 0");
    expect(await ray.get(echo.remote(2))).toBe(2);
    const node = await new ray.Cluster().addNode({ resources: { absent: 1 } });
    expect(await ray.get(absent)).toBe(1);
    expect(node.resources).toMatchObject({ CPU: 1, absent: 1, [`node:${node.nodeId}`]: 1 });
  });

  test("a killed actor that waited has no claim any more", async () => {
    const waiting = keep(Holder.options({ numCpus: 8 }).remote());
    const ping = waiting.ping.remote();
    await ray.kill(waiting);
    await expect(ray.get(ping)).rejects.toMatchObject({ deathCause: { kind: "killed" } });
    await new ray.Cluster().addNode({ numCpus: 8 });
    expect(await free("CPU")).toBe(10);
  });

  test("a kill that allows restarts sends a waiting actor back into the line, as often as it may restart", async () => {
    const waiting = keep(Holder.options({ numCpus: 8, maxRestarts: 1 }).remote());
    const ping = waiting.ping.remote();
    await ray.kill(waiting, { noRestart: false });
    expect(await isReady(ping)).toBe(false);
    await ray.kill(waiting, { noRestart: false });
    await expect(ray.get(ping)).rejects.toMatchObject({ deathCause: { kind: "killed" } });
  });

  test("who waits for the same CPU does not wait for all tasks of another", async () => {
    const tasks = Array.from({ length: 400 }, () => spin.options({ numCpus: 2 }).remote(10));
    expect(await ray.get(Holder.options({ numCpus: 1 }).remote().ping.remote())).toBe("pong");
    const { pending } = await ray.wait(tasks, { numReturns: tasks.length, timeoutMs: 0 });
    expect(pending.length).toBeGreaterThan(0);
  });

  test("an actor sees the cluster, too", async () => {
    const actor = keep(Holder.options({ numCpus: 1.5 }).remote());
    expect(await ray.get(actor.cluster.remote())).toEqual({ nodes: 1, total: 2, available: 0.5 });
  });

  test("actors and tasks know what they hold", async () => {
    const [head] = await ray.nodes();
    const nothing = { nodeId: head?.nodeId, resources: {}, groupId: null, captures: false };
    expect(await ray.get(Holder.remote().place.remote())).toEqual(nothing);
    const greedy = keep(Holder.options({ numCpus: 2, resources: { tool: 0.5 } }).remote());
    const resources = { CPU: 2, tool: 0.5 };
    expect(await ray.get(greedy.place.remote())).toEqual({ ...nothing, resources });
    await ray.kill(greedy);
    const task = { ...nothing, resources: { CPU: 1 } };
    expect(await ray.get(placeOfTask.remote())).toEqual(task);
    const context = ray.getRuntimeContext();
    expect([context.getNodeId(), context.getAssignedResources()]).toEqual([head?.nodeId, {}]);
  });

  test("nodes are described", async () => {
    const [node] = await ray.nodes();
    expect(node).toMatchObject({
      alive: true,
      nodeName: node?.nodeId,
      resources: { CPU: 2, GPU: 1, memory: 1000, tool: 1, "node:__internal_head__": 1 },
      labels: { "ray.io/node-id": node?.nodeId },
      deathReason: undefined,
    });
  });
});

/** Each gives back what it had. */
describe("on one node that is as it was before each", () => {
  beforeAll(() => ray.init(oneNode));
  afterAll(ray.shutdown);

  test.each([
    [{ numGpus: 0.5 }, { CPU: 1, GPU: 0.5 }],
    [{ resources: { tool: 0.25 } }, { CPU: 1, tool: 0.75 }],
    [
      { numCpus: 0, resources: { tool: 1 } },
      { CPU: 2, tool: 0 },
    ],
    [{ memory: 400 }, { CPU: 2, memory: 600 }],
    [{ numCpus: 0.3 }, { CPU: 1.7 }],
  ])("an actor that asks for %j leaves %j", async (options, left) => {
    const actor = keep(Holder.options(options).remote());
    await ray.get(actor.ping.remote());
    expect(await ray.availableResources()).toMatchObject(left);
    await ray.kill(actor);
    expect(await ray.availableResources()).toEqual(await ray.clusterResources());
  });
});

describe("on one CPU", () => {
  beforeEach(() => ray.init({ numCpus: 1, prewarm: 0, ...together }));
  afterEach(ray.shutdown);

  test("tasks that wait for tasks do not block each other", async () => {
    const depths = sized({ gate: [2, 1], full: [4, 3] });
    expect(await ray.get(depths.map((depth) => nested.remote(depth)))).toEqual(depths);
    // Workers give back what they leased when their own task is over, each in its own time.
    await expect.poll(() => free("CPU"), { timeout: 60_000 }).toBe(1);
  });
});

describe("over several nodes", () => {
  const cluster = new ray.Cluster();
  let nodes: ray.NodeInfo[];

  beforeEach(async () => {
    await ray.init({ numCpus: 0, prewarm: 0, ...together });
    nodes = [];
    for (const zone of ["a", "b", "c"]) {
      nodes.push(await cluster.addNode({ numCpus: 2, labels: { zone, kind: "worker" } }));
    }
  });
  afterEach(ray.shutdown);

  const node = (index: number): ray.NodeInfo => nodes[index] as ray.NodeInfo;
  /** How many CPUs are taken on each of the three. */
  const taken = async (): Promise<number[]> => {
    const now = await ray.nodes();
    return nodes.map(({ nodeId }) => {
      const found = now.find((one) => one.nodeId === nodeId);
      return 2 - (found?.availableResources["CPU"] ?? NaN);
    });
  };
  const start = async (count: number, options: ray.ActorOptions) => {
    const actors = Array.from({ length: count }, () =>
      keep(Holder.options({ numCpus: 0.5, ...options }).remote()),
    );
    await ray.get(actors.map((actor) => actor.ping.remote()));
    return actors;
  };

  test("the default packs a node until half of it is used", async () => {
    await start(6, {});
    expect(await taken()).toEqual([1, 1, 1]);
    await start(1, {});
    expect(await taken()).toEqual([1.5, 1, 1]);
  });

  test.runIf(sharesMemory)("SPREAD goes around, for actors and for tasks", async () => {
    await start(3, { schedulingStrategy: "SPREAD" });
    expect(await taken()).toEqual([0.5, 0.5, 0.5]);
    const gate = keep(Gate.remote());
    const cell = new Int32Array(new SharedArrayBuffer(4));
    const task = passGate.options({ numCpus: 0.5, schedulingStrategy: "SPREAD" });
    const tasks = [1, 2, 3].map(() => task.remote(cell, gate));
    await ray.get(gate.arrived.remote(3));
    expect(await taken()).toEqual([1, 1, 1]);
    Atomics.store(cell, 0, 1);
    Atomics.notify(cell, 0);
    await ray.get(tasks);
  });

  test("NODE_AFFINITY goes to its node, waits while it is busy, and is refused when it is not there", async () => {
    const { nodeId } = node(1);
    const schedulingStrategy = { kind: "NODE_AFFINITY", nodeId } as const;
    const [first] = await start(4, { schedulingStrategy });
    expect(await taken()).toEqual([0, 2, 0]);
    const where = await ray.get(placeOfTask.options({ numCpus: 0, schedulingStrategy }).remote());
    expect(where.nodeId).toBe(nodeId);
    const fifth = Holder.options({ numCpus: 0.5, schedulingStrategy }).remote().ping.remote();
    expect(await isReady(fifth)).toBe(false);
    await ray.kill(first as NonNullable<typeof first>);
    expect(await ray.get(fifth)).toBe("pong");
    const unknown = { kind: "NODE_AFFINITY", nodeId: "nowhere" } as const;
    const actor = keep(Holder.options({ schedulingStrategy: unknown }).remote());
    await expect(ray.get(actor.ping.remote())).rejects.toBeInstanceOf(ray.ActorUnschedulableError);
    const task = echo.options({ schedulingStrategy: unknown }).remote(1);
    await expect(ray.get(task)).rejects.toBeInstanceOf(ray.TaskUnschedulableError);
    const soft = echo.options({ schedulingStrategy: { ...unknown, soft: true } }).remote(1);
    expect(await ray.get(soft)).toBe(1);
  });

  test("NODE_LABEL and labelSelector choose by labels", async () => {
    await start(1, { schedulingStrategy: { kind: "NODE_LABEL", hard: { zone: { in: ["b"] } } } });
    expect(await taken()).toEqual([0, 0.5, 0]);
    await start(1, { schedulingStrategy: { kind: "NODE_LABEL", soft: { zone: { in: ["c"] } } } });
    expect(await taken()).toEqual([0, 0.5, 0.5]);
    await start(2, { labelSelector: { zone: "!in(a, b)", kind: "worker" } });
    expect(await taken()).toEqual([0, 0.5, 1.5]);
    await start(1, {
      labelSelector: { zone: "x" },
      fallbackStrategy: [{ labelSelector: { zone: "y" } }, { labelSelector: { zone: "b" } }],
    });
    expect(await taken()).toEqual([0, 1, 1.5]);
    const nobody = echo.options({ labelSelector: { kind: "!worker" }, numCpus: 1 }).remote(1);
    expect(await isReady(nobody)).toBe(false);
    await cluster.addNode({ labels: { kind: "other" } });
    expect(await ray.get(nobody)).toBe(1);
  });

  test("a node that goes takes its actors with it: they restart elsewhere, if they may", async () => {
    const schedulingStrategy = {
      kind: "NODE_AFFINITY",
      nodeId: node(0).nodeId,
      soft: true,
    } as const;
    const [mortal] = await start(1, { schedulingStrategy });
    const [restarts] = await start(1, { schedulingStrategy, maxRestarts: 1 });
    await cluster.removeNode(node(0));
    await expect(
      ray.get((mortal as NonNullable<typeof mortal>).ping.remote()),
    ).rejects.toMatchObject({
      name: "ActorDiedError",
      deathCause: { kind: "node-died" },
    });
    const again = restarts as NonNullable<typeof restarts>;
    expect(await ray.get(again.calls.options({ maxTaskRetries: -1 }).remote())).toBe(0);
    expect((await taken()).slice(1)).toEqual([0.5, 0]);
    const gone = (await ray.nodes()).find(({ nodeId }) => nodeId === node(0).nodeId);
    expect(gone).toMatchObject({ alive: false, resources: {} });
    expect(gone?.deathReason).toContain("was removed");
    expect((await ray.clusterResources())["CPU"]).toBe(4);
  });

  test.runIf(sharesMemory)(
    "a task on a node that goes is tried again elsewhere, or fails with NodeDiedError",
    async () => {
      const gate = keep(Gate.remote());
      const cell = new Int32Array(new SharedArrayBuffer(4));
      const schedulingStrategy = {
        kind: "NODE_AFFINITY",
        nodeId: node(2).nodeId,
        soft: true,
      } as const;
      const task = passGate.options({ numCpus: 1, schedulingStrategy });
      const retried = task.remote(cell, gate);
      const lost = task.options({ maxRetries: 0 }).remote(cell, gate);
      await ray.get(gate.arrived.remote(2));
      await cluster.removeNode(node(2));
      await expect(ray.get(lost)).rejects.toBeInstanceOf(ray.NodeDiedError);
      await ray.get(gate.arrived.remote(3));
      Atomics.store(cell, 0, 1);
      Atomics.notify(cell, 0);
      expect(await ray.get(retried)).toBe("passed");
    },
  );

  test("only a living node that was added can be removed", async () => {
    await cluster.removeNode(node(0));
    await expect(cluster.removeNode(node(0))).rejects.toMatchObject({ option: "node" });
    await expect(cluster.removeNode({ nodeId: "nowhere" })).rejects.toThrow('"nowhere"');
    const [head] = await ray.nodes();
    await expect(cluster.removeNode(head as ray.NodeInfo)).rejects.toMatchObject({
      option: "node",
    });
    await expect(cluster.removeNode(undefined as never)).rejects.toMatchObject({ option: "node" });
  });
});

describe("bad input", () => {
  const affinity = { kind: "NODE_AFFINITY", nodeId: "n" } as const;
  test.each<[string, object]>([
    ["numCpus", { numCpus: -1 }],
    ["numCpus", { numCpus: 0.00001 }],
    ["numCpus", { numCpus: Infinity }],
    ["numGpus", { numGpus: "1" }],
    ["numGpus", { numGpus: 1.5 }],
    ["memory", { memory: 0.5 }],
    ["resources", { resources: { CPU: 1 } }],
    ["resources", { resources: { GPU: 1 } }],
    ["resources", { resources: { memory: 1 } }],
    ["resources", { resources: { tool: -1 } }],
    ["resources", { resources: { tool: 0.00001 } }],
    ["resources", { resources: { "": 1 } }],
    ["resources", { resources: [1] }],
    ["schedulingStrategy", { schedulingStrategy: "PACK" }],
    ["schedulingStrategy", { schedulingStrategy: { kind: "NODE_AFFINITY" } }],
    ["schedulingStrategy", { schedulingStrategy: { ...affinity, hard: true } }],
    [
      "schedulingStrategy",
      { schedulingStrategy: { kind: "NODE_LABEL", hard: { a: { is: "b" } } } },
    ],
    ["schedulingStrategy", { schedulingStrategy: { kind: "NODE_LABEL", hard: { a: { in: [] } } } }],
    ["labelSelector", { labelSelector: { zone: 1 } }],
    ["labelSelector", { labelSelector: { zone: "in()" } }],
    ["labelSelector", { labelSelector: { zone: "not in(a)" } }],
    ["labelSelector", { labelSelector: { zone: "a" }, schedulingStrategy: affinity }],
    ["fallbackStrategy", { fallbackStrategy: [{ labelSelector: { zone: "a" } }] }],
    ["fallbackStrategy", { labelSelector: { a: "b" }, fallbackStrategy: [{ zone: "a" }] }],
  ])("%s: %j", (option, options) => {
    expect(() => Holder.options(options)).toThrow(expect.objectContaining({ option }));
    expect(() => echo.options(options)).toThrow(expect.objectContaining({ option }));
  });

  test.each<[string, object]>([
    ["numCpus", { numCpus: 0.00001 }],
    ["resources", { resources: { CPU: 1 } }],
    ["labels", { labels: { zone: "in(a)" } }],
    ["memory", { memory: -1 }],
    ["nodeName", { nodeName: "" }],
  ])("addNode and init, %s: %j", async (option, options) => {
    await expect(new ray.Cluster().addNode(options)).rejects.toMatchObject({ option });
    await expect(ray.init(options)).rejects.toMatchObject({ option });
  });
});
