/**
 * Ray's own autoscaler, which starts nodes for what a session waits for. In the full suite alone,
 * because it asks PyPI for Ray, and starts a cluster.
 */
import * as ray from "@rayling/core";
import { expect, test, vi } from "vitest";
import { Counter } from "../../../../test/fixtures/on-cluster.ts";
import { tookSince } from "./figures.ts";
import { oneCluster } from "./one-cluster.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 900_000 });

const burst = { CPU: 2, burst: 1, object_store_memory: 80 * 1024 * 1024 };
const { session } = oneCluster({
  nodes: [{ num_cpus: 1 }],
  nodeTypes: {
    "ray.worker.burst": { resources: burst, node_config: {}, min_workers: 0, max_workers: 2 },
  },
});

test("a pending reservation brings a node, which is used", async ({ skip }) => {
  const running = await session(skip);
  expect((await ray.nodes()).length).toBe(1);
  const startMs = performance.now();
  const counter = Counter.options({ numCpus: 1, resources: { burst: 1 } }).remote();
  expect(await ray.get(counter.add.remote(1))).toBe(1);
  tookSince(startMs, "Ray's autoscaler brings a node for a pending reservation: used after");
  const nodes = await ray.nodes();
  expect(nodes.map(({ alive }) => alive)).toEqual([true, true]);
  expect(await ray.get(counter.node.remote())).toBe(
    nodes.find(({ resources }) => resources["burst"] === 1)?.nodeId,
  );
  await ray.shutdown();
  // The autoscaler decides about the node, which nobody uses any more.
  await expect.poll(() => running.processes()).toEqual([]);
  await expect.poll(() => running.do("groups")).toEqual([]);
});
