/** What the kernel holds of code that has passed its language: one battery for all ways of isolation, and for each what it does not hold. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxIsolation } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isolationsHere } from "./fixtures/isolations-here.ts";
import { runNatively } from "./fixtures/native-run.ts";

const isRoot = process.getuid?.() === 0;
/** What root may do that others may not: its processes and threads are not counted. */
const ofRoot = isRoot ? ["processes: threads without end"] : [];
const secret = "the key of a service\n";

/** What SECURITY.md says is not held. */
const notHeld: Readonly<Record<SandboxIsolation, readonly (string | RegExp)[]>> = {
  bubblewrap: ofRoot,
  namespaces: ofRoot,
  landlock: ["processes: threads without end", "memory: many files"],
  process: [
    /^files: (?!rights|times|a device)/,
    "processes: threads without end",
    /^memory: (by name|many files)$/,
  ],
};

const attacks = await readFile(new URL("./fixtures/native-attacks.py", import.meta.url), "utf8");

let folder: string;
const servers: Server[] = [];
const sleeper = spawn("sleep", ["1000"], { env: { ...process.env, SERVICE_KEY: secret } });
const connections: string[] = [];

async function listening(where: number | string): Promise<Server> {
  const server = createServer((one) => {
    connections.push(String(where));
    one.destroy();
  });
  if (typeof where === "number") server.listen(where, "127.0.0.1");
  else server.listen(where);
  await once(server, "listening");
  return server;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "prey-"));
  await writeFile(join(folder, "secret"), secret, { mode: 0o600 });
  servers.push(await listening(0));
  servers.push(await listening(join(folder, "socket")));
  servers.push(await listening(`\0${folder}`));
});

afterAll(async () => {
  sleeper.kill("SIGKILL");
  for (const one of servers) one.close();
  await rm(folder, { recursive: true, force: true });
});

describe.each(await isolationsHere())("%s", (isolation) => {
  test("code that no language holds back is held by the kernel", async () => {
    const end = await runNatively(isolation, attacks, (code) => ({
      code,
      secret: join(folder, "secret"),
      driver: process.pid,
      sleeper: sleeper.pid,
      port: (servers[0]?.address() as AddressInfo | undefined)?.port,
      socket: join(folder, "socket"),
      abstract: folder,
    }));
    expect(end).toMatchObject({ exitCode: 0, stderr: "" });
    const results = end.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as [string, string | null]);
    expect(results.length).toBeGreaterThan(50);
    const isExcused = (name: string): boolean =>
      notHeld[isolation].some((one) => (typeof one === "string" ? one === name : one.test(name)));
    expect(results.filter(([name, got]) => got !== null && !isExcused(name))).toEqual([]);
    // Nor did anything happen that the code did not see.
    expect(connections).toEqual([]);
    expect(sleeper.exitCode ?? sleeper.signalCode).toBeNull();
    if (isolation === "process") return;
    expect(await readFile(join(folder, "secret"), "utf8")).toBe(secret);
    expect((await stat(join(folder, "secret"))).mode & 0o777).toBe(0o600);
  });
});
