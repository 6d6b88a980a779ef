/**
 * Sessions on a Ray of the tests' own, which speaks the protocol of the gateway. The real one is in
 * `real/ray.full.test.ts`.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request as httpRequest } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeCertificate } from "@rayling/cluster";
import * as ray from "@rayling/core";
import { enableOnRay } from "@rayling/on-ray";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { inProcess } from "../../rayling/test/command.ts";
import { runProgram } from "../../rayling/test/python/python-commands.ts";
import { Counter, double, gpusOf, nodeOf, outer } from "../../../test/fixtures/on-cluster.ts";
import { inFull, isFull, sized } from "../../../test/fixtures/suite.ts";
import { FakeRay } from "./fake-ray.ts";

enableOnRay();

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-on-ray-"));
  vi.stubEnv("RAY_AUTH_TOKEN_PATH", join(folder, "none"));
});

afterAll(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

/** A Ray with these nodes, and a session on it. */
async function session(...nodes: readonly Readonly<Record<string, number>>[]): Promise<FakeRay> {
  const fake = await started(...nodes);
  await ray.init({ address: `ray+${fake.url}` });
  return fake;
}

async function started(...nodes: readonly Readonly<Record<string, number>>[]): Promise<FakeRay> {
  const fake = await FakeRay.start(...nodes);
  onTestFinished(async () => {
    await ray.shutdown();
    await fake.close();
  });
  return fake;
}

const held = (fake: FakeRay): number => fake.reservations.size;

test("actors and tasks run where Ray reserved for them, and all is given back at the end", async () => {
  const fake = await started({ CPU: 1 }, { CPU: 2 });
  fake.hasRuntime = false;
  // Node is 120 MB to pack, and goes up as the runtime does.
  fake.hasNode = sized({ gate: true, full: false });
  await ray.init({ address: `ray+${fake.url}` });
  const isLinux = process.platform === "linux";
  const kinds = (names: Iterable<string>): string[] =>
    [...names].map((name) => /_rayling_([a-z]+)_/.exec(name)?.[1] ?? "").toSorted();
  expect(kinds(fake.asked)).toEqual(isLinux ? ["node", "runtime"] : ["runtime"]);
  expect(kinds(fake.packages)).toEqual(isLinux && isFull ? ["node", "runtime"] : ["runtime"]);
  const counter = Counter.options({ numCpus: 2 }).remote();
  expect(await ray.get(counter.add.remote(2))).toBe(2);
  expect(await ray.get(counter.node.remote())).toBe("ray1");
  expect(await ray.get(nodeOf.remote())).toBe("ray0");
  expect(await ray.get([1, 2, 3].map((one) => double.remote(one)))).toEqual([2, 4, 6]);
  await ray.shutdown();
  expect(held(fake)).toBe(0);
  expect(fake.jobs.map(({ status }) => status)).toEqual(["SUCCEEDED"]);
});

test("what others use is not used, what waits says why, and goes on when it is freed", async () => {
  const fake = await session({ CPU: 2 });
  const [node] = fake.nodes;
  fake.take(node!, "CPU", 1);
  const counters = [1, 2].map(() => Counter.options({ numCpus: 1 }).remote());
  const calls = counters.map((counter) => counter.add.remote(1));
  const { ready, pending } = await ray.wait(calls);
  expect([ready.length, pending.length]).toEqual([1, 1]);
  expect((await ray.availableResources())["CPU"]).toBe(0);
  const actors = await ray.state.listActors();
  expect(actors.map(({ state }) => state).toSorted()).toEqual(["ALIVE", "PENDING_CREATION"]);
  fake.take(node!, "CPU", -1);
  expect(await ray.get(calls)).toEqual([1, 1]);
  expect(fake.most["CPU"]).toBe(2);
});

test("tasks that ask for tasks lend their reservation while they wait", async () => {
  await session({ CPU: 1 });
  expect(await ray.get(outer.remote(3))).toBe(6);
});

