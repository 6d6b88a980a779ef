/**
 * A real Ray on two machines, which the driver reaches over a network: both are network namespaces.
 * In the full suite alone, because it asks PyPI for Ray, and starts a cluster. Needs root.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { get as httpGet } from "node:http";
import { Socket } from "node:net";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { connect, type ConnectionOptions } from "node:tls";
import { SessionAuthority } from "@rayling/cluster";
import * as ray from "@rayling/core";
import { enableOnRay } from "@rayling/on-ray";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { Counter, double, nodeOf } from "../../../../test/fixtures/on-cluster.ts";
import { joinMachines, Machine, whyNoMachines } from "../../../cluster/test/fixtures/machines.ts";
import { parentOf } from "./cluster.ts";
import { rayPackages } from "./one-cluster.ts";
import {
  orSkip,
  type PackagedPython,
  pythonWith,
} from "../../../rayling/test/python/python-venv.ts";

vi.setConfig({ testTimeout: 300_000, hookTimeout: 900_000 });

enableOnRay();

const noMachines = whyNoMachines();
const token = randomBytes(32).toString("hex");
let found: PackagedPython;
let folder = "";
let machines: Machine[] = [];
const ended: (() => unknown)[] = [];
/** The two processes that run Ray. */
const rays: Set<number> = new Set();

beforeAll(async () => {
  found = await pythonWith(rayPackages);
  if ("problem" in found || noMachines !== undefined) return;
  folder = await mkdtemp("/tmp/rayling-two-");
  await writeFile(join(folder, "token"), token, { mode: 0o600 });
  machines = [new Machine(150), new Machine(151)];
  ended.push(joinMachines(), ...machines.map((one) => () => one.remove()));
  const [head, other] = machines as [Machine, Machine];
  const store = ["--num-cpus=2", "--object-store-memory=83886080", "--block"];
  start(found.python, head, [
    "--head",
    "--port=6399",
    `--dashboard-host=${head.address}`,
    `--temp-dir=${folder}`,
    ...store,
  ]);
  const answers = async (): Promise<void> =>
    expect(await said(`${url()}/api/version`)).toMatch(/"version"/);
  await vi.waitFor(answers, { timeout: 300_000, interval: 500 });
  start(found.python, other, [`--address=${head.address}:6399`, ...store]);
});

afterAll(async () => {
  for (const end of ended.toReversed()) await end();
  if (folder !== "") await rm(folder, { recursive: true, force: true });
});

/** Ray itself on one of the machines. */
function start(python: string, machine: Machine, flags: readonly string[]): void {
  const line = [python, "-m", "ray.scripts.scripts", "start", ...flags];
  const own = [`--node-ip-address=${machine.address}`];
  const [program = "", ...args] = [...machine.prefix, ...line, ...own];
  const child: ChildProcess = spawn(program, args, {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      PATH: `${join(python, "..")}:/usr/bin:/bin`,
      HOME: folder,
      TMPDIR: folder,
      RAY_raylet_start_wait_time_s: "150",
      RAY_USAGE_STATS_ENABLED: "0",
      RAY_memory_monitor_refresh_ms: "0",
      RAY_AUTH_MODE: "token",
      RAY_AUTH_TOKEN_PATH: join(folder, "token"),
    },
  });
  rays.add(child.pid ?? 0);
  ended.push(async () => {
    child.kill("SIGTERM");
    await once(child, "exit");
  });
}

const url = (): string => `http://${machines[0]?.address}:8265`;

/** What Ray's dashboard answers; "" when it is not there yet. */
function said(address: string): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  return new Promise((resolve) => {
    httpGet(address, { headers }, (answer) => resolve(textOf(answer))).on("error", () =>
      resolve(""),
    );
  });
}

function ready(skip: (reason: string) => never): void {
  orSkip(found, skip);
  if (noMachines !== undefined) skip(noMachines);
  vi.stubEnv("RAY_AUTH_TOKEN_PATH", join(folder, "token"));
  onTestFinished(() => ray.shutdown());
}

test("a wrong token is one line", async ({ skip }) => {
  ready(skip);
  vi.stubEnv("RAY_AUTH_TOKEN", "wrong");
  const refused = ray.init({ address: `ray+${url()}` });
  await expect(refused).rejects.toThrow(ray.AuthenticationError);
  await expect(refused).rejects.toThrow(
    /^the Ray cluster at [^\n]+ did not accept the token[^\n]*$/,
  );
  vi.stubEnv("RAY_AUTH_TOKEN", undefined);
});

