import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { keep } from "../fixtures/keep.ts";
import { sharesMemory } from "../fixtures/isolation.ts";
import {
  echo,
  Gate,
  groupOfTask,
  Holder,
  passGate,
  placeOfTask,
  Planner,
} from "../fixtures/scheduling.ts";

const cluster = new ray.Cluster();
let nodes: ray.NodeInfo[];

beforeEach(async () => {
  await ray.init({ numCpus: 0, prewarm: 0 });
  nodes = [];
  for (const zone of ["a", "b", "c"]) {
    nodes.push(await cluster.addNode({ numCpus: 4, labels: { zone } }));
  }
});
afterEach(() => ray.shutdown());

const inside = (
  placementGroup: ray.PlacementGroup,
  more: { readonly bundleIndex?: number; readonly captureChildTasks?: boolean } = {},
) => ({ schedulingStrategy: { kind: "PLACEMENT_GROUP", placementGroup, ...more } }) as const;
const free = async (): Promise<number | undefined> => (await ray.availableResources())["CPU"];
/** How many CPUs are taken on each of the three nodes. */
const taken = async (): Promise<number[]> => {
  const now = await ray.nodes();
  return nodes.map(({ nodeId }) => {
    const found = now.find((one) => one.nodeId === nodeId);
    return 4 - (found?.availableResources["CPU"] ?? NaN);
  });
};
const isReady = async (ref: ray.ObjectRef): Promise<boolean> =>
  (await ray.wait([ref], { timeoutMs: 200 })).ready.length === 1;
const waitsFor = async (group: ray.PlacementGroup): Promise<string | undefined> =>
  (await ray.placementGroupTable(group)).waitsFor;

describe("bundles", () => {
  const two = [{ CPU: 2 }, { CPU: 2 }];
  test.each<[ray.GroupStrategy, readonly ray.Amounts[], readonly number[]]>([
    ["PACK", two, [4, 0, 0]],
    ["PACK", [{ CPU: 3 }, { CPU: 3 }, { CPU: 1 }], [4, 3, 0]],
    ["STRICT_PACK", two, [4, 0, 0]],
    ["SPREAD", two, [2, 2, 0]],
    ["SPREAD", [...two, ...two], [4, 2, 2]],
    ["STRICT_SPREAD", [...two, { CPU: 1 }], [2, 2, 1]],
  ])("of %s: %j take %j", async (strategy, bundles, expected) => {
    const group = ray.placementGroup(bundles, { strategy });
    expect((await ray.get(group.ready())).id).toBe(group.id);
    expect(await group.wait(0)).toBe(true);
    expect(await taken()).toEqual(expected);
    const row = await ray.placementGroupTable(group);
    expect(row).toMatchObject({ strategy, state: "CREATED", bundles, waitsFor: undefined });
    await ray.removePlacementGroup(group);
    await ray.removePlacementGroup(group);
    expect(await free()).toBe(12);
    expect((await ray.placementGroupTable())[group.id]?.state).toBe("REMOVED");
  });

  test.each<[ray.GroupStrategy, readonly ray.Amounts[]]>([
    ["STRICT_PACK", [{ CPU: 3 }, { CPU: 3 }]],
    ["STRICT_SPREAD", [{ CPU: 1 }, { CPU: 1 }, { CPU: 1 }, { CPU: 1 }]],
    ["PACK", [{ CPU: 3 }, { CPU: 3 }, { CPU: 3 }, { CPU: 3 }]],
  ])("of %s that do not fit all wait, and none is taken: %j", async (strategy, bundles) => {
    const group = ray.placementGroup(bundles, { strategy });
    expect(await group.wait(50)).toBe(false);
    expect(await free()).toBe(12);
    expect(await waitsFor(group)).toContain("could not hold");
    await cluster.addNode({ numCpus: 8 });
    expect(await group.wait()).toBe(true);
  });

  test("that have room only later are reserved then", async () => {
    const first = ray.placementGroup([{ CPU: 4 }, { CPU: 4 }, { CPU: 4 }]);
    const second = ray.placementGroup([{ CPU: 4 }]);
    expect(await second.wait(50)).toBe(false);
    expect(await waitsFor(second)).toContain("no room now");
    await ray.removePlacementGroup(first);
    expect(await second.wait()).toBe(true);
  });

  test("may ask for labels of their nodes", async () => {
    const group = ray.placementGroup([{ CPU: 1 }, { CPU: 2 }], {
      bundleLabelSelector: [{ zone: "!in(a,b)" }, { zone: "b" }],
    });
    expect(await group.wait()).toBe(true);
    expect(await taken()).toEqual([0, 2, 1]);
  });

  test("belong to groups that have names", async () => {
    const group = ray.placementGroup([{ CPU: 1 }], { name: "gang" });
    expect((await ray.getPlacementGroup("gang")).id).toBe(group.id);
    expect(() => ray.placementGroup([{ CPU: 1 }], { name: "gang" })).toThrow("exists already");
    await ray.removePlacementGroup(group);
    await expect(ray.getPlacementGroup("gang")).rejects.toMatchObject({ option: "name" });
    expect(ray.placementGroup([{ CPU: 1 }], { name: "gang" }).bundleSpecs).toEqual([{ CPU: 1 }]);
  });
});

