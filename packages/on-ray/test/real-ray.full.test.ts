/**
 * Sessions on a real Ray of three nodes. In the full suite alone, because it asks PyPI for Ray, and
 * starts clusters.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import * as ray from "@rayling/core";
import { enableOnRay } from "@rayling/on-ray";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { Counter, double, nodeOf, outer } from "../../../test/fixtures/on-cluster.ts";
import { workspace } from "../../rayling/test/command.ts";
import { runProgram } from "../../rayling/test/python/python-commands.ts";
import { orSkip, type PackagedPython, pythonWith } from "../../rayling/test/python/python-venv.ts";
import { parentOf, RealCluster } from "./real-cluster.ts";

vi.setConfig({ testTimeout: 150_000, hookTimeout: 900_000 });

enableOnRay();

let found: PackagedPython;
let cluster: RealCluster | undefined;

beforeAll(async () => {
  found = await pythonWith(["ray[default]", "numpy", "pytest"]);
  if ("problem" in found) return;
  const zoneB = { num_cpus: 2, labels: { zone: "b" }, resources: { license: 2 } };
  cluster = await RealCluster.start(found.python, [{ num_cpus: 2 }, zoneB, { num_cpus: 2 }]);
});

afterAll(() => cluster?.close());

afterEach(async () => {
  await ray.shutdown();
  if (cluster === undefined) return;
  // Nothing of a session is left when it has ended.
  await expect.poll(() => cluster?.processes()).toEqual([]);
  await expect.poll(() => cluster?.do("groups")).toEqual([]);
});

/** The cluster, with a session on it. */
async function session(skip: (reason: string) => never): Promise<RealCluster> {
  const running = there(skip);
  await ray.init({ address: `ray+${running.url}` });
  return running;
}

function there(skip: (reason: string) => never): RealCluster {
  orSkip(found, skip);
  if (cluster === undefined) throw new Error("there is no cluster");
  return cluster;
}

const cpusFree = async (): Promise<number> => (await ray.availableResources())["CPU"] ?? 0;

test("actors, tasks, labels and custom resources, and what Ray shows of them", async ({ skip }) => {
  await session(skip);
  const nodes = await ray.nodes();
  expect(nodes.map(({ alive, resources }) => [alive, resources["CPU"]])).toEqual([
    [true, 2],
    [true, 2],
    [true, 2],
  ]);
  const labelled = nodes.find(({ labels }) => labels["zone"] === "b");
  const licensed = Counter.options({ numCpus: 1, resources: { license: 1 } }).remote();
  expect(await ray.get(licensed.node.remote())).toBe(labelled?.nodeId);
  expect(await ray.get(licensed.add.remote(2))).toBe(2);
  expect(await ray.get(nodeOf.options({ labelSelector: { zone: "b" } }).remote())).toBe(
    labelled?.nodeId,
  );
  expect(await ray.get([1, 2, 3].map((one) => double.remote(one)))).toEqual([2, 4, 6]);
  await expect.poll(async () => (await ray.availableResources())["license"]).toBe(1);
  await expect.poll(cpusFree).toBe(5);
});

test("Python holds four of six CPUs: TypeScript gets two, Ray shows what waits, and all goes on", async ({
  skip,
}) => {
  const running = await session(skip);
  await running.do("hold", 4);
  const counters = Array.from({ length: 4 }, () => Counter.options({ numCpus: 1 }).remote());
  const calls = counters.map((counter) => counter.add.remote(1));
  await ray.wait(calls, { numReturns: 2 });
  await expect.poll(cpusFree).toBe(0);
  await expect
    .poll(async () => (await running.do<string[]>("groups")).toSorted().join())
    .toBe("CREATED,CREATED,PENDING,PENDING");
  await expect.poll(() => running.do<string>("status")).toMatch(/\{'CPU': 1\.0\} \* 1.*pending/i);
  await running.do("free", 2);
  expect(await ray.get(calls)).toEqual([1, 1, 1, 1]);
  await running.do("free", 2);
});