test("no more is reserved at once than there is, and a withdrawn request leaves nothing", async () => {
  const fake = await session({ CPU: 2 });
  const tasks = Array.from({ length: 40 }, (_, index) => double.remote(index));
  expect((await ray.get(tasks)).at(-1)).toBe(78);
  expect(fake.most["CPU"]).toBeLessThanOrEqual(2);
  const impossible = Counter.options({ numCpus: 4 }).remote();
  await expect.poll(() => held(fake)).toBeGreaterThan(0);
  await ray.kill(impossible);
  await expect.poll(() => held(fake)).toBe(0);
});

test("labels and NODE_AFFINITY choose the node; one that is gone is refused", async () => {
  const fake = await session({ CPU: 1 });
  const far = fake.addNode({ CPU: 1 }, { zone: "b" });
  expect(await ray.get(nodeOf.options({ labelSelector: { zone: "b" } }).remote())).toBe(far.id);
  const there = { kind: "NODE_AFFINITY", nodeId: far.id } as const;
  expect(await ray.get(nodeOf.options({ schedulingStrategy: there }).remote())).toBe(far.id);
  const gone = { kind: "NODE_AFFINITY", nodeId: "ray9" } as const;
  const refused = ray.get(nodeOf.options({ schedulingStrategy: gone }).remote());
  await expect(refused).rejects.toThrow(ray.TaskUnschedulableError);
});

test("a node that joins is used by what waits", async () => {
  const fake = await session({ CPU: 1 });
  const counter = Counter.options({ resources: { license: 1 } }).remote();
  const call = counter.add.remote(1);
  await expect.poll(() => held(fake)).toBeGreaterThan(0);
  fake.addNode({ CPU: 1, license: 1 });
  expect(await ray.get(call)).toBe(1);
  expect((await ray.nodes()).map(({ nodeId }) => nodeId)).toEqual(["ray0", "ray1"]);
});

test("an actor restarts elsewhere when its node is gone, and in its place when its agent is", async () => {
  const fake = await session({ CPU: 1, left: 1 }, { CPU: 1 });
  const counter = Counter.options({ numCpus: 1, maxRestarts: -1, maxTaskRetries: -1 }).remote();
  expect(await ray.get(counter.node.remote())).toBe("ray0");
  await fake.nodes[0]!.agent!.close();
  expect(await ray.get(counter.node.remote())).toBe("ray0");
  await fake.loseNode(fake.nodes[0]!);
  expect(await ray.get(counter.node.remote())).toBe("ray1");
  expect((await ray.nodes()).map(({ alive }) => alive)).toEqual([false, true]);
});

test("a placement group is one of the engine, bundle for bundle, and moves with its actors", async () => {
  const fake = await session({ CPU: 2 }, { CPU: 2 });
  const placementGroup = ray.placementGroup([{ CPU: 1 }, { CPU: 2 }]);
  const there = (bundleIndex: number) => ({
    schedulingStrategy: { kind: "PLACEMENT_GROUP", placementGroup, bundleIndex } as const,
  });
  const wanted = { numCpus: 1, maxRestarts: -1, maxTaskRetries: -1 };
  const first = Counter.options({ ...wanted, ...there(0) }).remote();
  const second = Counter.options({ ...wanted, ...there(1) }).remote();
  expect(await ray.get([first.node.remote(), second.node.remote()])).toEqual(["ray0", "ray1"]);
  expect(await ray.get(nodeOf.options(there(1)).remote())).toBe("ray1");
  expect((await ray.availableResources())["CPU"]).toBe(1);
  const spare = fake.addNode({ CPU: 2 });
  await fake.loseNode(fake.nodes[1]!);
  expect(await ray.get(second.node.remote())).toBe(spare.id);
  expect(await ray.get(first.node.remote())).toBe("ray0");
  await ray.removePlacementGroup(placementGroup);
  await expect(ray.get(first.node.remote())).rejects.toThrow(ray.ActorPlacementGroupRemoved);
  await expect.poll(() => fake.groups.size).toBe(0);
});