describe("actors and tasks in a group", () => {
  test("run in its bundles, and wait for them rather than go elsewhere", async () => {
    const group = ray.placementGroup([{ CPU: 2 }, { CPU: 1 }], { strategy: "STRICT_SPREAD" });
    const inOne = keep(
      Holder.options({ numCpus: 1, ...inside(group, { bundleIndex: 1 }) }).remote(),
    );
    expect(await ray.get(inOne.ping.remote())).toBe("pong");
    const next = keep(
      Holder.options({ numCpus: 1, ...inside(group, { bundleIndex: 1 }) }).remote(),
    );
    expect(await isReady(next.ping.remote())).toBe(false);
    const any = [1, 2].map(() => keep(Holder.options({ numCpus: 1, ...inside(group) }).remote()));
    expect(await ray.get(any.map((actor) => actor.ping.remote()))).toEqual(["pong", "pong"]);
    expect(await free()).toBe(9);
    await ray.kill(inOne);
    expect(await ray.get(next.ping.remote())).toBe("pong");
    const task = echo.options({ numCpus: 1, ...inside(group, { bundleIndex: 0 }) }).remote(5);
    expect(await isReady(task)).toBe(false);
    await ray.kill(any[0] as NonNullable<(typeof any)[0]>);
    expect(await ray.get(task)).toBe(5);
  });

  test("asked for before it is placed, run when it is", async () => {
    const first = ray.placementGroup([{ CPU: 4 }, { CPU: 4 }, { CPU: 4 }]);
    const group = ray.placementGroup([{ CPU: 1 }]);
    const task = echo.options(inside(group)).remote("late");
    expect(await isReady(task)).toBe(false);
    await ray.removePlacementGroup(first);
    expect(await ray.get(task)).toBe("late");
  });

  test.runIf(sharesMemory)("end with it", async () => {
    const group = ray.placementGroup([{ CPU: 3 }]);
    const gate = keep(Gate.remote());
    const cell = new Int32Array(new SharedArrayBuffer(4));
    const actor = keep(Holder.options({ numCpus: 1, maxRestarts: -1, ...inside(group) }).remote());
    await ray.get(actor.ping.remote());
    const running = passGate.options({ numCpus: 2, ...inside(group) }).remote(cell, gate);
    await ray.get(gate.arrived.remote(1));
    const waitingTask = echo.options({ numCpus: 2, ...inside(group) }).remote(1);
    const waitingActor = keep(Holder.options({ numCpus: 2, ...inside(group) }).remote());
    const waitingCall = waitingActor.ping.remote();
    await ray.removePlacementGroup(group);
    for (const task of [running, waitingTask, echo.options(inside(group)).remote(1)]) {
      await expect(ray.get(task)).rejects.toBeInstanceOf(ray.TaskPlacementGroupRemoved);
    }
    for (const call of [actor.ping.remote(), waitingCall]) {
      await expect(ray.get(call)).rejects.toBeInstanceOf(ray.ActorPlacementGroupRemoved);
    }
    await expect(ray.get(group.ready())).rejects.toBeInstanceOf(ray.TaskPlacementGroupRemoved);
    await expect(group.wait()).rejects.toBeInstanceOf(ray.TaskPlacementGroupRemoved);
    expect(await free()).toBe(12);
  });

  test("know their group, which their children follow if they are to", async () => {
    const group = ray.placementGroup([{ CPU: 4 }]);
    const captured = keep(
      Planner.options({
        numCpus: 1,
        ...inside(group, { captureChildTasks: true }),
      }).remote(),
    );
    expect((await ray.get(captured.current.remote()))?.id).toBe(group.id);
    expect(
      await ray.get(placeOfTask.options({ numCpus: 3, ...inside(group) }).remote()),
    ).toMatchObject({ groupId: group.id, captures: false, resources: { CPU: 3 } });
    expect((await ray.get(captured.childTask.remote()))?.id).toBe(group.id);
    const child = keep(await ray.get(captured.startChild.remote()));
    expect(await free()).toBe(8);
    await ray.kill(child as ray.ActorHandle<object>);
    const labelSelector = { "ray.io/node-id": "!none" };
    await expect(ray.get(captured.childTask.remote({ labelSelector }))).rejects.toMatchObject({
      code: "INVALID_OPTION",
      option: "labelSelector",
    });
    const outside = { labelSelector, schedulingStrategy: "DEFAULT" } as const;
    expect(await ray.get(captured.childTask.remote(outside))).toBe(undefined);
    const loose = keep(Planner.options({ numCpus: 1, ...inside(group) }).remote());
    expect(await ray.get(loose.childTask.remote())).toBe(undefined);
    keep(await ray.get(loose.startChild.remote()));
    expect(await free()).toBe(7);
    expect((await ray.get(groupOfTask.options(inside(group)).remote()))?.id).toBe(group.id);
    expect(await ray.get(groupOfTask.remote())).toBe(undefined);
    expect(ray.getCurrentPlacementGroup()).toBe(undefined);
  });

  test("may make groups, and take them as arguments", async () => {
    const planner = keep(Planner.options({ numCpus: 0 }).remote());
    const group = await ray.get(planner.make.remote([{ CPU: 2 }], "made in an actor"));
    expect(group).toBeInstanceOf(ray.PlacementGroup);
    expect(group.bundleSpecs).toEqual([{ CPU: 2 }]);
    expect((await ray.getPlacementGroup("made in an actor")).id).toBe(group.id);
    const other = keep(Planner.options({ numCpus: 0 }).remote());
    keep(await ray.get(other.startIn.remote(group)));
    expect(await free()).toBe(10);
    await expect(ray.get(other.make.remote([{ CPU: 1 }], "made in an actor"))).rejects.toThrow(
      "exists already",
    );
  });

  test("take the groups that they made with them", async () => {
    const planner = keep(Planner.options({ numCpus: 0, maxRestarts: 1 }).remote());
    const group = await ray.get(planner.make.remote([{ CPU: 2 }]));
    const actor = keep(Holder.options({ numCpus: 1, ...inside(group) }).remote());
    await ray.get(actor.ping.remote());
    await ray.kill(planner, { noRestart: false });
    expect(await ray.get(actor.ping.options({ maxTaskRetries: -1 }).remote())).toBe("pong");
    await ray.kill(planner);
    await expect.poll(() => free(), { timeout: 60_000 }).toBe(12);
    await expect(ray.get(actor.ping.remote())).rejects.toBeInstanceOf(
      ray.ActorPlacementGroupRemoved,
    );
    expect(await free()).toBe(12);
  });
});