test("a placement group, SPREAD, NODE_AFFINITY and tasks that wait for their own", async ({
  skip,
}) => {
  await session(skip);
  const bundles = [{ CPU: 1 }, { CPU: 1 }, { CPU: 1 }];
  const placementGroup = ray.placementGroup(bundles, { strategy: "STRICT_SPREAD" });
  const places = bundles.map((_, bundleIndex) => {
    const schedulingStrategy = { kind: "PLACEMENT_GROUP", placementGroup, bundleIndex } as const;
    return nodeOf.options({ schedulingStrategy }).remote();
  });
  const nodes = (await ray.nodes()).map(({ nodeId }) => nodeId);
  expect((await ray.get(places)).toSorted()).toEqual(nodes.toSorted());
  await expect.poll(cpusFree).toBe(3);
  await ray.removePlacementGroup(placementGroup);
  await expect.poll(cpusFree).toBe(6);
  const spread = Counter.options({ numCpus: 1, schedulingStrategy: "SPREAD" });
  const counters = nodes.map(() => spread.remote());
  const spreadOver = await ray.get(counters.map((counter) => counter.node.remote()));
  expect(new Set(spreadOver).size).toBeGreaterThan(1);
  const last = nodes.at(-1) ?? "";
  const schedulingStrategy = { kind: "NODE_AFFINITY", nodeId: last } as const;
  expect(await ray.get(nodeOf.options({ schedulingStrategy }).remote())).toBe(last);
  expect(await ray.get(outer.remote(3))).toBe(6);
});

test("each of two actors sees a GPU of its own", async ({ skip }) => {
  const running = await session(skip);
  await running.do("add", { num_cpus: 2, num_gpus: 2 });
  const counters = [1, 2].map(() => Counter.options({ numGpus: 1 }).remote());
  const gpus = await ray.get(counters.map((counter) => counter.gpus.remote()));
  expect(new Set(gpus)).toEqual(new Set(["0", "1"]));
  expect(await ray.get(double.remote(1))).toBe(2);
  await ray.shutdown();
  await running.do("kill_raylet", -1);
});

test("kill -9 of a host, an agent and its shim: the actor restarts", async ({ skip }) => {
  await session(skip);
  const counter = Counter.options({ numCpus: 1, maxRestarts: -1, maxTaskRetries: -1 }).remote();
  const kills = [
    (host: number) => host,
    (host: number) => parentOf(host),
    (host: number) => parentOf(parentOf(host)),
  ];
  for (const killed of kills) {
    const before = await ray.get(counter.pid.remote());
    process.kill(killed(before), "SIGKILL");
    // Calls may still reach the old host before it ends.
    await expect.poll(async () => ray.get(counter.pid.remote())).not.toBe(before);
  }
});

test("a node added while demand waits is used; kill -9 of its raylet moves what may move", async ({
  skip,
}) => {
  const running = await session(skip);
  const wanted = { numCpus: 1, resources: { extra: 1 }, maxRestarts: -1, maxTaskRetries: -1 };
  const counter = Counter.options(wanted).remote();
  const call = counter.node.remote();
  await expect.poll(() => running.do<string[]>("groups")).toEqual(["PENDING"]);
  const first = await running.do("add", { num_cpus: 1, resources: { extra: 1 } });
  expect(await ray.get(call)).toBe(first);
  await running.do("kill_raylet", -1);
  await expect.poll(() => running.do<string[]>("groups")).toEqual(["PENDING"]);
  const moved = counter.node.remote();
  const second = await running.do("add", { num_cpus: 1, resources: { extra: 1 } });
  expect(await ray.get(moved)).toBe(second);
  await ray.shutdown();
  await running.do("kill_raylet", -1);
});

