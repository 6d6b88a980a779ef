/**
 * V8's flags belong to the process: the one that the runtime sets is set for a moment.
 * Its cache of compiled code belongs to all hosts.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import v8 from "node:v8";
import { afterEach, describe, expect, test, vi } from "vitest";
import * as ray from "../src/index.ts";
import { collectGarbage } from "../src/protocol/shared-memory.ts";
import { Collecting } from "./fixtures/collecting.ts";
import { sized } from "../../../test/fixtures/suite.ts";

afterEach(() => ray.shutdown());

describe("the collector", () => {
  test("leaves the flags by which V8 accepts cached code, in many threads at once", async () => {
    const tag = v8.cachedDataVersionTag();
    await ray.init({ numCpus: 6, prewarm: 0 });
    const hosts = Array.from({ length: 6 }, () => Collecting.remote());
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

describe.each(
  sized<readonly ("thread" | "process")[]>({ gate: ["thread"], full: ["thread", "process"] }),
)("compiled code of a host: %s", (isolation) => {
  test("is there for others while the host lives", async () => {
    const folder = await mkdtemp(join(tmpdir(), "compiled-code-"));
    vi.stubEnv("NODE_COMPILE_CACHE", folder);
    try {
      await ray.init({ numCpus: 1, prewarm: 0 });
      const host = Collecting.options({ isolation }).remote();
      await ray.get(host.hello.remote());
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
