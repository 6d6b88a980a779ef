/** `rayling node`: a machine becomes a node, says how to reach it, and ends with all it runs. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { makeCertificate } from "@rayling/cluster";
import * as ray from "rayling";
import { afterEach, describe, expect, test } from "vitest";
import { folder, inProcess, rayling, shown, start } from "./command.ts";
import { nodeOfTask, Stays } from "./fixtures/placed.ts";

const started: ChildProcess[] = [];
afterEach(async () => {
  await ray.shutdown();
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

async function node(
  ...flags: readonly string[]
): Promise<{ child: ChildProcess; address: string }> {
  const tokenFile = join(await folder(), "token");
  const { child } = start("node", "--listen", "127.0.0.1:0", "--token-file", tokenFile, ...flags);
  started.push(child);
  let text = "";
  await new Promise<void>((resolve) => {
    child.stdout?.on("data", (chunk: string) => {
      text += chunk;
      if (text.includes("RAYLING_NODES=")) resolve();
    });
  });
  const [address = ""] = /rayling:\/\/\S+(?=")/.exec(text) ?? [];
  return { child, address };
}

test("becomes a node with what its flags say, and ends in order", async () => {
  const { child, address } = await node(
    "--name",
    "box",
    "--num-cpus",
    "3",
    "--resources",
    "license=2",
    "--labels",
    "zone=b",
  );
  await ray.init({ numCpus: 1, nodes: [address] });
  const box = (await ray.nodes()).find(({ nodeName }) => nodeName === "box");
  expect(box?.resources).toMatchObject({ CPU: 3, license: 2 });
  expect(box?.labels).toMatchObject({ zone: "b" });
  child.kill("SIGTERM");
  const [code] = (await once(child, "exit")) as [number | null];
  expect(code).toBe(0);
  await expect
    .poll(async () => (await ray.nodes()).find(({ nodeName }) => nodeName === "box")?.alive, {
      timeout: 30_000,
    })
    .toBe(false);
});

test("is drained: what runs there goes elsewhere, and both commands end", async () => {
  const tokenFile = join(await folder(), "token");
  const at = (port: string): string[] => [
    "--listen",
    `127.0.0.1:${port}`,
    "--token-file",
    tokenFile,
  ];
  const none = await inProcess("node", ...at("1"), "--drain");
  expect(none.stderr).toMatch(/^rayling: token file .*token cannot be read/);
  expect(none.code).toBe(2);
  const old = await node(...at("0"), "--name", "old", "--num-cpus", "1");
  const flags = at(new URL(old.address).port);
  const next = await node("--name", "next", "--num-cpus", "1");
  await ray.init({ numCpus: 0, nodes: [old.address, next.address] });
  const named = async (name: string): Promise<ray.NodeInfo | undefined> =>
    (await ray.nodes()).find(({ nodeName }) => nodeName === name);
  const nodeId = (await named("old"))?.nodeId ?? "";
  const schedulingStrategy = { kind: "NODE_AFFINITY", nodeId, soft: true } as const;
  const options = { numCpus: 1, schedulingStrategy };
  const place = nodeOfTask.options({ ...options, maxRetries: 0 });
  expect(await ray.get(place.remote())).toBe(nodeId);
  const { code, stdout, stderr } = await rayling("node", ...flags, "--drain");
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^The node is drained: [01] hosts left it, and its agent has ended\.\n$/);
  expect(code).toBe(0);
  if (old.child.exitCode === null) await once(old.child, "exit");
  expect(old.child.exitCode).toBe(0);
  expect(await ray.get(place.remote())).toBe((await named("next"))?.nodeId);
  const actor = Stays.options({ numCpus: 1 }).remote();
  await ray.get(actor.ping.remote());
  const late = await rayling("node", "--drain", next.address, "--drain-timeout", "0");
  // The worker of the task may still be there.
  expect(late.stderr).toMatch(
    /^rayling: ([12]) of \1 hosts had not left the node within 0 s, and ended with it\n$/,
  );
  expect(late.code).toBe(1);
  await expect(ray.get(actor.ping.remote())).rejects.toBeInstanceOf(ray.ActorDiedError);
});

describe("bad input is one line and exit code 2", () => {
  test.each([
    [["--listen", "here"], /--listen.*host:port/],
    [["--listen", "0.0.0.0:1"], /on 0\.0\.0\.0 only with certificates.*rayling cert/],
    [["--tls", "/nowhere"], /\/nowhere\/ca\.pem cannot be read/],
    [["--tls-ca", "/nowhere/ca.pem"], /--tls-ca, --tls-cert and --tls-key belong together/],
    [["--tls", "a", "--tls-ca", "b"], /--tls-ca.*--tls/],
    [["--resources", "license"], /--resources.*name=value/],
    [["--resources", "license=many"], /--resources.*name=amount/],
    [["--num-cpus", "-1"], /--num-cpus/],
    [["--resources", "CPU=3"], /resources must not hold "CPU", which has the option numCpus/],
    [["--resources", "GPU=1.5"], /resources has GPU: 1.5, which must be a whole number/],
    [["--labels", "zone=in(a"], /labels has a label that no selector could name/],
    [["--drain", "here"], /may hold a token\): is not of the form rayling:/],
    [["--drain", "rayling://secret@127.0.0.1:1"], /rayling:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/],
    [["--drain", "--drain-timeout", "soon"], /--drain-timeout.*whole number/],
    [["--max-hosts", "0"], /--max-hosts.*at least 1/],
    [["--min-worker-port", "20000"], /maxWorkerPort must be a port/],
    [["--min-worker-port", "70000", "--max-worker-port", "70001"], /minWorkerPort must be a port/],
    [["--min-worker-port", "2", "--max-worker-port", "1"], /must be at least minWorkerPort, 2/],
    [["--code-cache", "/dev/null/code"], /code cache \/dev\/null\/code cannot be written/],
    [["--code-cache-size", "much"], /--code-cache-size.*10GiB/],
    [["--max-code-size", "0"], /--max-code-size.*number of bytes/],
    [["--token-file", "/dev/null/token"], /token file \/dev\/null\/token/],
  ])("%j", async (flags, message) => {
    const { code, stdout, stderr } = await inProcess(
      "node",
      "--token-file",
      join(await folder(), "token"),
      ...flags,
    );
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toMatch(message);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });

  test("a certificate that expired; of one that soon will, the start tells", async () => {
    const authority = join(await folder(), "tls");
    const flags = ["--listen", "127.0.0.1:0", "--token-file", join(await folder(), "token")];
    await makeCertificate({ authority, hosts: ["127.0.0.1"], days: -1 });
    const expired = await inProcess("node", ...flags, "--tls", authority);
    expect(expired.stderr).toMatch(
      /^rayling: \S+cert\.pem expired on \S+: rayling cert makes a new one\n$/,
    );
    expect(expired.code).toBe(2);
    await makeCertificate({ authority, hosts: ["127.0.0.1"], days: 1 });
    const soon = start("node", ...flags, "--tls", authority);
    started.push(soon.child);
    await shown(soon, /^\S+ \S+cert\.pem expires on \S+: rayling cert makes a new one/, "stderr");
  });

  test("a port that is taken", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const flags = ["--listen", `127.0.0.1:${port}`, "--token-file", join(await folder(), "token")];
    const { code, stderr } = await inProcess("node", ...flags);
    expect(stderr).toContain(`127.0.0.1:${port}: the port is taken`);
    expect(code).toBe(2);
    server.close();
  });
});
