import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, realpath, rm, stat, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import * as ray from "@rayling/core";
import {
  channelEndpoint,
  dialLink,
  dialOnce,
  Guard,
  HostProcess,
  type JoinedNode,
  type Link,
} from "@rayling/core/cluster";
import { wrap } from "comlink";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { Heir } from "../../../test/fixtures/heirs.ts";
import { sized } from "../../../test/fixtures/suite.ts";
import { frame, RawPeer } from "../../../test/fixtures/wire.ts";
import {
  type AgentOptions,
  enableNodes,
  joinNode,
  NodeAddressError,
  parseAddress,
  readToken,
  RemoteNode,
  startAgent,
  TokenFileError,
} from "../src/index.ts";
import type { AgentControl } from "../src/contract.ts";
import { double, elsewhere, Far, type FarClass } from "./fixtures/actors.ts";
import { isRunning } from "./fixtures/processes.ts";

const fixture = (name: string): string =>
  fileURLToPath(new URL(`./fixtures/${name}.ts`, import.meta.url));

enableNodes();

interface AgentProcess {
  readonly child: ChildProcess;
  readonly address: string;
}

const processes: ChildProcess[] = [];

async function start(
  name: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
  cwd: string = process.cwd(),
): Promise<[ChildProcess, string]> {
  const child = spawn(process.execPath, [fixture(name), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    cwd,
    env: { ...process.env, ...env },
  });
  processes.push(child);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return [child, line.toString().trim()];
}

async function agentProcess(
  name: string,
  cpus = 2,
  options: AgentOptions = {},
): Promise<AgentProcess> {
  const args = [name, String(cpus), JSON.stringify(options)];
  const [child, address] = await start("agent-main", args);
  return { child, address };
}

const on = (nodeId: string): ray.SchedulingOptions => ({
  schedulingStrategy: { kind: "NODE_AFFINITY", nodeId, soft: false },
});
const nodeNamed = async (name: string): Promise<string> =>
  (await ray.nodes()).find(({ nodeName }) => nodeName === name)?.nodeId ?? "";

afterEach(() => ray.shutdown());
afterAll(() => {
  for (const child of processes) child.kill("SIGKILL");
});

