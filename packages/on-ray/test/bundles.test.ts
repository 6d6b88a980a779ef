/** Bundles that a session reserves in advance, on a Ray of the tests' own. */
import * as ray from "@rayling/core";
import { enableOnRay } from "@rayling/on-ray";
import { expect, onTestFinished, test, vi } from "vitest";
import { Counter, double, nodeOf, outer } from "../../../test/fixtures/on-cluster.ts";
import { FakeRay } from "./fake-ray.ts";
import { inFull } from "../../../test/fixtures/suite.ts";

enableOnRay();

interface Wanted {
  readonly nodes: readonly Readonly<Record<string, number>>[];
  readonly bundles: readonly Readonly<Record<string, number>>[];
}

async function session({ nodes, bundles }: Wanted): Promise<FakeRay> {
  vi.stubEnv("RAY_AUTH_TOKEN_PATH", "/none");
  const fake = await FakeRay.start(...nodes);
  onTestFinished(async () => {
    await ray.shutdown();
    await fake.close();
    vi.unstubAllEnvs();
  });
  await ray.init({ address: `ray+${fake.url}`, bundles });
  return fake;
}

const held = Counter.options({ numCpus: 1 });

test("actors and tasks that fit run in the bundles, which are given back at the end", async () => {
  const fake = await session({
    nodes: [{ CPU: 2 }, { CPU: 2 }],
    bundles: [{ CPU: 2 }, { CPU: 2 }],
  });
  expect(fake.groups.size).toBe(1);
  const counter = held.remote();
  expect(await ray.get(counter.add.remote(1))).toBe(1);
  const tasks = Array.from({ length: 40 }, (_, index) => double.remote(index));
  expect((await ray.get(tasks)).at(-1)).toBe(78);
  expect(await ray.get(outer.remote(3))).toBe(6);
  // Nothing else is free.
  expect(fake.most).toEqual({});
  const [group] = Object.values(await ray.placementGroupTable());
  expect(group).toMatchObject({ state: "CREATED", bundlesToNodeId: ["ray0", "ray1"] });
  expect((await ray.availableResources())["CPU"]).toBe(0);
  await ray.shutdown();
  expect(fake.groups.size).toBe(0);
});

test("what fits waits until all bundles are reserved; what fits none does not", async () => {
  const fake = await session({ nodes: [{ CPU: 4 }], bundles: [{ CPU: 1 }, { CPU: 1 }] });
  const big = Counter.options({ numCpus: 2 }).remote();
  const counter = held.remote();
  const call = counter.node.remote();
  expect(await ray.get(big.add.remote(1))).toBe(1);
  expect(fake.made).toBe(1);
  const [group] = Object.values(await ray.placementGroupTable());
  expect(group?.state).toBe("PENDING");
  const actors = await ray.state.listActors({ detail: true });
  expect(actors.flatMap(({ pendingReason }) => pendingReason ?? [])).toEqual([
    "waits for the bundles of its session, which the cluster has to reserve",
  ]);
  fake.addNode({ CPU: 1 });
  expect(["ray0", "ray1"]).toContain(await ray.get(call));
  expect(fake.made).toBe(1);
});

test("NODE_AFFINITY, SPREAD and labels choose among the bundles", async () => {
  const fake = await session({
    nodes: [{ CPU: 2 }, { CPU: 2 }],
    bundles: [{ CPU: 2 }, { CPU: 2 }],
  });
  const there = { kind: "NODE_AFFINITY", nodeId: "ray1" } as const;
  expect(await ray.get(nodeOf.options({ schedulingStrategy: there }).remote())).toBe("ray1");
  const labelSelector = { "ray.io/node-id": "ray0" };
  expect(await ray.get(nodeOf.options({ labelSelector }).remote())).toBe("ray0");
  const spread = held.options({ schedulingStrategy: "SPREAD" });
  const counters = [spread.remote(), spread.remote()];
  const nodes = await ray.get(counters.map((counter) => counter.node.remote()));
  expect(nodes.toSorted()).toEqual(["ray0", "ray1"]);
  expect(fake.most).toEqual({});
  const gone = { kind: "NODE_AFFINITY", nodeId: "ray9" } as const;
  const refused = ray.get(nodeOf.options({ schedulingStrategy: gone }).remote());
  await expect(refused).rejects.toThrow(ray.TaskUnschedulableError);
});