test("kill -9 of the gateway: waits end with an error that names its job", async ({ skip }) => {
  const running = await session(skip);
  const counter = Counter.options({ numCpus: 6 }).remote();
  const waiting = counter.add.remote(1);
  const [gateway] = running.processes("gateway");
  process.kill(gateway!, "SIGKILL");
  await expect(ray.get(waiting)).rejects.toThrow(/job raysubmit_\w+ of the Ray cluster at/);
});

test.for([
  ["from outside", (url: string) => url],
  ["on a machine of the cluster", () => "auto"],
] as const)("rayling run --on-ray runs the example %s", async ([, addressOf], { skip }) => {
  const running = there(skip);
  const main = join(workspace, "packages/rayling/dist/cli/main.js");
  const script = join(workspace, "examples/on-ray/primes.ts");
  const args = [main, "run", "--on-ray", addressOf(running.url), script];
  const { stdout } = await runProgram(process.execPath, args, {
    RAY_ADDRESS: await running.do<string>("gcs"),
    PATH: `${dirname(orSkip(found, skip))}:${process.env["PATH"]}`,
  });
  expect(stdout).toContain("17984 primes below 200000, by 6 actors on 3 nodes");
});

test("the reward loop of the demo runs on the cluster, from the sources of a checkout", async ({
  skip,
}) => {
  const running = there(skip);
  const main = join(workspace, "packages/rayling/src/cli/main.ts");
  const folder = await mkdtemp(join(tmpdir(), "rayling-score-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const args = ["score", "--demo", "--on-ray", running.url, "--out", join(folder, "rewards.jsonl")];
  const { stdout } = await runProgram(process.execPath, [main, ...args], { NODE_OPTIONS: "" });
  expect(stdout).toContain("2,560 of 2,560 scores agree with it");
});

test.for(["kill -9 of the driver", "job stop"])("%s leaves nothing", async (how, { skip }) => {
  const running = there(skip);
  const driver = spawn(process.execPath, [join(import.meta.dirname, "real-driver.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, RAYLING_ON_RAY: running.url },
  });
  onTestFinished(() => void driver.kill("SIGKILL"));
  const ended = once(driver, "exit").then(() => ["it ended before"]);
  const [said] = await Promise.race([once(driver.stdout, "data"), ended]);
  expect(String(said)).toMatch(/^runs \d+/);
  // The gateway, an agent with its guard, and the host of the actor at least.
  expect(running.processes().length).toBeGreaterThanOrEqual(3);
  if (how === "job stop") await running.do("stop_jobs");
  else driver.kill("SIGKILL");
  await expect.poll(() => running.processes()).toEqual([]);
  await expect.poll(() => running.do<string[]>("groups")).toEqual([]);
  driver.kill("SIGKILL");
  await expect
    .poll(async () => (await running.do<Record<string, number>>("available"))["CPU"])
    .toBe(6);
});

test("random interleavings with Python never use more than there is", async ({ skip }) => {
  const running = await session(skip);
  const counters: ReturnType<typeof Counter.remote>[] = [];
  const pids = new Set<number>();
  let held = 0;
  for (let round = 0; round < 100; round++) {
    if (Math.random() < 0.5 && held < 6) {
      await running.do("hold_later", 1);
      held += 1;
    } else if (held > 0) {
      await running.do("free", 1);
      held -= 1;
    }
    if (Math.random() < 0.5) {
      const counter = Counter.options({ numCpus: 1 }).remote();
      void ray.get(counter.pid.remote()).then(
        (pid) => pids.add(pid),
        () => undefined,
      );
      counters.push(counter);
    } else {
      const [counter] = counters.splice(Math.floor(Math.random() * counters.length), 1);
      if (counter !== undefined) await ray.kill(counter);
    }
    await pause(Math.random() * 100);
    const living = running.processes("host").filter((pid) => pids.has(pid)).length;
    const holders = await running.do<number>("living_holders");
    expect(living + holders).toBeLessThanOrEqual(6);
  }
  await Promise.all(counters.map((counter) => ray.kill(counter)));
  await running.do("free", held);
});