test("requests wait for a placement group that has no place yet", async () => {
  const fake = await session({ CPU: 1 });
  const placementGroup = ray.placementGroup([{ license: 1 }], { name: "licensed" });
  const schedulingStrategy = { kind: "PLACEMENT_GROUP", placementGroup } as const;
  const options = { numCpus: 0, resources: { license: 1 }, schedulingStrategy };
  const call = nodeOf.options(options).remote();
  await expect.poll(() => fake.groups.size).toBe(1);
  const [info] = Object.values(await ray.placementGroupTable());
  expect(info).toMatchObject({ name: "licensed", state: "PENDING" });
  fake.addNode({ CPU: 1, license: 1 });
  expect(await ray.get(call)).toBe("ray1");
  expect(await placementGroup.wait(1000)).toBe(true);
});

test("who holds GPUs sees those that the engine names", async () => {
  await session({ CPU: 2, GPU: 2 });
  const counter = Counter.options({ numGpus: 2 }).remote();
  expect(await ray.get(counter.gpus.remote())).toBe("0,3");
  await ray.kill(counter);
  expect(await ray.get(gpusOf.options({ numGpus: 1 }).remote())).toBe("0,3");
});

test("a machine whose agent does not start is tried again", async () => {
  const fake = await session({ CPU: 1 });
  fake.agentProblem = "it has no room on its disk";
  const warned = new Promise<string>((resolve) => {
    process.once("warning", ({ message }) => resolve(message));
  });
  const call = double.remote(4);
  expect(await warned).toMatch(/node ray0 cannot be used: it has no room on its disk/);
  fake.agentProblem = undefined;
  expect(await ray.get(call)).toBe(8);
});

test("what is killed or cancelled before its machine takes an agent leaves its bundle at once", async () => {
  const fake = await session({ CPU: 1 });
  fake.agentProblem = "it has no room on its disk";
  const placementGroup = ray.placementGroup([{ CPU: 1 }]);
  const schedulingStrategy = { kind: "PLACEMENT_GROUP", placementGroup } as const;
  const there = { numCpus: 1, schedulingStrategy };
  const warned = (): Promise<unknown> => once(process, "warning");
  let failed = warned();
  const actor = Counter.options({ ...there, maxRestarts: 1 }).remote();
  await failed;
  failed = warned();
  await ray.kill(actor, { noRestart: false });
  // Its restart has the bundle.
  await failed;
  await ray.kill(actor);
  failed = warned();
  const task = nodeOf.options(there).remote();
  await failed;
  ray.cancel(task);
  await expect(ray.get(task)).rejects.toThrow(ray.TaskCancelledError);
  fake.agentProblem = undefined;
  expect(await ray.get(nodeOf.options(there).remote())).toBe("ray0");
});

test("a lost gateway ends all waits with an error that names its job", async () => {
  const fake = await session({ CPU: 1 });
  const counter = Counter.options({ numCpus: 1 }).remote();
  expect(await ray.get(counter.add.remote(1))).toBe(1);
  const waiting = double.remote(1);
  await expect.poll(() => held(fake)).toBe(2);
  fake.driver!.destroy();
  await expect(ray.get(waiting)).rejects.toThrow(/job job0 of the Ray cluster at http.* is gone/);
  // The host of the actor may answer until it ends.
  const answer = async (): Promise<unknown> =>
    ray.get(counter.add.remote(1)).catch((error) => error);
  await expect.poll(answer).toBeInstanceOf(ray.ActorDiedError);
});

test.runIf(inFull("a gateway whose connection ends is lost above, whatever it was saying"))(
  "a gateway that is killed in the middle of a line is a lost one",
  async () => {
    const fake = await session({ CPU: 1 });
    const waiting = Counter.options({ numCpus: 2 }).remote().add.remote(1);
    await expect.poll(() => held(fake)).toBe(1);
    fake.driver!.end('{"event": "nodes", "nodes": [{"id": "ra');
    await expect(ray.get(waiting)).rejects.toThrow(/job job0 of the Ray cluster at http.* is gone/);
  },
);