test("what finds the bundles full for a moment uses the rest of the cluster", async () => {
  const fake = await session({ nodes: [{ CPU: 3 }], bundles: [{ CPU: 1 }] });
  const counters = Array.from({ length: 3 }, () => held.remote());
  expect(await ray.get(counters.map((counter) => counter.add.remote(1)))).toEqual([1, 1, 1]);
  expect(fake.made).toBe(2);
  const late = held.remote();
  const call = late.add.remote(2);
  await expect.poll(() => fake.made).toBe(3);
  // The bundle is free first.
  await ray.kill(counters[0]!);
  expect(await ray.get(call)).toBe(2);
  await expect.poll(() => fake.reservations.size).toBe(2);
});

test("a request that is withdrawn while it waits leaves nothing", async () => {
  const fake = await session({ nodes: [{ CPU: 1 }], bundles: [{ CPU: 1 }] });
  const first = held.remote();
  expect(await ray.get(first.add.remote(1))).toBe(1);
  const second = held.remote();
  await expect.poll(() => fake.reservations.size).toBe(1);
  await ray.kill(second);
  await expect.poll(() => fake.reservations.size).toBe(0);
  await ray.kill(first);
  expect(await ray.get(nodeOf.remote())).toBe("ray0");
});

test.runIf(
  inFull("on-ray.test.ts has a placement group that moves with its actors, and bundles are one"),
)("a bundle whose node is gone is reserved again, and its actors move there", async () => {
  const fake = await session({
    nodes: [{ CPU: 1 }, { CPU: 1 }],
    bundles: [{ CPU: 1 }, { CPU: 1 }],
  });
  const lasting = held.options({ maxRestarts: -1, maxTaskRetries: -1 });
  const counters = [lasting.remote(), lasting.remote()];
  const nodes = await ray.get(counters.map((counter) => counter.node.remote()));
  const index = nodes.indexOf("ray1");
  await fake.loseNode(fake.nodes[1]!);
  const call = counters[index]!.node.remote();
  await expect
    .poll(async () => Object.values(await ray.placementGroupTable())[0]?.state)
    .toBe("RESCHEDULING");
  fake.addNode({ CPU: 1 });
  expect(await ray.get(call)).toBe("ray2");
});

test("a bundle that no node can hold is reported, and the end of the session ends the wait", async () => {
  const warned = new Promise<string>((resolve) => {
    process.once("warning", ({ message }) => resolve(message));
  });
  await session({ nodes: [{ CPU: 1 }], bundles: [{ CPU: 64 }] });
  expect(await warned).toMatch(/the bundle \{ CPU: 64 \} of this session waits until a node/);
  const call = ray.get(nodeOf.remote());
  const ended = expect(call).rejects.toThrow(ray.SessionEndedError);
  await ray.shutdown();
  await ended;
});

test.for([
  [{ bundles: [{ CPU: 1 }] }, /option bundles needs a Ray cluster to reserve them on/],
  [{ address: "auto", bundles: [] }, /option bundles must be a list of bundles/],
  [{ address: "auto", bundles: { CPU: 1 } }, /option bundles must be a list of bundles/],
  [{ address: "auto", bundles: [{ CPU: 1 }, {}] }, /has bundle 1, which must not be empty/],
  [{ address: "auto", bundles: [{ CPU: -1 }] }, /has bundle 0, which has CPU: -1/],
  [{ address: "auto", bundles: [{ GPU: 1 }] }, /has bundle 0, which has GPU/],
] as const)("%o is refused", async ([options, message]) => {
  onTestFinished(() => ray.shutdown());
  const refused = ray.init(options as ray.InitOptions);
  await expect(refused).rejects.toThrow(ray.InvalidOptionError);
  await expect(refused).rejects.toThrow(message);
});