describe("machines with an agent", () => {
  let one: AgentProcess;
  let two: AgentProcess;
  /** On a machine with another name, another time and more processors. */
  let elsewhereAddress: string;
  beforeAll(async () => {
    const { NODE_OPTIONS = "" } = process.env;
    const preloads = ["other-machine", "clock-behind"].map((name) => `--import ${fixture(name)}`);
    const env = { NODE_OPTIONS: [NODE_OPTIONS, ...preloads].join(" ") };
    const started = start("agent-main", ["far", "1"], env);
    [one, two] = await Promise.all([agentProcess("one"), agentProcess("two")]);
    [, elsewhereAddress] = await started;
  });
  const init = (): Promise<ray.SessionInfo> =>
    ray.init({ numCpus: 1, prewarm: 0, nodes: [one.address, two.address] });

  test("are nodes of the session, with what they have", async () => {
    await init();
    const nodes = await ray.nodes();
    expect(nodes.map(({ nodeName }) => nodeName).slice(1)).toEqual(["one", "two"]);
    expect(nodes.map(({ resources }) => resources["CPU"])).toEqual([1, 2, 2]);
    expect((await ray.clusterResources())["CPU"]).toBe(5);
    // All of them are this machine.
    expect(new Set(nodes.map(({ resources }) => resources["memory"])).size).toBe(1);
  });

  test("say what machine they are on", async () => {
    await ray.init({ numCpus: 0, nodes: [elsewhereAddress.replace("127.0.0.1", "localhost")] });
    const [own, there] = await ray.nodes();
    expect(own).toMatchObject({ nodeManagerHostname: hostname() });
    expect(own?.nodeManagerAddress).toMatch(/^[\d.]+$/);
    expect(there).toMatchObject({
      nodeName: "far",
      nodeManagerHostname: "elsewhere",
      nodeManagerAddress: "localhost",
    });
    expect((await ray.state.listNodes()).map(({ nodeIp }) => nodeIp)).toEqual([
      own?.nodeManagerAddress,
      "localhost",
    ]);
    const node = new RemoteNode(elsewhereAddress, { driverId: "driver-x", network: {} });
    // By which it is known how many hosts can start there side by side.
    expect(await node.offer).toMatchObject({ hostname: "elsewhere", parallelism: 64 });
    await node.close();
  });

  test("run actors in processes that their agents start, and these reach each other and the driver's own", async () => {
    await init();
    const [first, second] = [await nodeNamed("one"), await nodeNamed("two")];
    const [left, right] = [Far.options(on(first)).remote(), Far.options(on(second)).remote()];
    const here = Far.remote();
    expect(await ray.get([left.where.remote(), right.where.remote()])).toMatchObject([
      { parent: one.child.pid, nodeId: first },
      { parent: two.child.pid, nodeId: second },
    ]);
    expect((await ray.get(here.where.remote())).pid).toBe(process.pid);
    expect(await ray.get(left.addTo.remote(right, 1))).toBe(1);
    expect(await ray.get(right.addTo.remote(left, 2))).toBe(2);
    expect(await ray.get(left.addTo.remote(here, 3))).toBe(3);
    expect(await ray.get(here.addTo.remote(left, 4))).toBe(6);
    expect(await ray.get(here.addManyTo.remote(right, 2000))).toEqual(
      Array.from({ length: 2000 }, (_, index) => index + 2),
    );
  });

  test("give what starts there the settings of the code that starts it elsewhere", async () => {
    await init();
    const [first, second] = [await nodeNamed("one"), await nodeNamed("two")];
    const runtimeEnv = { env: { FIRST: "parent" }, permissions: {} };
    const parent = Heir.options({ ...on(first), runtimeEnv }).remote();
    const chains = [[on(second)], [{ is: "task", ...on(second) }]] as const;
    for (const found of await ray.get(
      chains.map((chain) => parent.start.remote(chain, ["/etc/hostname"])),
    )) {
      expect(found).toMatchObject({
        variables: ["parent", undefined],
        files: ["ERR_ACCESS_DENIED"],
      });
    }
  });

  test("run tasks, and keep big values until somebody wants them", async () => {
    await init();
    const [first, second] = [await nodeNamed("one"), await nodeNamed("two")];
    expect(await ray.get(double.options(on(first)).remote(21))).toBe(42);
    const [maker, reader] = [Far.options(on(first)).remote(), Far.options(on(second)).remote()];
    const big = maker.fill.remote(500_000, 2);
    expect(await ray.get(reader.sum.remote(big))).toBe(1_000_000);
    expect((await ray.get(big)).length).toBe(500_000);
    expect(await ray.get(reader.sum.remote(ray.put(new Float64Array(300_000).fill(1))))).toBe(
      300_000,
    );
  });

  test("show what is written there in the driver, with who wrote it", async () => {
    const written = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    try {
      await init();
      const far = Far.options(on(await nodeNamed("one"))).remote();
      await ray.get(far.say.remote("from far away"));
      await expect
        .poll(() => written.mock.calls.map(([text]) => String(text)).join(""))
        .toMatch(/\(FarClass actor-\w+ host-\w+\) from far away\n/);
    } finally {
      written.mockRestore();
    }
  });

  test("whose host does not answer: a warning names what may be the reason, the network too", async () => {
    await init();
    const far = Far.options(on(await nodeNamed("one"))).remote();
    const { pid } = await ray.get(far.where.remote());
    process.kill(pid, "SIGSTOP");
    const warned = once(process, "warning") as Promise<[Error]>;
    const waiting = ray.get(far.add.remote(1), { stuckWarningMs: 1 });
    const [{ message }] = await warned;
    process.kill(pid, "SIGCONT");
    expect(message).toMatch(
      /is alive on host-\w+, which does not answer: code holds the thread of its process, the process or its machine stands still, or the network to that machine is down$/,
    );
    expect(await waiting).toBe(1);
  });

  test("tell how a host ended, and run the next one", async () => {
    await init();
    const far = Far.options({ ...on(await nodeNamed("one")), maxRestarts: 1 }).remote();
    const { pid } = await ray.get(far.where.remote());
    await expect(ray.get(far.exit.remote(3))).rejects.toThrow(ray.ActorUnavailableError);
    const next = await ray.get(far.where.remote());
    expect(next.pid).not.toBe(pid);
    expect(next.parent).toBe(one.child.pid);
    await expect(ray.get(far.exit.remote(3))).rejects.toMatchObject({
      code: "ACTOR_DIED",
      deathCause: { kind: "exited", exitCode: 3 },
    });
    const other = Far.options(on(await nodeNamed("two"))).remote();
    await ray.get(other.add.remote(1));
    await ray.kill(other);
    await expect(ray.get(other.add.remote(1))).rejects.toThrow("killed by ray.kill");
  });

  test("may have another time", async () => {
    await ray.init({ numCpus: 0, nodes: [elsewhereAddress, one.address] });
    const late = Far.options(on(await nodeNamed("far"))).remote();
    const near = Far.options(on(await nodeNamed("one"))).remote();
    const [then, now] = await ray.get([late.now.remote(), near.now.remote()]);
    expect(now - then).toBeGreaterThan(80_000_000);
    expect((await ray.get(near.addManyTo.remote(late, 1000))).at(-1)).toBe(1000);
    expect(await ray.get(near.sum.remote(late.fill.remote(100_000, 2)))).toBe(200_000);
  });

  test("that die take their actors along, but no value of which others have a copy: those that may restart do so elsewhere", async () => {
    const doomed = await agentProcess("doomed");
    await ray.init({
      numCpus: 0,
      nodes: [doomed.address, two.address],
      reconnectTimeoutMs: 200,
    });
    const stays: ray.ActorOptions = {
      schedulingStrategy: { kind: "NODE_AFFINITY", nodeId: await nodeNamed("doomed"), soft: true },
    };
    const restarts = Far.options({ ...stays, maxRestarts: 1, maxTaskRetries: -1 }).remote();
    const dies = Far.options(stays).remote();
    const before = await ray.get(restarts.where.remote());
    const { pid } = await ray.get(dies.where.remote());
    expect(before.parent).toBe(doomed.child.pid);
    const keeps = Far.options(on(await nodeNamed("two"))).remote();
    const value = dies.fill.remote(100_000, 2);
    await ray.get(keeps.keep.remote(value));
    doomed.child.kill("SIGKILL");
    // Without its agent it might end in order, and hand over what it made.
    process.kill(pid, "SIGKILL");
    const node = async (): Promise<ray.NodeInfo | undefined> =>
      (await ray.nodes()).find(({ nodeName }) => nodeName === "doomed");
    await expect.poll(async () => (await node())?.alive, { timeout: 30_000 }).toBe(false);
    expect((await ray.get(restarts.where.remote())).parent).toBe(two.child.pid);
    await expect(ray.get(dies.add.remote(1))).rejects.toMatchObject({
      code: "ACTOR_DIED",
      deathCause: { kind: "node-died" },
    });
    expect((await ray.get(value)).at(-1)).toBe(2);
    // Nothing is left of what it ran.
    await expect.poll(() => isRunning(before.pid), { timeout: 30_000 }).toBe(false);
  });

  test("that are stopped are as those that die: what may go on does so elsewhere", async () => {
    const stopped = await startAgent({ nodeName: "stopped", numCpus: 4 });
    await ray.init({ numCpus: 0, nodes: [stopped.address, two.address] });
    const nodeId = await nodeNamed("stopped");
    const there = {
      numCpus: 1,
      schedulingStrategy: { kind: "NODE_AFFINITY", nodeId, soft: true },
    } as const;
    const here = Far.options({ numCpus: 0, ...on(await nodeNamed("two")) }).remote();
    const restarts = Far.options({ ...there, maxRestarts: 1, maxTaskRetries: -1 }).remote();
    const dies = Far.options(there).remote();
    const retried = elsewhere.options({ ...there, maxRetries: 1 }).remote(nodeId, here);
    const lost = elsewhere.options({ ...there, maxRetries: 0 }).remote(nodeId, here);
    await ray.get([restarts.where.remote(), dies.where.remote()]);
    await expect.poll(() => ray.get(here.add.remote(0))).toBe(2);
    await stopped.close();
    expect((await ray.get(restarts.where.remote())).parent).toBe(two.child.pid);
    expect(await ray.get(retried)).toBe(await nodeNamed("two"));
    await expect(ray.get(lost)).rejects.toBeInstanceOf(ray.NodeDiedError);
    await expect(ray.get(dies.add.remote(1))).rejects.toMatchObject({
      code: "ACTOR_DIED",
      deathCause: { kind: "node-died" },
    });
    // It was a restart, the only one that it had.
    await expect(ray.get(restarts.exit.remote(3))).rejects.toBeInstanceOf(ray.ActorDiedError);
  });

  test("take no more hosts than they are to", async () => {
    const agent = await startAgent({ nodeName: "small", numCpus: 4, maxHosts: 1 });
    await ray.init({ numCpus: 0, nodes: [agent.address] });
    const first = Far.remote();
    await ray.get(first.add.remote(1));
    await expect(ray.get(Far.remote().add.remote(1))).rejects.toThrow(
      "node small runs 1 hosts, which is its limit",
    );
    await ray.shutdown();
    await agent.close();
  });

  test("end hosts that hang before they can be reached", async () => {
    const agent = await startAgent({ nodeName: "patient", numCpus: 4 });
    const preload = "setInterval(() => {}, 1e6); await new Promise(() => {})";
    const runtimeEnv = { execArgv: [`--import=data:text/javascript,${preload}`] };
    await ray.init({ numCpus: 0, nodes: [agent.address] });
    const [killed, left] = [1, 2].map(() => Far.options({ runtimeEnv }).remote()) as [
      ray.ActorHandle<FarClass>,
      ray.ActorHandle<FarClass>,
    ];
    const outcomes = Promise.allSettled(
      [killed, left].map((actor) => ray.get(actor.add.remote(1))),
    );
    await expect.poll(() => agent.hostCount, { timeout: 60_000 }).toBe(2);
    await ray.kill(killed);
    expect(agent.hostCount).toBe(1);
    await ray.shutdown();
    expect(agent.hostCount).toBe(0);
    expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await agent.close();
  });

  test("show a flood of lines in its order, and say what they could not bring", async () => {
    let text = "";
    const written = vi.spyOn(process.stdout, "write").mockImplementation((chunk) => {
      text += String(chunk);
      return true;
    });
    const complained = vi.spyOn(process.stderr, "write").mockImplementation((chunk) => {
      text += String(chunk);
      return true;
    });
    try {
      await init();
      const far = Far.options(on(await nodeNamed("one"))).remote();
      const count = sized({ gate: 50_000, full: 200_000 });
      await ray.get(far.sayNumbers.remote(count));
      // Numbers, and below 0 how many of them are missing.
      const seen = (): readonly number[] =>
        [...text.matchAll(/\) (?:number (\d+)|(\d+) lines are missing|a line is missing)/g)].map(
          ([, number, missing]) => (number === undefined ? -Number(missing ?? 1) : Number(number)),
        );
      const isReported = (): boolean =>
        seen().reduce((sum, number) => sum + Math.max(1, -number), 0) >= count;
      await expect.poll(isReported, { timeout: 60_000, interval: 500 }).toBe(true);
      let next = 0;
      for (const number of seen()) {
        if (number < 0) {
          next -= number;
          continue;
        }
        // Not by expect: 200,000 of them take long.
        if (number !== next) throw new Error(`number ${number} came, and ${next} was to`);
        next += 1;
      }
      expect(next).toBe(count);
    } finally {
      written.mockRestore();
      complained.mockRestore();
    }
  });
});