describe("a node that goes", () => {
  test("takes its bundles along: they are reserved elsewhere, and restarted actors find them", async () => {
    const group = ray.placementGroup([{ CPU: 1 }, { CPU: 1 }], { strategy: "STRICT_SPREAD" });
    expect(await group.wait()).toBe(true);
    const [stays, goes] = ([0, 1] as const).map((bundleIndex) =>
      keep(
        Holder.options({ numCpus: 1, maxRestarts: 1, ...inside(group, { bundleIndex }) }).remote(),
      ),
    );
    if (stays === undefined || goes === undefined) throw new Error("two were made");
    await ray.get([stays.ping.remote(), goes.calls.remote()]);
    const before = await ray.placementGroupTable(group);
    const lost = before.bundlesToNodeId[1] as string;
    await cluster.removeNode({ nodeId: lost });
    expect(await ray.get(goes.calls.options({ maxTaskRetries: -1 }).remote())).toBe(0);
    expect(await ray.get(stays.calls.remote())).toBe(1);
    const after = await ray.placementGroupTable(group);
    expect(after.state).toBe("CREATED");
    expect(after.bundlesToNodeId[0]).toBe(before.bundlesToNodeId[0]);
    expect([undefined, ...before.bundlesToNodeId]).not.toContain(after.bundlesToNodeId[1]);
  });

  test("leaves a group waiting that has no other place", async () => {
    const group = ray.placementGroup([{ CPU: 4 }, { CPU: 4 }, { CPU: 4 }]);
    expect(await group.wait()).toBe(true);
    await cluster.removeNode(nodes[2] as ray.NodeInfo);
    expect(await ray.placementGroupTable(group)).toMatchObject({ state: "RESCHEDULING" });
    expect(await group.wait(50)).toBe(false);
    const call = keep(
      Holder.options({ numCpus: 1, ...inside(group, { bundleIndex: 2 }) }).remote(),
    );
    expect(await isReady(call.ping.remote())).toBe(false);
    await cluster.addNode({ numCpus: 4 });
    expect(await group.wait()).toBe(true);
    expect(await ray.get(call.ping.remote())).toBe("pong");
  });
});

