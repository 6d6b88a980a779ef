/**
 * Python actors of a real Ray, called by TypeScript. In the full suite alone, because it asks PyPI
 * for Ray, and starts a cluster.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { Counter, type CounterClass } from "../../../../test/fixtures/on-cluster.ts";
import { workspace } from "../../../rayling/test/command.ts";
import { runProgram } from "../../../rayling/test/python/python-commands.ts";
import { oneCluster } from "./one-cluster.ts";

vi.setConfig({ testTimeout: 150_000, hookTimeout: 900_000 });

const { session, there } = oneCluster({ nodes: [{ num_cpus: 2 }, { num_cpus: 2 }] });

interface Shelf {
  put(name: string, value?: unknown): number;
  get(name: string): unknown;
  double(values: Float32Array): Float32Array;
  pid(): number;
  end(): void;
}

const source = `
import os

class Shelf:
    def __init__(self, size):
        if size < 0:
            raise ValueError("a shelf has a size")
        self.values = {}

    def put(self, name, value=None):
        self.values[name] = value
        return len(self.values)

    def get(self, name):
        return self.values[name]

    def double(self, values):
        return values * 2

    def pid(self):
        return os.getpid()

    def end(self):
        os._exit(1)
`;

let workingDir = "";

beforeAll(async () => {
  workingDir = await mkdtemp(join(tmpdir(), "rayling-shelf-"));
  await writeFile(join(workingDir, "shelves.py"), source);
});

afterAll(() => rm(workingDir, { recursive: true }));

test("an actor by import path: values, arrays, and errors with Python's traceback", async ({
  skip,
}) => {
  const running = await session(skip);
  const Shelves = ray.python<Shelf>("shelves:Shelf").options({ workingDir, numCpus: 1 });
  const shelf = Shelves.remote(3);
  const puts = ["a", "b", "c"].map((name) => shelf.put.remote(name, ray.keywords({ value: name })));
  expect(await ray.get(puts)).toEqual([1, 2, 3]);
  expect(await ray.get(shelf.get.remote("b"))).toBe("b");
  expect(await ray.get(shelf.double.remote(new Float32Array([1, 2.5])))).toEqual(
    new Float32Array([2, 5]),
  );
  await expect
    .poll(async () => (await running.do<Record<string, number>>("available"))["CPU"])
    .toBe(3);
  const missing: unknown = await ray.get(shelf.get.remote("z")).catch((error: unknown) => error);
  expect(missing).toBeInstanceOf(ray.PythonTaskError);
  expect(missing).toMatchObject({
    message: "Shelf.get raised KeyError: 'z'",
    cause: { name: "KeyError", traceback: expect.stringContaining("shelves.py") },
  });
  const none: unknown = await ray.get(Shelves.remote(-1).pid.remote()).catch((one: unknown) => one);
  expect(none).toBeInstanceOf(ray.ActorDiedError);
  expect(none).toMatchObject({
    cause: { traceback: expect.stringContaining("a shelf has a size") },
  });
});

test("maxRestarts and maxTaskRetries are Ray's; a killed actor is dead", async ({ skip }) => {
  await session(skip);
  const lasting = { workingDir, maxRestarts: 1, maxTaskRetries: 1 };
  const shelf = ray.python<Shelf>("shelves:Shelf").options(lasting).remote(3);
  const before = await ray.get(shelf.pid.remote());
  process.kill(before, "SIGKILL");
  await expect
    .poll(() => ray.get(shelf.pid.remote()).catch(() => before), { timeout: 60_000 })
    .not.toBe(before);
  await ray.kill(shelf);
  await expect(ray.get(shelf.pid.remote())).rejects.toThrow(ray.ActorDiedError);
});

test("a detached actor is found by name: by a later session, and by Python", async ({ skip }) => {
  const running = await session(skip, { namespace: "shop" });
  const options = { workingDir, name: "shelf", lifetime: "detached" } as const;
  const shelf = ray.python<Shelf>("shelves:Shelf").options(options).remote(3);
  expect(await ray.get(shelf.put.remote("a", 1))).toBe(1);
  await ray.shutdown();
  await session(skip, { namespace: "shop" });
  const same = await ray.getActor<Shelf>("shelf");
  expect(await ray.get(same.put.remote("b", 2))).toBe(2);
  const made = ray.python<Shelf>("shelves:Shelf").options({ ...options, getIfExists: true });
  expect(await ray.get(made.remote(3).put.remote("c", 3))).toBe(3);
  const names = await running.do<{ name: string }[]>(
    "run",
    "answer = ray.util.list_named_actors(all_namespaces=True)",
  );
  expect(names).toContainEqual({ namespace: "shop", name: "shelf" });
  await ray.kill(ray.python("shelf"));
  await expect
    .poll(() => ray.getActor("shelf").catch((error: Error) => error.message))
    .toMatch(/no actor named "shelf"/);
});

test("a detached TypeScript actor outlives its session: drivers and Python find it by its name", async ({
  skip,
}) => {
  const running = await session(skip, { namespace: "shop" });
  const Till = Counter.options({ lifetime: "detached", name: "till", maxRestarts: 1, numCpus: 1 });
  const till = Till.remote();
  expect(await ray.get([till.add.remote(1), till.add.remote(2)])).toEqual([1, 3]);
  await expect(ray.get(till.refuse.remote("no more"))).rejects.toMatchObject({
    message: "till.refuse raised RangeError: no more",
    cause: { name: "RangeError", traceback: expect.stringContaining("on-cluster.ts") },
  });
  const taken = ray.get(Till.remote().add.remote(1));
  await expect(taken).rejects.toThrow(ray.ActorAlreadyExistsError);
  expect(() => Counter.options({ lifetime: "detached", isolation: "thread" }).remote()).toThrow(
    ray.InvalidOptionError,
  );
  await ray.shutdown();

  expect(await running.do("run", askTill)).toBe(8);

  await session(skip, { namespace: "market" });
  expect(await ray.listNamedActors()).toEqual([]);
  const everywhere = await ray.listNamedActors({ allNamespaces: true });
  expect(everywhere).toContainEqual({ name: "till", namespace: "shop" });
  await expect(ray.getActor("till")).rejects.toThrow(ray.ActorNotFoundError);
  const far = await ray.getActor<CounterClass>("till", { namespace: "shop" });
  expect(await ray.get(far.add.remote(0))).toBe(8);
  await ray.shutdown();

  await session(skip, { namespace: "shop" });
  expect(await ray.listNamedActors()).toEqual([{ name: "till", namespace: "shop" }]);
  const same = await ray.getActor<CounterClass>("till");
  expect(await ray.get(same.add.remote(1))).toBe(9);
  const again = Till.options({ getIfExists: true }).remote();
  expect(await ray.get(again.add.remote(1))).toBe(10);
  // It begins anew after a crash, as in Ray.
  const before = await ray.get(same.pid.remote());
  process.kill(before, "SIGKILL");
  await expect.poll(() => ray.get(same.pid.remote()).catch(() => before)).not.toBe(before);
  expect(await ray.get(same.add.remote(1))).toBe(1);
  await ray.kill(same);
  await expect
    .poll(() => ray.getActor("till").catch((error: Error) => error.message))
    .toMatch(/no actor named "till"/);
});

const askTill = `
import sys
sys.path.insert(0, ${JSON.stringify(join(workspace, "python/src"))})
answer = ray.get(ray.get_actor("till", namespace="shop").add.remote(5))
`;

test("rayling run --on-ray runs the example", async ({ skip }) => {
  const running = there(skip);
  const main = join(workspace, "packages/rayling/dist/cli/main.js");
  const script = join(workspace, "examples/on-ray/python-actor.ts");
  const args = [main, "run", "--on-ray", running.url, script];
  const { stdout } = await runProgram(process.execPath, args);
  expect(stdout).toContain(
    "Python has 3 numbers\ntheir mean is 13.2 ms\nTally.mean raised KeyError",
  );
  expect(stdout).toMatch(/File ".*tally\.py", line \d+, in mean/);
});
