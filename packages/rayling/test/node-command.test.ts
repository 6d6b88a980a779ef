/** `rayling node`: a machine becomes a node, says how to reach it, and ends with all it runs. */
import { type ChildProcess, execFileSync } from "node:child_process";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { makeCertificate } from "@rayling/cluster";
import * as ray from "rayling";
import { afterEach, describe, expect, test } from "vitest";
import { folder, inProcess, shown, start } from "./command.ts";

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

test.skipIf(process.platform === "win32")("is stopped also while it starts", async () => {
  const tokenFile = join(await folder(), "token");
  execFileSync("mkfifo", ["-m", "600", tokenFile]);
  const { child } = start("node", "--listen", "127.0.0.1:0", "--token-file", tokenFile);
  started.push(child);
  // Opens when the command does, which then waits for a token.
  const silent = await open(tokenFile, "w");
  let stderr = "";
  child.stderr?.on("data", (chunk: string) => (stderr += chunk));
  child.kill("SIGTERM");
  await once(child, "close");
  expect(stderr).toBe("rayling: terminated\n");
  await silent.close();
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

  test("more days than a certificate may be valid", async () => {
    const { code, stderr } = await inProcess("cert", "--days", "999999999");
    expect(stderr).toMatch(/--days.*a whole number of days, from 1 to 36500/);
    expect(code).toBe(2);
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