test("all machines must be there at the start; one that is lost later is named once", async () => {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error): void => void warnings.push(message);
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  const agent = await startAgent({ nodeName: "there" });
  const gone = await startAgent();
  await gone.close();
  await expect(ray.init({ prewarm: 0, nodes: [gone.address, agent.address] })).rejects.toThrow(
    NodeAddressError,
  );
  expect(ray.isInitialized()).toBe(false);
  // The other one was left again.
  await ray.init({ prewarm: 0, nodes: [agent.address] });
  expect((await ray.nodes()).map(({ alive }) => alive)).toEqual([true, true]);
  await agent.close();
  await expect.poll(async () => (await ray.nodes())[1]?.alive).toBe(false);
  await expect
    .poll(() => warnings)
    .toEqual([
      expect.stringMatching(/^node there is lost: .*; it joins again when it can be reached$/),
      expect.stringMatching(/^rayling:\/\/127\.0\.0\.1:\d+: .*ECONNREFUSED.*; it is tried again$/),
    ]);
});

test("a machine that is there again after it died is a new node, and what waits starts there", async () => {
  const gone = await startAgent();
  const { port, username: token } = new URL(gone.address);
  await gone.close();
  const options = { port: Number(port), token, resources: { gold: 1 } };
  const first = await agentProcess("back", 2, options);
  await ray.init({ numCpus: 0, nodes: [gone.address], reconnectTimeoutMs: 200 });
  const nodeId = await nodeNamed("back");
  const lost = Far.options({ resources: { gold: 1 } }).remote();
  await ray.get(lost.where.remote());
  first.child.kill("SIGKILL");
  await expect.poll(async () => (await ray.nodes())[1]?.alive).toBe(false);
  const waiting = Far.options({ resources: { gold: 1 } }).remote();
  const where = waiting.where.remote();
  const second = await agentProcess("back", 2, options);
  expect((await ray.get(where)).parent).toBe(second.child.pid);
  expect((await ray.get(where)).nodeId).not.toBe(nodeId);
  // One that is stopped in order, too.
  second.child.kill("SIGTERM");
  await once(second.child, "exit");
  const third = await agentProcess("back", 2, options);
  const last = Far.options({ resources: { gold: 1 } }).remote();
  expect((await ray.get(last.where.remote())).parent).toBe(third.child.pid);
});

