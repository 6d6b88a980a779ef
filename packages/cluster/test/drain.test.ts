/** A machine that is emptied: its drivers move what they have there, then its agent ends. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Agent, drainAgent, enableNodes, NodeAddressError, startAgent } from "../src/index.ts";
import { elsewhere, Far } from "./fixtures/actors.ts";

enableNodes();

let old: Agent;
let next: Agent;
beforeEach(async () => {
  [old, next] = await Promise.all([
    startAgent({ nodeName: "old", numCpus: 2 }),
    startAgent({ nodeName: "next", numCpus: 2 }),
  ]);
});
const drivers: ChildProcess[] = [];
afterEach(async () => {
  for (const driver of drivers.splice(0)) driver.kill("SIGKILL");
  await ray.shutdown();
  await Promise.all([old.close(), next.close()]);
});

const nodeNamed = async (name: string): Promise<ray.NodeInfo> =>
  (await ray.nodes()).find(({ nodeName }) => nodeName === name) as ray.NodeInfo;
const on = async (name: string): Promise<ray.ActorOptions> => ({
  numCpus: 1,
  schedulingStrategy: { kind: "NODE_AFFINITY", nodeId: (await nodeNamed(name)).nodeId, soft: true },
});

test("actors of all its drivers go elsewhere without losing a call, then the agent ends", async () => {
  await ray.init({ numCpus: 0, nodes: [old.address, next.address] });
  const far = Far.options({ ...(await on("old")), maxRestarts: 1, maxConcurrency: 1 }).remote();
  const { nodeId } = await ray.get(far.where.remote());
  expect(nodeId).toBe((await nodeNamed("old")).nodeId);
  const other = spawn(
    process.execPath,
    [fileURLToPath(new URL("fixtures/mover-main.ts", import.meta.url)), old.address, next.address],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  drivers.push(other);
  const said = createInterface(other.stdout)[Symbol.asyncIterator]();
  expect((await said.next()).value).toBe("on old");
  const calls = Array.from({ length: 2000 }, () => far.add.remote(1));
  const drained = drainAgent(old.address, { timeoutMs: 60_000 });
  calls.push(...Array.from({ length: 2000 }, () => far.add.remote(1)));
  const sums = await ray.get(calls);
  // Each life counts for itself, from one: none was run twice, none is missing.
  const first = sums.indexOf(1, 1);
  const lives = first < 0 ? [sums] : [sums.slice(0, first), sums.slice(first)];
  for (const life of lives) expect(life).toEqual(life.map((_, index) => index + 1));
  expect(await drained).toEqual({ left: 2, ended: 0 });
  await old.closed;
  expect((await said.next()).value).toBe("on next");
  expect((await ray.get(far.where.remote())).nodeId).toBe((await nodeNamed("next")).nodeId);
  await expect
    .poll(async () => await nodeNamed("old"), { timeout: 30_000 })
    .toMatchObject({ alive: false, deathReason: "node old was drained" });
});

test("those whose time is over lose what they have there", async () => {
  await ray.init({ numCpus: 0, nodes: [old.address, next.address] });
  const stays = Far.options(await on("old")).remote();
  await ray.get(stays.where.remote());
  expect(await drainAgent(old.address, { timeoutMs: 1 })).toEqual({ left: 0, ended: 1 });
  await expect(ray.get(stays.add.remote(1))).rejects.toBeInstanceOf(ray.ActorDiedError);
  await old.closed;
});

test("those whose time is over go on elsewhere, if they may, which is no restart", async () => {
  await ray.init({ numCpus: 0, nodes: [old.address, next.address] });
  const { nodeId } = await nodeNamed("old");
  const seen = Far.options({ ...(await on("next")), numCpus: 0 }).remote();
  const far = Far.options({ ...(await on("old")), maxRestarts: 1 }).remote();
  const task = elsewhere
    .options({ ...((await on("old")) as ray.TaskOptions), maxRetries: 1 })
    .remote(nodeId, seen);
  await ray.get(far.where.remote());
  await expect.poll(() => ray.get(seen.add.remote(0))).toBe(1);
  // It does not let go of it.
  const hanging = expect(ray.get(far.hang.remote(seen))).rejects.toThrow(ray.ActorUnavailableError);
  await expect.poll(() => ray.get(seen.add.remote(0))).toBe(2);
  expect(await drainAgent(old.address, { timeoutMs: 1 })).toEqual({ left: 0, ended: 2 });
  await hanging;
  expect((await ray.get(far.where.remote())).nodeId).toBe((await nodeNamed("next")).nodeId);
  expect(await ray.get(task)).toBe((await nodeNamed("next")).nodeId);
  await expect(ray.get(far.exit.remote(3))).rejects.toThrow(ray.ActorUnavailableError);
  expect((await ray.get(far.where.remote())).nodeId).toBe((await nodeNamed("next")).nodeId);
  await old.closed;
});

test("it takes no more drivers, and those that it has go on; who asks twice hears the same", async () => {
  await ray.init({ numCpus: 0, nodes: [old.address, next.address] });
  const stays = Far.options(await on("old")).remote();
  await ray.get(stays.where.remote());
  const drained = [100_000, 90_000].map((timeoutMs) => drainAgent(old.address, { timeoutMs }));
  await expect.poll(async () => (await nodeNamed("old")).draining).toBe(true);
  const late = await ended("driver-main", old.address, "shutdown");
  expect(late).toContain("node old is being drained and takes no more drivers");
  expect(await ray.get(stays.add.remote(1))).toBe(1);
  await ray.kill(stays);
  expect(await Promise.all(drained)).toEqual([
    { left: 1, ended: 0 },
    { left: 1, ended: 0 },
  ]);
});

test("a machine that nobody uses ends at once", async () => {
  expect(await drainAgent(old.address, { timeoutMs: 60_000 })).toEqual({ left: 0, ended: 0 });
  await old.closed;
});

test("a driver can leave a machine by itself", async () => {
  await ray.init({ numCpus: 0, nodes: [old.address, next.address] });
  const far = Far.options({ ...(await on("old")), maxRestarts: 1 }).remote();
  await ray.get(far.where.remote());
  expect(await ray.drainNode(await nodeNamed("old"))).toBe(true);
  expect((await ray.get(far.where.remote())).nodeId).toBe((await nodeNamed("next")).nodeId);
  expect(old.hostCount).toBe(0);
});

describe("bad input", () => {
  test("is a NodeAddressError that says what is wrong, without the token", async () => {
    const drain = async (address: string): Promise<Error> => {
      const error: unknown = await drainAgent(address, { timeoutMs: 0 }).catch(
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(NodeAddressError);
      return error as Error;
    };
    expect((await drain("here")).message).toContain("is not of the form");
    const wrong = await drain(old.address.replace(/\/\/.*@/, "//guessed@"));
    expect(wrong.message).toContain("did not accept the token");
    expect(wrong.message).not.toContain("guessed");
    const { address } = next;
    await next.close();
    expect((await drain(address)).message).toContain("cannot be reached");
  });

  test("an agent that ends meanwhile is no agent that was drained", async () => {
    await ray.init({ numCpus: 0, nodes: [old.address] });
    const stays = Far.options({ numCpus: 1 }).remote();
    await ray.get(stays.where.remote());
    const drained = drainAgent(old.address, { timeoutMs: 60_000 });
    const failed = expect(drained).rejects.toThrow(/the agent was ended before it was drained/);
    await expect.poll(async () => (await nodeNamed("old")).draining).toBe(true);
    await old.close();
    await failed;
  });
});

/** What a program of the fixtures writes to stderr until its end. */
async function ended(name: string, ...args: readonly string[]): Promise<string> {
  const path = fileURLToPath(new URL(`fixtures/${name}.ts`, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ["ignore", "ignore", "pipe"] });
  drivers.push(child);
  let text = "";
  child.stderr.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await once(child, "close");
  return text;
}
