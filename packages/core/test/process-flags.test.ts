/**
 * V8's flags belong to the process: what the runtime sets of them is for itself, and for a moment.
 * Its cache of compiled code belongs to all hosts.
 */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import v8 from "node:v8";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, test, vi } from "vitest";
import * as ray from "../src/index.ts";
import { collectGarbage } from "../src/protocol/shared-memory.ts";
import { withRoomToStart } from "../src/runtime/launch/room-to-start.ts";
import { Heap } from "./fixtures/heap-of-host.ts";

const MiB = 1024 * 1024;

afterEach(() => ray.shutdown());

describe("the collector", () => {
  test("leaves the flags by which V8 accepts cached code, in many threads at once", async () => {
    const tag = v8.cachedDataVersionTag();
    await ray.init({ numCpus: 6, prewarm: 0 });
    const hosts = Array.from({ length: 6 }, () => Heap.remote());
    const tags = hosts.map((host) => host.tagAfterCollection.remote());
    collectGarbage();
    await ray.get(tags);
    // Another thread may have had the flag set when one looked.
    expect(await ray.get(hosts.map((host) => host.tagAfterCollection.remote()))).toEqual(
      hosts.map(() => tag),
    );
    expect(v8.cachedDataVersionTag()).toBe(tag);
  });

  test("leaves a flag of the user's, too", async () => {
    const source = new URL("../src/protocol/shared-memory.ts", import.meta.url);
    const code = `import v8 from "node:v8";
      import { collectGarbage } from ${JSON.stringify(source.href)};
      const tag = v8.cachedDataVersionTag();
      collectGarbage();
      console.log(v8.cachedDataVersionTag() === tag, typeof gc);`;
    const { stdout } = await promisify(execFile)(process.execPath, [
      "--expose-gc",
      "--input-type=module",
      "--eval",
      code,
    ]);
    expect(stdout.trim()).toBe("true function");
  });
});

describe.each(["thread", "process"] as const)("compiled code of a host: %s", (isolation) => {
  test("is there for others while the host lives", async () => {
    const folder = await mkdtemp(join(tmpdir(), "compiled-code-"));
    vi.stubEnv("NODE_COMPILE_CACHE", folder);
    try {
      await ray.init({ numCpus: 1, prewarm: 0 });
      const host = Heap.options({ isolation }).remote();
      await ray.get(host.youngBytes.remote());
      const files = await readdir(folder, { recursive: true, withFileTypes: true });
      // Core has more than a hundred modules.
      expect(files.filter((entry) => entry.isFile()).length).toBeGreaterThan(100);
    } finally {
      vi.unstubAllEnvs();
      await ray.shutdown();
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe("the young generation", () => {
  const young = `const { parentPort } = require("node:worker_threads");
    const spaces = require("node:v8").getHeapSpaceStatistics();
    parentPort.postMessage(spaces.find((space) => space.space_name === "new_space").space_size);`;

  async function ofPlainThread(): Promise<unknown> {
    const [bytes] = (await once(new Worker(young, { eval: true }), "message")) as unknown[];
    return bytes;
  }

  test("of a host has room for its start, and that of a thread of the user's is V8's own", async () => {
    const before = await ofPlainThread();
    expect(before).toBeLessThan(8 * MiB);
    await ray.init({ numCpus: 2, prewarm: 0 });
    const hosts = [Heap.remote(), Heap.remote()];
    for (const bytes of await ray.get(hosts.map((host) => host.youngBytes.remote()))) {
      expect(bytes).toBeGreaterThanOrEqual(8 * MiB);
    }
    expect(await ofPlainThread()).toBe(before);
  });

  test("keeps the limit of a host that has one", async () => {
    await ray.init({ numCpus: 1, prewarm: 0 });
    const resourceLimits = { maxYoungGenerationSizeMb: 3 };
    const host = Heap.options({ runtimeEnv: { resourceLimits } }).remote();
    expect(await ray.get(host.youngBytes.remote())).toBeLessThanOrEqual(3 * MiB);
  });

  test("is V8's own again when a thread could not start, and after the last of several", async () => {
    const before = await ofPlainThread();
    const failing = (): never => {
      throw new Error("no thread");
    };
    expect(() => withRoomToStart(failing)).toThrow("no thread");
    expect(await ofPlainThread()).toBe(before);
    const plain = (): Worker => new Worker(young, { eval: true });
    const several = [withRoomToStart(plain), withRoomToStart(plain)];
    for (const [bytes] of await Promise.all(several.map((one) => once(one, "message")))) {
      expect(bytes).toBeGreaterThanOrEqual(8 * MiB);
    }
    expect(await ofPlainThread()).toBe(before);
  });
});