test("a lost machine holds no process", async () => {
  const agent = await startAgent();
  const [driver] = await start("driver-main", [agent.address, "outlive"]);
  await agent.close();
  if (driver.exitCode === null) await once(driver, "exit");
  expect(driver.exitCode).toBe(0);
});

/** What comes of a shutdown is also looked at where the driver is the test. */
test.each(
  sized({
    gate: ["exit", "return", "shutdown-starting"],
    full: ["shutdown", "shutdown-starting", "exit", "return"],
  }),
)("a driver that ends by %s leaves nothing on the machine", async (how) => {
  // Not by its silence.
  const agent = await startAgent({ numCpus: 2, reconnectTimeoutMs: 600_000 });
  const [driver] = await start("driver-main", [agent.address, how]);
  if (driver.exitCode === null) await once(driver, "exit");
  expect(driver.exitCode).toBe(0);
  await expect.poll(() => agent.hostCount).toBe(0);
  await agent.close();
});

test("an agent starts hosts also where its own working directory was removed", async () => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "rl-")));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const own = join(folder, "own");
  await mkdir(own);
  const [agent, address] = await start("agent-main", ["gone"], { TMPDIR: folder }, own);
  await ray.init({ numCpus: 0, nodes: [address] });
  const place = async (): Promise<string> => (await ray.get(Far.remote().where.remote())).cwd;
  expect(await place()).toBe(own);
  await rm(own, { recursive: true });
  // The agent's own, which goes with it.
  expect(await place()).toMatch(new RegExp(`^${folder}/rayling-[^/]+$`));
  await mkdir(own);
  expect(await place()).toBe(own);
  await ray.shutdown();
  agent.kill();
  await once(agent, "exit");
});