test("two machines: calls between all, strangers are refused, and no secret is in sight", async ({
  skip,
}) => {
  ready(skip);
  const shown = tokensOf();
  await ray.init({ address: `ray+${url()}` });
  await expect.poll(async () => (await ray.nodes()).length).toBe(2);
  const nodes = await ray.nodes();
  const counters = nodes.map(({ nodeId }) => {
    const schedulingStrategy = { kind: "NODE_AFFINITY", nodeId } as const;
    return Counter.options({ numCpus: 0.5, schedulingStrategy }).remote();
  });
  expect(await ray.get(counters.map((one) => one.node.remote()))).toEqual(
    nodes.map(({ nodeId }) => nodeId),
  );
  // A value goes from one machine to the other.
  const [first, second] = counters;
  expect(await ray.get(second!.add.remote(first!.add.remote(3)))).toBe(3);
  expect(await ray.get(double.remote(4))).toBe(8);
  expect(nodes.map(({ nodeId }) => nodeId)).toContain(await ray.get(nodeOf.remote()));

  const agents = machines.flatMap((machine) => listeners(machine, "agent-main"));
  expect(agents.length).toBe(2);
  for (const agent of [...agents, ...machines.flatMap((one) => listeners(one, "process-main"))]) {
    expect(await greeting(agent)).toMatch(/certificate required/);
    const stranger = new SessionAuthority().own();
    expect(await greeting({ ...agent, cert: stranger.cert, key: stranger.key })).toMatch(
      /closed|alert|hang up|RESET/,
    );
  }

  expect(shown().length).toBe(1);
  const jobs = await said(`${url()}/api/jobs/`);
  const ids = Array.from(jobs.matchAll(/raysubmit_\w+/g), ([id]) => id);
  const logs = await Promise.all(ids.map((id) => said(`${url()}/api/jobs/${id}/logs`)));
  const everything = [jobs, ...logs, ...processes().map(({ about }) => about)].join("\n");
  expect(everything).toContain("--token-sha256");
  for (const secret of [...shown(), token, "PRIVATE KEY"]) expect(everything).not.toContain(secret);
  expect(everything).not.toMatch(/raylings?:\/\/[\w-]{16,}@/);
});

/** Returns the tokens that this process has shown to gateways since. */
function tokensOf(): () => string[] {
  const spy = vi.spyOn(Socket.prototype, "write");
  onTestFinished(() => spy.mockRestore());
  return () =>
    spy.mock.calls.flatMap(([text]) => /^\{"token":"([^"]+)"\}/.exec(String(text))?.[1] ?? []);
}

interface Place {
  readonly host: string;
  readonly port: number;
}

/** Where processes of that module listen on a machine. */
function listeners({ prefix, address }: Machine, module: string): Place[] {
  const [program, ...args] = [...prefix, "ss", "-ltnpH"];
  const lines = execFileSync(program, args, { encoding: "utf8" }).split("\n");
  const pids = processes().filter(({ line }) => line.includes(module));
  return lines
    .filter((line) => pids.some(({ pid }) => line.includes(`pid=${pid},`)))
    .map((line) => ({ host: address, port: Number(/:(\d+)\s/.exec(line)?.[1]) }));
}

/** Processes of this cluster with their command lines and environments. */
function processes(): { readonly pid: number; readonly line: string; readonly about: string }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && isOfCluster(Number(name)))
    .map((name) => {
      const line = read(`/proc/${name}/cmdline`);
      return { pid: Number(name), line, about: `${line}\n${read(`/proc/${name}/environ`)}` };
    });
}

/** Whether one of the two Rays started it: its ancestors say so. */
function isOfCluster(pid: number): boolean {
  for (let at = pid; at > 1; at = parentOf(at)) if (rays.has(at)) return true;
  return false;
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // The process has ended.
    return "";
  }
}

/** Why a connection ends. */
async function greeting(options: ConnectionOptions): Promise<string> {
  const socket = connect({ ...options, rejectUnauthorized: false, minVersion: "TLSv1.3" });
  socket.resume();
  const [error] = await Promise.race([
    once(socket, "error"),
    once(socket, "close").then(() => [new Error("it was closed")]),
  ]).catch((reason: unknown) => [reason]);
  socket.destroy();
  return String(error);
}