test("a cluster that stands still is lost, and the session ends without it", async () => {
  const fake = await started({ CPU: 1 });
  await ray.init({ address: `ray+${fake.url}`, reconnectTimeoutMs: 1000 });
  const waiting = Counter.options({ numCpus: 2 }).remote().add.remote(1);
  await expect.poll(() => held(fake)).toBe(1);
  fake.isFrozen = true;
  const why = /job job0 of .* is gone: it has not answered for 1 s \(reconnectTimeoutMs\)/;
  await expect(ray.nodes()).rejects.toThrow(why);
  await expect(ray.get(waiting)).rejects.toThrow(why);
  await ray.shutdown();
  // Somebody else may use it.
  await expect(ray.init({ address: `ray+${fake.url}`, reconnectTimeoutMs: 200 })).rejects.toThrow(
    /^the Ray cluster at http:\S+ cannot be reached: it has not answered GET/,
  );
});

test("a session that ends while its cluster does not answer waits for nothing", async () => {
  const fake = await started({ CPU: 1 });
  fake.isFrozen = true;
  const opening = ray.init({ address: `ray+${fake.url}`, reconnectTimeoutMs: 2 ** 31 - 1 });
  const failed = expect(opening).rejects.toThrow(ray.SessionEndedError);
  await ray.shutdown();
  await failed;
});

test("a wrong token is one line, and so is a cluster that is not there", async () => {
  const fake = await started({ CPU: 1 });
  fake.token = "the right one";
  vi.stubEnv("RAY_AUTH_TOKEN", "a wrong one");
  const address = `ray+${fake.url}`;
  await expect(ray.init({ address })).rejects.toThrow(
    /^the Ray cluster at http:\S+ \(see RAY_AUTH_TOKEN\) did not accept the token, or has another one$/,
  );
  vi.stubEnv("RAY_AUTH_TOKEN", "the right one");
  await ray.init({ address });
  expect(await ray.get(double.remote(1))).toBe(2);
  await ray.shutdown();
  expect(fake.jobs.map(({ entrypoint }) => entrypoint).join()).not.toContain("the right one");
  vi.stubEnv("RAY_AUTH_TOKEN", "");
  await expect(ray.init({ address: "ray+http://127.0.0.1:1" })).rejects.toThrow(
    /^the Ray cluster at http:\/\/127.0.0.1:1 cannot be reached: .*ECONNREFUSED/,
  );
});

