import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { addOne, Maker, makeNoted } from "../fixtures/makers.ts";
import { block, markOf } from "../fixtures/objects.ts";

const MiB = 1024 * 1024;

const caught = (ref: ray.ObjectRef): Promise<unknown> =>
  ray.get(ref).then(
    () => expect.fail("expected a rejection"),
    (error: unknown) => error,
  );

/** Only a process can lose what it has made: threads share their memory with the driver. */
describe("values of a process that is killed", () => {
  let root: string;
  let notes: string;

  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), "reconstruction-test-"));
    notes = join(root, "notes");
    await ray.init({ numCpus: 2, prewarm: 0 });
  });

  afterEach(async () => {
    await ray.shutdown();
    rmSync(root, { recursive: true, force: true });
  });

  /** Ends the processes that ran the tasks so far. Returns how many tasks that were. */
  function killWorkers(): number {
    const lines = readFileSync(notes, "utf8").trim().split("\n");
    for (const pid of new Set(lines.map((line) => Number(line.split(" ")[1])))) {
      try {
        process.kill(pid, "SIGKILL");
      } catch (error) {
        // It was killed before.
        if ((error as { code?: string }).code !== "ESRCH") throw error;
      }
    }
    return lines.length;
  }

  test("test_reconstruction::test_basic_reconstruction: a task's result is made again for who gets it and for who needs it as an argument", async () => {
    const lost = makeNoted.remote(notes, 1, MiB);
    await ray.wait([lost]);
    expect(killWorkers()).toBe(1);
    expect(markOf(await ray.get(addOne.remote(notes, lost)))).toBe(2);
    expect(markOf(await ray.get(lost))).toBe(1);

    const final = makeNoted.options({ maxRetries: 0 }).remote(notes, 3, MiB);
    await ray.wait([final]);
    killWorkers();
    expect(await caught(final)).toMatchObject({ reason: "retries-disabled" });
  });

  test("test_reconstruction::test_reconstruction_put: what a process has put is lost with it, and a put of the driver is not", async () => {
    const maker = Maker.remote();
    const { ref } = await ray.get(maker.put.remote(1, MiB));
    const own = ray.put(block(2, MiB));
    expect(await caught(maker.end.remote())).toBeInstanceOf(ray.ActorDiedError);
    expect(await caught(ref)).toBeInstanceOf(ray.ObjectLostError);
    expect(markOf(await ray.get(own))).toBe(2);
  });

  test("test_reconstruction::test_basic_reconstruction_actor_task: an actor's result is made again only if its calls may be", async () => {
    const once = Maker.options({ maxRestarts: 1 }).remote();
    const lost = once.make.remote(1, MiB);
    await ray.wait([lost]);
    process.kill(await ray.get(once.pid.remote()), "SIGKILL");
    expect(await caught(lost)).toBeInstanceOf(ray.ObjectLostError);

    const again = Maker.options({ maxRestarts: 1, maxTaskRetries: 1 }).remote();
    const remade = again.make.remote(2, MiB);
    await ray.wait([remade]);
    process.kill(await ray.get(again.pid.remote()), "SIGKILL");
    expect(markOf(await ray.get(remade))).toBe(2);
  });
});
