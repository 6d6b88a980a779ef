/** All that ran on a lost machine reports node-died, also where the connection to a host was lost first. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { type Host, provideNodes } from "@rayling/core/cluster";
import { afterEach, expect, test } from "vitest";
import { joinNode } from "../src/index.ts";
import { elsewhere, Far } from "./fixtures/actors.ts";

const agentMain = fileURLToPath(new URL("fixtures/agent-main.ts", import.meta.url));
const hosts: Host[] = [];
let child: ChildProcess | undefined;

// In place of enableNodes: the test reaches the hosts as the driver does.
provideNodes(async () => async (address, { network, ...request }) => {
  const node = await joinNode(address, { ...request, network: { ...network, explainMs: 0 } });
  return {
    ...node,
    launch: (wish, options) => {
      const host = node.launch(wish, options);
      hosts.push(host);
      return host;
    },
  };
});

afterEach(async () => {
  await ray.shutdown();
  child?.kill("SIGKILL");
  hosts.length = 0;
});

const isStopped = (pid: number): boolean => / T /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));

test.runIf(process.platform === "linux")(
  "actors and tasks of a machine whose hosts were out of reach before it was lost died with it",
  async () => {
    child = spawn(process.execPath, [agentMain, "one", "2", "{}"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const agentPid = child.pid as number;
    const [line] = (await once(child.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
    await ray.init({ numCpus: 1, nodes: [line.toString().trim()], reconnectTimeoutMs: 100 });
    const [own, far] = (await ray.nodes()).map(({ nodeId }) => nodeId) as [string, string];
    const on = (nodeId: string) =>
      ({ schedulingStrategy: { kind: "NODE_AFFINITY", nodeId, soft: false } }) as const;
    const seen = Far.options(on(own)).remote();
    const actor = Far.options(on(far)).remote();
    const { pid } = await ray.get(actor.where.remote());
    const call = actor.hang.remote(seen);
    const task = elsewhere.options({ ...on(far), maxRetries: 0 }).remote(far, seen);
    await expect.poll(() => ray.get(seen.add.remote(0))).toBe(2);
    const taskPid = hosts.find((host) => host.pid !== undefined && host.pid !== pid)?.pid;
    // The agent reports nothing any more, not even a host that ends.
    child.kill("SIGSTOP");
    await expect.poll(() => isStopped(agentPid)).toBe(true);
    // The driver gives up one host whose connection is lost, and the process of the other one ends.
    const lost = { kind: "unreachable", message: "it could not be reached" } as const;
    hosts.find((host) => host.pid === pid)?.channel.close(lost);
    process.kill(taskPid as number, "SIGKILL");
    const reasons = Promise.allSettled([ray.get(call), ray.get(task)]);
    // The machine is lost after that.
    child.kill("SIGKILL");
    expect(await reasons).toMatchObject([
      { reason: { code: "ACTOR_DIED", deathCause: { kind: "node-died" } } },
      { reason: { code: "NODE_DIED" } },
    ]);
    await expect(ray.get(actor.add.remote(1))).rejects.toMatchObject({
      deathCause: { kind: "node-died" },
    });
  },
);