test("the dashboard behind https, with a certificate of one's own and Ray's token", async () => {
  const fake = await started({ CPU: 1 });
  fake.token = randomBytes(32).toString("hex");
  const tls = join(folder, "https");
  await makeCertificate({ authority: tls, hosts: ["127.0.0.1"] });
  const [cert, key] = await Promise.all(
    ["cert.pem", "key.pem"].map((name) => readFile(join(tls, name))),
  );
  const seen: (string | undefined)[] = [];
  const proxy = createServer({ cert, key }, (request, response) => {
    seen.push(request.headers.authorization);
    const { method, headers } = request;
    const passed = httpRequest(`${fake.url}${request.url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    request.pipe(passed);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void proxy.close());
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  const driver = async (env: Readonly<Record<string, string>>): Promise<string> => {
    const own = { RAYLING_ON_RAY: `https://127.0.0.1:${port}`, NODE_EXTRA_CA_CERTS: "", ...env };
    const args = [join(import.meta.dirname, "https-driver.ts")];
    return (await runProgram(process.execPath, args, own)).stdout.trim();
  };
  const known = { NODE_EXTRA_CA_CERTS: join(tls, "ca.pem") };
  const [refused, answer] = (await driver({ ...known, TOKENS: `wrong ${fake.token}` })).split("\n");
  expect(refused).toMatch(
    /^AuthenticationError: the Ray cluster at https:\S+ \(see RAY_AUTH_TOKEN\)[^\n]*$/,
  );
  expect(answer).toBe("answer 42");
  expect(new Set(seen)).toEqual(new Set(["Bearer wrong", `Bearer ${fake.token}`]));
  expect(await driver({ TOKENS: fake.token })).toMatch(
    /^RaySystemError: the Ray cluster at https:\S+ cannot be reached: [^\n]*certificate[^\n]*$/,
  );
});

test("a driver on a machine of the cluster reaches its gateway over a unix socket", async () => {
  const fake = await started({ CPU: 1 });
  const program = join(folder, "python");
  // Ray's Python says where the dashboard is.
  await writeFile(program, `#!/bin/sh\necho "DASHBOARD ${new URL(fake.url).host}"\n`);
  await chmod(program, 0o755);
  const path = process.env["PATH"];
  vi.stubEnv("PATH", `${folder}:${path}`);
  onTestFinished(() => void vi.stubEnv("PATH", path));
  await ray.init({ address: "auto" });
  expect(fake.driver?.remoteAddress).toBe(undefined);
  expect(fake.jobs.map(({ entrypoint }) => entrypoint).join()).toContain("--reach unix");
  expect(await ray.get(double.remote(2))).toBe(4);
  await ray.shutdown();
  fake.missed = 5;
  await expect(ray.init({ address: "auto" })).rejects.toThrow(
    /the gateway cannot be reached at \/.*: connect E(?:NOENT|CONNREFUSED)/,
  );
  expect(fake.jobs.length).toBe(4);
});

test("a gateway that ended before this driver came is replaced, and not for ever", async () => {
  const fake = await started({ CPU: 1 });
  const missed = sized({ gate: 1, full: 2 });
  fake.missed = missed;
  await ray.init({ address: `ray+${fake.url}` });
  expect(await ray.get(double.remote(2))).toBe(4);
  expect(fake.jobs.length).toBe(missed + 1);
  await ray.shutdown();
  // That it is not for ever is seen over a unix socket, above.
  if (!isFull) return;
  fake.missed = 5;
  await expect(ray.init({ address: `ray+${fake.url}` })).rejects.toThrow(
    /the gateway cannot be reached at 127\.0\.0\.1:\d+: connect ECONNREFUSED/,
  );
  expect(fake.jobs.length).toBe(6);
  fake.missed = 0;
});

test("another release is refused, and its job stopped", async () => {
  const fake = await started({ CPU: 1 });
  fake.protocol = 2;
  await expect(ray.init({ address: `ray+${fake.url}` })).rejects.toThrow(ray.ProtocolVersionError);
  expect(fake.jobs[0]?.status).not.toBe("RUNNING");
});

test.for([
  [{ address: "http://head" }, /option address must be one of ray\+http:\/\/…/],
  [{ address: "ray+http://token@head" }, /a token belongs in RAY_AUTH_TOKEN/],
  [{ address: "auto", numCpus: 2 }, /option numCpus does not go with the cluster at auto/],
  [{ address: "auto", nodes: [] }, /option nodes does not go with the cluster at auto/],
] as const)("%o is refused", async ([options, message]) => {
  onTestFinished(() => ray.shutdown());
  await expect(ray.init(options)).rejects.toThrow(message);
});

test("the environment names the cluster, too", async () => {
  const fake = await started({ CPU: 3 });
  vi.stubEnv("RAYLING_ON_RAY", fake.url);
  onTestFinished(() => void vi.stubEnv("RAYLING_ON_RAY", ""));
  await ray.init();
  expect(await ray.clusterResources()).toEqual({ CPU: 3 });
});

test("the reward loop scores on the cluster, with a module of the user's", async () => {
  const fake = await started({ CPU: 2 }, { CPU: 2 });
  const out = join(folder, "rewards.jsonl");
  const input = join(folder, "solutions.jsonl");
  const count = 100;
  const rows = Array.from({ length: count }, (_, n) => ({
    response: `A: ${n}`,
    ground_truth: "A: 1",
  }));
  await writeFile(input, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const reward = join(import.meta.dirname, "../../../examples/rewards/gsm8k-reward.ts");
  const flags = [input, "--reward", reward, "--workers", "1", "--baseline", "3", "--out", out];
  const { code, stderr } = await inProcess("score", ...flags, "--on-ray", fake.url);
  expect([code, stderr]).toEqual([0, expect.stringContaining("baseline: scores 3 of them")]);
  const records = (await readFile(out, "utf8")).trimEnd().split("\n");
  expect(records.filter((line) => JSON.parse(line).valid === true).length).toBe(count);
  expect(fake.jobs.map(({ status }) => status)).toEqual(["SUCCEEDED"]);
  // Nothing runs beside the cluster: the driver's machine offers nothing.
  expect(held(fake)).toBe(0);
});
