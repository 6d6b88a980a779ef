/**
 * Ray's own autoscaler, which starts nodes for what a session waits for. In the full suite alone,
 * because it asks PyPI for Ray, and starts a cluster.
 */
import * as ray from "@rayling/core";
import { enableOnRay } from "@rayling/on-ray";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Counter } from "../../../../test/fixtures/on-cluster.ts";
import {
  orSkip,
  type PackagedPython,
  pythonWith,
} from "../../../rayling/test/python/python-venv.ts";
import { tookSince } from "./figures.ts";
import { RealCluster } from "./cluster.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 900_000 });

enableOnRay();

let found: PackagedPython;
let cluster: RealCluster | undefined;

beforeAll(async () => {
  found = await pythonWith(["ray[default]", "numpy", "pytest"]);
  if ("problem" in found) return;
  const resources = { CPU: 2, burst: 1, object_store_memory: 80 * 1024 * 1024 };
  const burst = { resources, node_config: {}, min_workers: 0, max_workers: 2 };
  cluster = await RealCluster.start(found.python, {
    nodes: [{ num_cpus: 1 }],
    nodeTypes: { "ray.worker.burst": burst },
  });
  vi.stubEnv("RAY_AUTH_TOKEN_PATH", cluster.tokenPath);
});

afterAll(() => cluster?.close());

test("a pending reservation brings a node, which is used", async ({ skip }) => {
  orSkip(found, skip);
  const running = cluster!;
  await ray.init({ address: `ray+${running.url}` });
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
