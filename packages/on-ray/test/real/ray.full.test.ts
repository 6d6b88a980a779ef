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
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Counter, double, nodeOf, outer } from "../../../../test/fixtures/on-cluster.ts";
import { workspace } from "../../../rayling/test/command.ts";
import { runProgram } from "../../../rayling/test/python/python-commands.ts";
import { figure, tookSince } from "./figures.ts";
import { isAlive, parentOf, type RealCluster } from "./cluster.ts";
import { oneCluster } from "./one-cluster.ts";

vi.setConfig({ testTimeout: 150_000, hookTimeout: 900_000 });

const zoneB = { num_cpus: 2, labels: { zone: "b" }, resources: { license: 2 } };
const { python, session, there } = oneCluster({
  nodes: [{ num_cpus: 2 }, zoneB, { num_cpus: 2 }],
});

let testedOn: RealCluster | undefined;

beforeEach(({ skip }) => void (testedOn = there(skip)));

afterEach(async () => {
  await ray.shutdown();
  if (testedOn !== undefined) await nothingIsLeft(testedOn);
});

/** Resolves when no process of a session is left, no reservation, and every CPU of the three nodes is free. */
async function nothingIsLeft(running: RealCluster): Promise<void> {
  await expect.poll(() => running.processes()).toEqual([]);
  await expect.poll(() => running.do("groups")).toEqual([]);
  const free = async (): Promise<unknown> =>
    (await running.do<Record<string, number>>("available"))["CPU"];
  await expect.poll(free).toBe(6);
}

const cpusFree = async (): Promise<number> => (await ray.availableResources())["CPU"] ?? 0;

test("a wrong token is one line", async ({ skip }) => {
  const running = there(skip);
  vi.stubEnv("RAY_AUTH_TOKEN", "wrong");
  const refused = ray.init({ address: `ray+${running.url}` }).then(
    () => "accepted",
    (error: unknown) => error,
  );
  expect(await refused).toBeInstanceOf(ray.AuthenticationError);
  expect(String(await refused)).toMatch(/^[^\n]*did not accept the token[^\n]*$/);
  vi.stubEnv("RAY_AUTH_TOKEN", undefined);
});

test("the machines have no Node, and PyPI does not answer there", async ({ skip }) => {
  const running = there(skip);
  const [nodes, registries] = await running.do<[string[], string[]]>("run", whatIsThere);
  expect(nodes).toEqual(["none", "none", "none"]);
  for (const said of registries) expect(said).toMatch(/No matching distribution|Connection/);
});

const whatIsThere = `
import shutil, subprocess, sys
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as There

def look():
    line = [sys.executable, "-m", "pip", "download", "--no-deps", "-d", "/tmp", "rayling-none"]
    said = subprocess.run(line, capture_output=True, text=True)
    return shutil.which("node") or "none", said.stderr if said.returncode else "it answers"

looks = [
    ray.remote(look).options(num_cpus=0, scheduling_strategy=There(n["NodeID"], soft=False)).remote()
    for n in ray.nodes()
]
answer = list(zip(*ray.get(looks)))
`;

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
  const startMs = performance.now();
  await running.do("free", 2);
  expect(await ray.get(calls)).toEqual([1, 1, 1, 1]);
  tookSince(startMs, "what waited for Python's CPUs goes on after");
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