test("a host whose working directory is not there says which", async () => {
  const guard = new Guard();
  const settings = { spillDirectory: guard.folder } as HostProcessRequest["settings"];
  const cwd = join(guard.folder, "nowhere");
  const request = { settings, runtimeEnv: undefined, moduleUrl: undefined, cwd };
  const host = new HostProcess(request, { guard, onLine: () => undefined });
  host.control.on("error", () => undefined);
  expect(await host.exited).toMatchObject({
    kind: "unreachable",
    message: `its process did not start: its working directory ${cwd} is not there`,
  });
  await guard.close();
});

type HostProcessRequest = ConstructorParameters<typeof HostProcess>[0];

test("values that a host spilled go with it, and the agent stays", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rl-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const options: AgentOptions = { objectStoreMemory: 2 ** 20 };
  const args = ["spills", "2", JSON.stringify(options)];
  const [agent, address] = await start("agent-main", args, { TMPDIR: folder });
  const spilled = async (): Promise<string[]> => {
    const names = await readdir(folder, { recursive: true });
    return names.filter((name) => /\/spilled\/./.test(name));
  };
  await ray.init({ numCpus: 0, nodes: [address] });
  const [gone, stays] = [Far.remote(), Far.remote()];
  const [lost, kept] = [gone.fill.remote(500_000, 1), stays.fill.remote(500_000, 1)];
  await ray.wait([lost, kept], { numReturns: 2 });
  await expect.poll(async () => new Set((await spilled()).map(writerOf)).size).toBe(2);
  await ray.kill(gone);
  await expect.poll(async () => new Set((await spilled()).map(writerOf)).size).toBe(1);
  await expect(ray.get(lost)).rejects.toThrow(ray.ObjectLostError);
  expect(await ray.get(stays.sum.remote(kept))).toBe(500_000);
  await ray.shutdown();
  await expect.poll(spilled).toEqual([]);
  agent.kill();
  await once(agent, "exit");
});

const writerOf = (path: string): string => path.slice(0, path.lastIndexOf("-"));

test("a driver that is killed leaves nothing on the machine", async () => {
  const agent = await startAgent({ numCpus: 2, reconnectTimeoutMs: 100 });
  const [driver] = await start("driver-main", [agent.address, "hang"]);
  expect(agent.hostCount).toBe(1);
  driver.kill("SIGKILL");
  await expect.poll(() => agent.hostCount, { timeout: 30_000 }).toBe(0);
  await agent.close();
});