describe("bad input", () => {
  test.each<[string, unknown, object]>([
    ["bundles", [], {}],
    ["bundles", { CPU: 1 }, {}],
    ["bundles", [{}], {}],
    ["bundles", [{ CPU: 0 }], {}],
    ["bundles", [{ CPU: 1 }, { CPU: -1 }], {}],
    ["bundles", [{ CPU: 0.00001 }], {}],
    ["bundles", [{ memory: 0.5 }], {}],
    ["bundles", [{ tool: "1" }], {}],
    ["strategy", [{ CPU: 1 }], { strategy: "DIAGONAL" }],
    ["lifetime", [{ CPU: 1 }], { lifetime: "short" }],
    ["name", [{ CPU: 1 }], { name: "" }],
    ["bundleLabelSelector", [{ CPU: 1 }], { bundleLabelSelector: [] }],
    ["bundleLabelSelector", [{ CPU: 1 }], { bundleLabelSelector: [{ zone: 1 }] }],
    ["bundle", [{ CPU: 1 }], { bundle: 1 }],
  ])("%s: %j %j", (option, bundles, options) => {
    const make = (): unknown => ray.placementGroup(bundles as never, options);
    expect(make).toThrow(expect.objectContaining({ option }));
  });

  test("a strategy that names no bundle of the group, or what fits into none", async () => {
    const group = ray.placementGroup([{ CPU: 1 }, { CPU: 2, tool: 1 }]);
    const wrong = (options: ray.ActorOptions): void =>
      expect(() => Holder.options(options)).toThrow(
        expect.objectContaining({ option: "schedulingStrategy" }),
      );
    wrong(inside(group, { bundleIndex: 2 }));
    wrong(inside(group, { bundleIndex: -2 }));
    wrong({ numCpus: 3, ...inside(group) });
    wrong({ numCpus: 2, ...inside(group, { bundleIndex: 0 }) });
    wrong({ numGpus: 1, ...inside(group) });
    wrong(inside(group.id as never));
    expect(() => Holder.options(inside(ray.placementGroup([{ tool: 1 }])))).toThrow(
      "an actor that asks for nothing needs a CPU to start",
    );
    await expect(ray.removePlacementGroup(group.id as never)).rejects.toMatchObject({
      option: "group",
    });
    await expect(group.wait(-1)).rejects.toMatchObject({ option: "timeoutMs" });
  });
});