test("bundles are reserved in advance, and what fits runs in them", async ({ skip }) => {
  const running = await session(skip, { bundles: [{ CPU: 2 }, { CPU: 2 }] });
  await expect.poll(cpusFree).toBe(2);
  const counters = Array.from({ length: 3 }, () => Counter.options({ numCpus: 1 }).remote());
  const nodes = await ray.get(counters.map((counter) => counter.node.remote()));
  const [group] = Object.values(await ray.placementGroupTable());
  const places = group?.bundlesToNodeId ?? [];
  for (const node of nodes) expect(places).toContain(node);
  expect(await running.do("groups")).toEqual(["CREATED"]);
  const tasks = Array.from({ length: 100 }, (_, index) => double.remote(index));
  expect((await ray.get(tasks)).at(-1)).toBe(198);
  expect(await ray.get(outer.remote(3))).toBe(6);
  const more = Array.from({ length: 3 }, () => Counter.options({ numCpus: 1 }).remote());
  expect(await ray.get(more.map((counter) => counter.add.remote(1)))).toEqual([1, 1, 1]);
  // Two of them, and tasks that found no room in time, have reservations of their own.
  expect((await running.do<string[]>("groups")).length).toBeGreaterThanOrEqual(3);
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
  const kills = {
    host: (host: number) => host,
    agent: (host: number) => parentOf(host),
    shim: (host: number) => parentOf(parentOf(host)),
  };
  for (const [what, killed] of Object.entries(kills)) {
    const before = await ray.get(counter.pid.remote());
    const startMs = performance.now();
    process.kill(killed(before), "SIGKILL");
    // Calls may still reach the old host before it ends.
    await expect.poll(async () => ray.get(counter.pid.remote())).not.toBe(before);
    tookSince(startMs, `kill -9 of the ${what}: the actor answers again after`);
    await expect.poll(() => isAlive(before)).toBe(false);
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
  const startMs = performance.now();
  const first = await running.do("add", { num_cpus: 1, resources: { extra: 1 } });
  expect(await ray.get(call)).toBe(first);
  tookSince(startMs, "a node added while demand waits, with its own start: used after");
  const host = await ray.get(counter.pid.remote());
  const agent = parentOf(host);
  const killMs = performance.now();
  await running.do("kill_raylet", -1);
  await expect
    .poll(() => [host, agent, parentOf(agent)].map(isAlive))
    .toEqual([false, false, false]);
  tookSince(killMs, "kill -9 of the raylet: no process of its node is left after");
  await expect.poll(() => running.do<string[]>("groups")).toEqual(["PENDING"]);
  const moved = counter.node.remote();
  const second = await running.do("add", { num_cpus: 1, resources: { extra: 1 } });
  expect(await ray.get(moved)).toBe(second);
  tookSince(killMs, "and the actor answers on a node that was added since, after");
  await ray.shutdown();
  await running.do("kill_raylet", -1);
});

test("kill -9 of the gateway: waits end with an error that names its job", async ({ skip }) => {
  const running = await session(skip);
  const counter = Counter.options({ numCpus: 6 }).remote();
  const waiting = counter.add.remote(1);
  expect(await ray.get(double.remote(1))).toBe(2);
  const [gateway] = running.processes("gateway");
  const startMs = performance.now();
  process.kill(gateway!, "SIGKILL");
  await expect(ray.get(waiting)).rejects.toThrow(/job raysubmit_\w+ of the Ray cluster at/);
  tookSince(startMs, "kill -9 of the gateway: waits end after");
  await nothingIsLeft(running);
  tookSince(startMs, "and nothing is left after");
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
    PATH: `${dirname(python(skip))}:${process.env["PATH"]}`,
  });
  expect(stdout).toContain("17984 primes below 200000, by 6 actors on 3 nodes");
});