describe("an address", () => {
  const refusal = async (address: string): Promise<ray.RayError> => {
    const error: unknown = await ray.init({ prewarm: 0, nodes: [address] }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    expect(ray.isInitialized()).toBe(false);
    expect(error).toBeInstanceOf(NodeAddressError);
    return error as ray.RayError;
  };

  test.each([
    ["here", "(4 characters that may hold a token): is not of the form rayling://token@host:port"],
    ["http://secret@127.0.0.1:1", "http://127.0.0.1:1: is not of the form"],
    ["rayling://127.0.0.1:1", "has no token"],
    ["http://secret@more@127.0.0.1:1", "http://127.0.0.1:1: is not of the form"],
    ["rayling://%zz@127.0.0.1:1", "has a token that is not percent-encoded"],
  ])("that is none is refused: %s", async (address, message) => {
    expect((await refusal(address)).message).toContain(message);
  });

  const form = "is not of the form rayling://token@host:port, or raylings:// for TLS";
  test.each([
    ["hush", form],
    ["hush@10.0.0.7:6399", `10.0.0.7:6399: ${form}`],
    ["hush@gpu-7", `gpu-7: ${form}`],
    ["hush:6399@10.0.0.7", form],
    ["10.0.0.7:6399@hush", form],
    ["10.0.0.7:6399", `10.0.0.7:6399: ${form}`],
    ["rayling:hush@10.0.0.7:6399", form],
    ["rayling:/hush@10.0.0.7:6399", form],
    ["//hush@10.0.0.7:6399", `10.0.0.7:6399: ${form}`],
    ["rayling://hush", "has no token"],
    ["rayling://hush:6399", "has no token"],
    ["rayling://10.0.0.7:6399", "rayling://10.0.0.7:6399: has no token"],
    ["rayling://hush%40gpu-7:6399", "has no token"],
    ["rayling%3A%2F%2Fhush%40gpu-7", form],
    ["rayling://gpu-7:6399@hush", form],
    ["rayling://hush:more@gpu-7:6399", form],
    ["rayling://:hush@gpu-7:6399", form],
    ["rayling://hush@gpu-7:port", form],
    ["rayling://hush@10.0.0.7:70000", `rayling://10.0.0.7:70000: ${form}`],
    ["rayling://hush@gpu 7:6399", form],
    ["rayling://gpu-7:6399/hush", form],
    ["rayling://x@gpu-7:6399/?token=hush", form],
    ["rayling://x@gpu-7:6399#hush", form],
    ["rayling://hush%zz@gpu-7:6399", "rayling://gpu-7:6399: has a token that is not"],
    ["http://hush@gpu-7:6399", `http://gpu-7:6399: ${form}`],
    ["hush://x@gpu-7:6399", form],
  ])("that is none shows no token, nowhere: %j", async (address, message) => {
    const error = await refusal(address);
    expect(error).toBeInstanceOf(NodeAddressError);
    expect(error.message).toContain(message);
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain("hush");
    expect(error.stack).not.toContain("hush");
  });

  test("that is no list of them shows no token, either", async () => {
    const error: unknown = await ray
      .init({ nodes: "rayling://hush@gpu-7" as never })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "INVALID_OPTION", option: "nodes" });
    expect(inspect(error, { depth: Infinity, showHidden: true })).not.toContain("hush");
  });

  test("with the wrong token is refused, and its token is not shown", async () => {
    const agent = await startAgent();
    const wrong = agent.address.replace(/\/\/.*@/, "//guessed@");
    const error = await refusal(wrong);
    expect(error.message).toContain("did not accept the token");
    expect(error.message).not.toContain("guessed");
    expect(error.cause).toMatchObject({ code: "AUTHENTICATION" });
    await agent.close();
  });

  test("where nobody listens is refused", async () => {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    server.close();
    await once(server, "close");
    const error = await refusal(`rayling://token@127.0.0.1:${port}`);
    expect(error.message).toContain("cannot be reached");
    expect(error.message).toContain("ECONNREFUSED");
  });

  test("of an agent of another release says what both speak, and leaves nothing behind", async () => {
    const sockets = new Set<Socket>();
    const server = createServer((socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      socket.once("data", () => socket.write(frame(said({ version: 1 }))));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const error = await refusal(`rayling://token@127.0.0.1:${port}`);
    expect(error.message).toMatch(
      /speaks version 1 of the protocol and this side version \d+: install the same release on both/,
    );
    expect(error.cause).toMatchObject({ code: "PROTOCOL_VERSION", theirs: 1 });
    await expect.poll(() => sockets.size).toBe(0);
    server.close();
  });

  test("of an agent that is a node already is refused, however it is written", async () => {
    const agent = await startAgent();
    const other = agent.address.replace("127.0.0.1", "[::ffff:127.0.0.1]");
    for (const again of [agent.address, `${agent.address}/`, other]) {
      const error: unknown = await ray.init({ prewarm: 0, nodes: [agent.address, again] }).then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(NodeAddressError);
      expect((error as Error).message).toContain("which is already a node");
      expect((error as Error).message).not.toContain(agent.address.split(/[/@]/)[2]);
      expect(ray.isInitialized()).toBe(false);
    }
    // What was half joined is left.
    await ray.init({ prewarm: 0, nodes: [agent.address] });
    expect((await ray.nodes()).length).toBe(2);
    await ray.shutdown();
    await agent.close();
  });

  test("of an agent that is a node already is answered, however late that comes there", async () => {
    const agent = await startAgent();
    const linkTo = (): Promise<Link> =>
      dialLink(
        parseAddress(agent.address),
        { peerId: "driver-x", wayId: undefined },
        { peerId: "the agent", explain: () => new Promise(() => undefined) },
      );
    const [late, first] = [await linkTo(), await linkTo()];
    await wrap<AgentControl>(channelEndpoint(first)).takeOver();
    const offer = wrap<AgentControl>(channelEndpoint(late)).describe();
    expect(await Promise.race([offer, late.closed])).toHaveProperty("agentId");
    for (const link of [late, first]) link.close({ kind: "shutdown", message: "it is over" });
    await agent.close();
  });

  test("without a way to other machines is an option that cannot be used", async () => {
    await expect(ray.init({ nodes: "rayling://x@y" as never })).rejects.toThrow("option nodes");
    for (const reconnectTimeoutMs of [-1, 2 ** 31]) {
      await expect(ray.init({ prewarm: 0, nodes: [], reconnectTimeoutMs })).rejects.toThrow(
        "option reconnectTimeoutMs",
      );
    }
  });
});

/** Of a handshake, by a release of another age. */
const said = (words: object): Buffer => Buffer.from(JSON.stringify({ nonce: "n", ...words }));

describe("an agent", () => {
  test("tells a driver of another release its own, hangs up, and goes on", async () => {
    const agent = await startAgent();
    const { hostname: host, port } = new URL(agent.address);
    for (const hello of [{ version: 1 }, { version: 99 }, {}]) {
      const driver = new RawPeer({ host, port: Number(port) });
      driver.send(frame(said({ peerId: "old", ...hello })));
      const answer = JSON.parse(String(await driver.next())) as { version: number };
      expect(answer.version).toBeGreaterThan(1);
      await driver.closed;
      expect(driver.unread.length).toBe(0);
    }
    await ray.init({ prewarm: 0, nodes: [agent.address] });
    expect((await ray.nodes()).length).toBe(2);
    await ray.shutdown();
    await agent.close();
  });

  test.each<[string, unknown]>([
    ["host", ""],
    ["publicHost", 7],
    ["port", 70_000],
    ["port", -1],
    ["port", 1.5],
    ["token", ""],
    ["tls", { ca: "ca.pem" }],
    ["nodeName", ""],
    ["numCpus", Number.NaN],
    ["numCpus", -1],
    ["numCpus", "4"],
    ["resources", ["gold"]],
    ["resources", { CPU: 1 }],
    ["resources", { "": 1 }],
    ["resources", { "node:__internal_head__": 1 }],
    ["resources", { gold: -1 }],
    ["resources", { gold: Number.NaN }],
    ["resources", { GPU: 1.5 }],
    ["resources", { memory: 1.5 }],
    ["labels", { zone: 1 }],
    ["labels", { zone: "in(a" }],
    ["maxHosts", 0],
    ["objectStoreMemory", 1000],
    ["reconnectTimeoutMs", 0],
    ["reconnectTimeoutMs", 2 ** 31],
    ["codeCache", ""],
    ["codeCacheBytes", -1],
    ["maxCodeBytes", 0],
    ["onEvent", "print"],
    ["cpus", 4],
  ])("cannot be started with a wrong %s: %j", async (option, value) => {
    await expect(startAgent({ [option]: value })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      option,
      message: expect.stringContaining(option),
    });
  });

  test("ends what a driver had there that gave it up and joins it again, and nothing of others", async () => {
    const lines: string[] = [];
    const agent = await startAgent({ onEvent: (line) => lines.push(line) });
    const joinAs = (driverId: string): Promise<JoinedNode> =>
      joinNode(agent.address, { driverId, network: {} });
    const gone = (): readonly string[] =>
      lines.flatMap((line) => /^driver (\S+) is gone/.exec(line)?.[1] ?? []).toSorted();
    const [first, other] = await Promise.all([joinAs("driver-x"), joinAs("driver-y")]);
    const second = await joinAs("driver-x");
    expect((await first.lost).kind).toBe("node-died");
    expect(gone()).toEqual(["driver-x"]);
    await Promise.all([second.close(), other.close()]);
    await expect.poll(gone).toEqual(["driver-x", "driver-x", "driver-y"]);
    await agent.close();
  });

  test.each<[string, (line: string) => void]>([
    [
      "throws",
      () => {
        throw new RangeError("no room for lines");
      },
    ],
    ["rejects", async () => Promise.reject(new RangeError("no room for lines"))],
  ])("goes on where its onEvent %s, and warns", async (_how, onEvent) => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error): void => void warnings.push(message);
    process.on("warning", onWarning);
    onTestFinished(() => void process.off("warning", onWarning));
    const agent = await startAgent({ onEvent });
    await ray.init({ numCpus: 0, nodes: [agent.address] });
    expect(await ray.get(Far.remote().add.remote(1))).toBe(1);
    await ray.shutdown();
    await expect.poll(() => agent.hostCount).toBe(0);
    await expect
      .poll(() => warnings)
      .toContainEqual(
        expect.stringMatching(/^onEvent failed, told "driver .*": no room for lines$/),
      );
    await agent.close();
  });

  test("that does not answer is not waited for by a driver that leaves, and ends what it had there when it can", async () => {
    const { child, address } = await agentProcess("silent", 1, { reconnectTimeoutMs: 600_000 });
    await ray.init({ numCpus: 0, nodes: [address], reconnectTimeoutMs: 600_000 });
    const { pid } = await ray.get(Far.remote().where.remote());
    child.kill("SIGSTOP");
    await ray.shutdown();
    expect(isRunning(pid)).toBe(true);
    child.kill("SIGCONT");
    await expect.poll(() => isRunning(pid)).toBe(false);
    child.kill();
  });

  test("offers GPUs and memory among its resources", async () => {
    const agent = await startAgent({ resources: { GPU: 2, memory: 1e9, gold: 0.5 } });
    await ray.init({ prewarm: 0, nodes: [agent.address] });
    const [, node] = await ray.nodes();
    expect(node?.resources).toMatchObject({ GPU: 2, memory: 1e9, gold: 0.5 });
    await ray.shutdown();
    await agent.close();
  });

  test("starts hosts on the ports that it is to, and says when none is free", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const agent = await startAgent({ numCpus: 2, minWorkerPort: port, maxWorkerPort: port });
    await ray.init({ numCpus: 0, nodes: [agent.address] });
    const none = `no port from ${port} to ${port} (minWorkerPort, maxWorkerPort) is free on 127.0.0.1`;
    await expect(ray.get(Far.remote().add.remote(1))).rejects.toThrow(none);
    server.close();
    await once(server, "close");
    const far = Far.remote();
    expect(await ray.get(far.add.remote(1))).toBe(1);
    // It is taken now, by that host.
    await expect(startAgent({ port })).rejects.toThrow("the port is taken");
    await ray.shutdown();
    await agent.close();
    await expect(startAgent({ minWorkerPort: 2, maxWorkerPort: 1 })).rejects.toMatchObject({
      code: "INVALID_OPTION",
      option: "maxWorkerPort",
    });
  });

  test("says which port is taken", async () => {
    const agent = await startAgent();
    const port = Number(new URL(agent.address).port);
    await expect(startAgent({ port })).rejects.toThrow(
      `the agent cannot listen on 127.0.0.1:${port}: the port is taken`,
    );
    await agent.close();
  });

  test.each<[string, string | undefined, boolean]>([
    ["a link that says it is an operator", "operator", true],
    ["a link with another name", "another", true],
    ["a plain connection that says nothing of itself", undefined, false],
    ["a plain connection with another name", "another", false],
  ])("takes no %s", async (_, wayId, isLink) => {
    const agent = await startAgent({ reconnectTimeoutMs: 200 });
    const node = new RemoteNode(agent.address, { driverId: "driver-x", network: {} });
    await node.offer;
    const dial = isLink ? dialLink : dialOnce;
    const channel = await dial(
      parseAddress(agent.address),
      { peerId: "driver-x", wayId },
      {
        peerId: "the agent",
        explain: () => new Promise(() => undefined),
        network: { explainMs: 0 },
      },
    );
    await channel.closed;
    await node.close();
    await agent.close();
  });
});

describe("a token file", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "rayling-test-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("is made once, for its user alone, also by many at once", async () => {
    const path = join(folder, "deep", "token");
    const tokens = await Promise.all(Array.from({ length: 8 }, () => readToken(path)));
    expect(new Set(tokens).size).toBe(1);
    expect(tokens[0]?.length).toBeGreaterThanOrEqual(32);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test("that others can read, or that holds none, is refused by name", async () => {
    const path = join(folder, "open");
    await writeFile(path, "x".repeat(40), { mode: 0o644 });
    await expect(readToken(path)).rejects.toThrow(`chmod 600 ${path}`);
    await chmod(path, 0o600);
    expect(await readToken(path)).toBe("x".repeat(40));
    await writeFile(path, "short");
    await expect(readToken(path)).rejects.toThrow(TokenFileError);
  });
});
