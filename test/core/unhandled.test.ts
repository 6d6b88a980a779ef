import { setImmediate } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import * as ray from "@rayling/core";
import { Failing, Gate, type GateClass } from "../fixtures/inside.ts";

const told: string[] = [];
const onWarning = (warning: Error): void => {
  if (warning.message.startsWith("Unhandled error")) told.push(warning.message);
};
let actor: ray.ActorHandle<GateClass>;

beforeAll(async () => {
  await ray.init({ numCpus: 1, prewarm: 0 });
  process.on("warning", onWarning);
  actor = Gate.remote();
});
afterAll(async () => {
  process.off("warning", onWarning);
  await ray.shutdown();
});
beforeEach(() => void told.splice(0));
afterEach(() => vi.unstubAllEnvs());

async function collectUntil(done: () => boolean): Promise<void> {
  while (!done()) {
    globalThis.gc?.();
    await setImmediate();
  }
}

/** Until what was dropped later than all that is looked for is told of. */
async function collect(): Promise<void> {
  vi.unstubAllEnvs();
  await failAndDrop("dropped last");
  await tells("dropped last");
  const others = told.filter((text) => !text.includes("dropped last"));
  told.splice(0, told.length, ...others);
}

function cyclic(): unknown[] {
  const list: unknown[] = [1];
  list.push(list);
  return list;
}

const of = (part: string): string[] => told.filter((text) => text.includes(part));
const tells = (part: string): Promise<void> => collectUntil(() => of(part).length > 0);

/** Makes the call, waits until it has failed, and drops its ref. */
async function failAndDrop(message: string): Promise<void> {
  await ray.wait([actor.fail.remote(message)]);
}

describe("an error that nobody looked at", () => {
  test("is told once when the last ref is gone, with the name of the call and its stack", async () => {
    await failAndDrop("nobody looks");
    await tells("nobody looks");
    expect(told[0]).toMatch(
      /^Unhandled error of a call .*: GateClass\.fail: RangeError: nobody looks\n {4}at GateClass\.fail/,
    );
    await collect();
    expect(of("nobody looks")).toHaveLength(1);
  });

  test("is told, too, when the call was not finished while its ref was dropped", async () => {
    void actor.fail.remote("dropped before");
    await ray.get(actor.quick.remote());
    await tells("dropped before");
    expect(of("dropped before")).toHaveLength(1);
  });

  test("is told when the worker of a task crashed", async () => {
    await ray.wait([Failing.crash.remote()]);
    await tells("WorkerCrashedError");
    expect(of("WorkerCrashedError")).toHaveLength(1);
  });

  test("is not told when it was awaited, before or after it failed", async () => {
    expect(await ray.get(actor.fail.remote("awaited")).catch(String)).toContain("awaited");
    await (async () => {
      const ref = actor.fail.remote("later");
      await ray.wait([ref]);
      expect(await ray.get(ref).catch(String)).toContain("later");
    })();
    await collect();
    expect(told).toEqual([]);
  });

  test("is not told when a get of a list failed with another one first", async () => {
    // expect().rejects would hold the refs until the test is over.
    const refs = (): ray.ObjectRef[] => [actor.fail.remote("first"), actor.fail.remote("second")];
    expect(await ray.get(refs()).catch(String)).toContain("first");
    await ray.get(actor.quick.remote());
    await collect();
    expect(told).toEqual([]);
  });

  test("goes on with a ref that was passed as an argument: the last call of the chain tells of it", async () => {
    await ray.wait([actor.quick.remote(actor.fail.remote("in a chain"))]);
    await tells("in a chain");
    await collect();
    expect(of("in a chain").map((text) => text.split(": ")[1])).toEqual(["GateClass.quick"]);
  });

  test("is not told of calls that a dead actor did not answer", async () => {
    await (async () => {
      const doomed = Gate.remote();
      await ray.get(doomed.quick.remote());
      const pending = doomed.pass.remote();
      void ray.kill(doomed);
      await ray.wait([pending]);
    })();
    await collect();
    expect(told).toEqual([]);
  });

  test("is not told of a stream that was read to its failure", async () => {
    const errors: unknown[] = [];
    for await (const ref of actor.stream.remote()) {
      await ray.get(ref).catch((error: unknown) => errors.push(error));
    }
    await collect();
    expect([errors.length, told.length]).toEqual([1, 0]);
  });

  test.each<[string, () => unknown, string]>([
    ["a big integer", () => 5n, "5"],
    ["one inside", () => ({ rows: [5n], n: 5n }), "{ rows: [Array], n: 5n }"],
    ["a ref", () => ({ ref: ray.put(1) }), "{ ref: "],
    ["a handle", () => ({ actor }), "{ actor: "],
    ["a map", () => new Map([[1, 2]]), "an instance of Map"],
    ["a list inside itself", cyclic, "<ref *1> [ 1, [Circular *1] ]"],
  ])("may be any value that was thrown: %s", async (_, value, shown) => {
    const other = actor.quick.remote(1);
    await ray.wait([actor.throws.remote(value())]);
    for await (const ref of actor.streamThat.remote(value())) {
      await ray.get(ref).catch(() => undefined);
    }
    await tells("GateClass.throws");
    expect(of("GateClass.throws")[0]).toContain(`: GateClass.throws: threw ${shown}`);
    expect(await ray.get([other, actor.quick.remote(2)])).toEqual([1, 2]);
    await expect(ray.get(actor.throws.remote(value()))).rejects.toThrow(
      `GateClass.throws threw a non-error: ${shown}`,
    );
  });

  test("is not told with RAYLING_IGNORE_UNHANDLED_ERRORS=1", async () => {
    vi.stubEnv("RAYLING_IGNORE_UNHANDLED_ERRORS", "1");
    await failAndDrop("ignored");
    await collect();
    expect(told).toEqual([]);
  });

  test("is told at shutdown, when its ref is still there", async () => {
    const ref = actor.fail.remote("until the end");
    await ray.wait([ref]);
    await ray.shutdown();
    await setImmediate();
    expect(of("until the end")).toHaveLength(1);
    expect(ref.id).toContain("driver-");
  });
});