test("ray job submit -- rayling run --on-ray auto: over a unix socket", async ({ skip }) => {
  const running = there(skip);
  const main = join(workspace, "packages/rayling/dist/cli/main.js");
  const script = join(workspace, "examples/on-ray/primes.ts");
  const line = [process.execPath, main, "run", "--on-ray", "auto", script].join(" ");
  const [status, said, others] = await running.do<[string, string, string]>(
    "run",
    submit(running.url, line),
  );
  expect([status, said]).toEqual([
    "SUCCEEDED",
    expect.stringContaining("17984 primes below 200000, by 6 actors on 3 nodes"),
  ]);
  expect(others).toMatch(/RAYLING_GATEWAY \{[^\n]*"path": "[^"]+\/socket"\}/);
});

/** Runs a command as a job; what it said, and what jobs said that began meanwhile. */
const submit = (url: string, line: string): string => `
import time
from ray.job_submission import JobSubmissionClient

client = JobSubmissionClient(${JSON.stringify(url)})
before = {job.submission_id for job in client.list_jobs()}
job = client.submit_job(entrypoint=${JSON.stringify(line)})
while not client.get_job_status(job).is_terminal():
    time.sleep(0.2)
new = {one.submission_id for one in client.list_jobs()} - before - {job, None}
others = [client.get_job_logs(one) for one in new]
answer = [str(client.get_job_status(job).value), client.get_job_logs(job), "".join(others)]
`;

test("the reward loop of the demo runs on the cluster, from the sources of a checkout", async ({
  skip,
}) => {
  const running = there(skip);
  const main = join(workspace, "packages/rayling/src/cli/main.ts");
  const folder = await mkdtemp(join(tmpdir(), "rayling-score-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const args = ["score", "--demo", "--on-ray", running.url, "--out", join(folder, "rewards.jsonl")];
  const { stdout } = await runProgram(process.execPath, [main, ...args], { NODE_OPTIONS: "" });
  expect(stdout).toContain("2,560 of 2,560 samples have a score that agrees");
});

test.for(["kill -9 of the driver", "job stop"])("%s leaves nothing", async (how, { skip }) => {
  const running = there(skip);
  const driver = spawn(process.execPath, [join(import.meta.dirname, "driver.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, RAYLING_ON_RAY: running.url },
  });
  onTestFinished(() => void driver.kill("SIGKILL"));
  const ended = once(driver, "exit").then(() => ["it ended before"]);
  const [said] = await Promise.race([once(driver.stdout, "data"), ended]);
  expect(String(said)).toMatch(/^runs \d+/);
  // The gateway, an agent with its shim and guard, and the host of the task.
  expect(running.processes().length).toBeGreaterThanOrEqual(5);
  expect(running.processes("host").length).toBeGreaterThanOrEqual(1);
  const startMs = performance.now();
  if (how === "job stop") await running.do("stop_jobs");
  else driver.kill("SIGKILL");
  await nothingIsLeft(running);
  tookSince(startMs, `${how}: nothing is left after`);
  driver.kill("SIGKILL");
});

test("random interleavings with Python never use more than there is", async ({ skip }) => {
  const running = await session(skip);
  const counters: ReturnType<typeof Counter.remote>[] = [];
  const pids = new Set<number>();
  let held = 0;
  const inUse = async (): Promise<number> => {
    const living = running.processes("host").filter((pid) => pids.has(pid)).length;
    return living + (await running.do<number>("living_holders"));
  };
  const make = (): void => {
    const counter = Counter.options({ numCpus: 1 }).remote();
    void ray.get(counter.pid.remote()).then(
      (pid) => pids.add(pid),
      () => undefined,
    );
    counters.push(counter);
  };
  const used: number[] = [];
  for (let round = 0; round < 100; round++) {
    if (Math.random() < 0.5 && held < 4) {
      await running.do("hold_later", 1);
      held += 1;
    } else if (held > 0) {
      await running.do("free", 1);
      held -= 1;
    }
    if (counters.length < 4 || (counters.length < 9 && Math.random() < 0.5)) make();
    else await ray.kill(counters.splice(Math.floor(Math.random() * counters.length), 1)[0]!);
    await pause(Math.random() * 200);
    used.push(await inUse());
    expect(used.at(-1)).toBeLessThanOrEqual(6);
  }
  while (counters.length < 7) make();
  await expect.poll(inUse).toBe(6);
  const full = used.filter((one) => one === 6).length;
  figure(
    "random interleavings",
    `at most ${Math.max(...used)} of 6 CPUs, all of them in ${full} of ${used.length} rounds`,
  );
  await Promise.all(counters.map((counter) => ray.kill(counter)));
  await running.do("free", held);
});
