import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "rayling";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { block, BlockKeeper, makeBlock, markOf, readBlock } from "../fixtures/objects.ts";
import { seededRandom } from "../servers/seeded.ts";

const MiB = 1024 * 1024;

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "objects-test-"));
});

afterEach(async () => {
  await ray.shutdown();
  rmSync(root, { recursive: true, force: true });
});

/** The files of the session that runs. */
function files(): string[] {
  return readdirSync(root).flatMap((name) => readdirSync(join(root, name)));
}

describe("a working set of five times the limit", () => {
  beforeEach(() =>
    ray.init({ numCpus: 2, prewarm: 0, objectStoreMemory: 8 * MiB, spillDirectory: root }),
  );

  test("is put, comes back in random order, and leaves no file", async () => {
    const random = seededRandom(1);
    const sizes = Array.from({ length: 60 }, () => 8 * Math.floor((random() * 1.3 * MiB) / 8 + 1));
    const refs = sizes.map((size, mark) => ray.put({ mark, values: block(mark, size) }));
    expect(files().length).toBeGreaterThan(0);
    for (let round = 0; round < 200; round++) {
      const index = Math.floor(random() * refs.length);
      const { mark, values } = await ray.get(refs[index] as (typeof refs)[number]);
      expect([mark, markOf(values), values.byteLength]).toEqual([index, index, sizes[index]]);
    }
    const all = await ray.get(refs);
    expect(all.map(({ values }) => markOf(values))).toEqual(refs.map((_, index) => index));
    await ray.shutdown();
    expect(readdirSync(root)).toEqual([]);
  });

  test("is made by tasks, and read as arguments of tasks and actors", async () => {
    const random = seededRandom(2);
    const keeper = BlockKeeper.remote();
    const refs = Array.from({ length: 40 }, (_, mark) =>
      mark % 2 === 0 ? makeBlock.remote(mark, MiB) : keeper.make.remote(mark, MiB),
    );
    await ray.wait(refs, { numReturns: refs.length });
    const marks = Array.from({ length: 60 }, () => Math.floor(random() * refs.length));
    const read = marks.map((mark, index) => {
      const ref = refs[mark] as (typeof refs)[number];
      return index % 2 === 0 ? readBlock.remote(ref) : keeper.read.remote(ref);
    });
    expect(await ray.get(read)).toEqual(marks);
    expect(files().length).toBeGreaterThan(0);
  });

  test("is read by an actor that was given the refs", async () => {
    const keeper = BlockKeeper.remote();
    const refs = Array.from({ length: 40 }, (_, mark) => ray.put(block(mark, MiB)));
    await ray.get(keeper.keep.remote(refs));
    expect(await ray.get(keeper.readGiven.remote())).toEqual(refs.map((_, mark) => mark));
  });

  test("is kept by an actor in its own store, and the room is free when it ends", async () => {
    const keeper = BlockKeeper.remote();
    await ray.get(keeper.fill.remote(40, MiB));
    expect(files().length).toBeGreaterThan(0);
    const random = seededRandom(3);
    for (let round = 0; round < 40; round++) {
      const index = Math.floor(random() * 40);
      expect(await ray.get(keeper.readOwn.remote(index))).toBe(index);
    }
    await ray.kill(keeper);
    // The next actor of that size needs the room that the first one had.
    const next = BlockKeeper.remote();
    await ray.get(next.fill.remote(4, MiB));
    expect(await ray.get(next.readOwn.remote(3))).toBe(3);
  });

  test("is long texts and values inside values", async () => {
    const text = "é".repeat(MiB);
    const refs = Array.from({ length: 12 }, (_, index) =>
      ray.put({ index, text, list: [new Float32Array(MiB / 8).fill(index)] }),
    );
    const values = await ray.get(refs);
    for (const [index, value] of values.entries()) {
      expect(value.text === text).toBe(true);
      expect([value.index, value.list[0]?.[7]]).toEqual([index, index]);
    }
  });

  test("stays readable to who looks at it while it is on disk", async () => {
    const first = ray.put(block(1000, MiB));
    const held = await ray.get(first);
    const refs = Array.from({ length: 40 }, (_, mark) => ray.put(block(mark, MiB)));
    expect(markOf(held)).toBe(1000);
    expect(markOf(await ray.get(first))).toBe(1000);
    expect(markOf(await ray.get(refs[0] as (typeof refs)[number]))).toBe(0);
  });

  test("counts as ready for wait, and a get with a time limit brings it or says that it is late", async () => {
    const refs = Array.from({ length: 40 }, (_, mark) => ray.put(block(mark, MiB)));
    const { ready } = await ray.wait(refs, { numReturns: refs.length, timeoutMs: 0 });
    expect(ready).toHaveLength(refs.length);
    expect((await ray.get(refs, { timeoutMs: 60_000 })).map(markOf)).toEqual(
      refs.map((_, mark) => mark),
    );
  });
});

test("what is dropped is given back to a loop that leaves no turn to anybody", async () => {
  await ray.init({ numCpus: 1, prewarm: 0, objectStoreMemory: 512 * MiB });
  const values = new Uint8Array(8 * MiB);
  const first = new WeakRef(await ray.get(ray.put(values)));
  // Each of these goes on from promise to promise.
  for (let round = 0; round < 40; round++) await ray.get(ray.put(values));
  expect(first.deref()).toBeUndefined();
});

test("memory of the user's own is never moved: both sides go on sharing it", async () => {
  await ray.init({ numCpus: 1, prewarm: 0, objectStoreMemory: 2 * MiB, spillDirectory: root });
  const shared = new SharedArrayBuffer(MiB);
  const ref = ray.put({ counter: new Int32Array(shared) });
  const others = Array.from({ length: 20 }, (_, mark) => ray.put(block(mark, MiB)));
  const { counter } = await ray.get(ref);
  counter[0] = 7;
  expect(new Int32Array(shared)[0]).toBe(7);
  expect(others).toHaveLength(20);
});

test("the directory is the user's alone, and is not made before it is needed", async () => {
  await ray.init({ numCpus: 1, prewarm: 0, objectStoreMemory: 2 * MiB, spillDirectory: root });
  expect(readdirSync(root)).toEqual([]);
  const refs = Array.from({ length: 8 }, (_, mark) => ray.put(block(mark, MiB)));
  const [directory] = readdirSync(root);
  expect(statSync(join(root, directory as string)).mode & 0o777).toBe(0o700);
  for (const name of files()) {
    expect(statSync(join(root, directory as string, name)).mode & 0o777).toBe(0o600);
  }
  expect(refs).toHaveLength(8);
});

test("what a killed process left is removed at the next start, and what a living one has is not", async () => {
  const script = new URL("../fixtures/drivers/spills-and-waits.ts", import.meta.url);
  const children = [0, 1].map(() =>
    spawn(process.execPath, [script.pathname, root], { stdio: ["ignore", "pipe", "inherit"] }),
  );
  await Promise.all(children.map((child) => once(child.stdout, "data")));
  const [killed, living] = children as [(typeof children)[0], (typeof children)[0]];
  expect(readdirSync(root)).toHaveLength(2);
  killed.kill("SIGKILL");
  await once(killed, "exit");
  await ray.init({ numCpus: 1, prewarm: 0, spillDirectory: root });
  await ray.shutdown();
  const left = readdirSync(root);
  expect(left).toHaveLength(1);
  expect(left[0]).toContain(`-${living.pid}-`);
  living.kill("SIGKILL");
  await once(living, "exit");
});

test("a process that ends without a shutdown leaves no files", async () => {
  const script = new URL("../fixtures/drivers/spills-and-waits.ts", import.meta.url);
  const child = spawn(process.execPath, [script.pathname, root, "exit"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child, "exit");
  expect(child.exitCode).toBe(0);
  expect(readdirSync(root)).toEqual([]);
});

test("a put that does not fit and cannot be written fails, and nothing that was kept is lost", async () => {
  const directory = join(root, "disk");
  mkdirSync(directory);
  await ray.init({
    numCpus: 1,
    prewarm: 0,
    objectStoreMemory: 4 * MiB,
    spillDirectory: directory,
  });
  rmSync(directory, { recursive: true });
  writeFileSync(directory, "in the way");
  const refs = [0, 1, 2].map((mark) => ray.put(block(mark, MiB)));
  const error = await rejection(() => ray.put(block(3, 2 * MiB)));
  expect(error).toBeInstanceOf(ray.ObjectStoreFullError);
  expect(error).toMatchObject({ code: "OBJECT_STORE_FULL", label: "put", byteLength: 2 * MiB });
  expect((await ray.get(refs)).map(markOf)).toEqual([0, 1, 2]);
  // As soon as there is a place to write to again, it fits.
  rmSync(directory);
  mkdirSync(directory);
  const last = ray.put(block(3, 2 * MiB));
  expect((await ray.get([...refs, last])).map(markOf)).toEqual([0, 1, 2, 3]);
});

test("a value whose file is gone is lost, with its name, for who gets it and for who was to read it", async () => {
  await ray.init({ numCpus: 1, prewarm: 0, objectStoreMemory: 4 * MiB, spillDirectory: root });
  const refs = Array.from({ length: 12 }, (_, mark) => ray.put(block(mark, MiB)));
  const [directory] = readdirSync(root);
  for (const name of files()) rmSync(join(root, directory as string, name));
  const first = refs[0] as (typeof refs)[number];
  const passed = readBlock.remote(first);
  const error = await rejection(() => ray.get(first));
  expect(error).toBeInstanceOf(ray.ObjectLostError);
  expect(error).toMatchObject({ code: "OBJECT_LOST", objectId: first.id });
  await expect(ray.get(passed)).rejects.toBeInstanceOf(ray.ObjectLostError);
});

describe("in development mode", () => {
  test("a value that was changed is named, with what made it, to who gets it", async () => {
    await ray.init({ numCpus: 1, prewarm: 0, development: true });
    // Where memory is shared: a process would write to a copy of its own.
    const keeper = BlockKeeper.options({ isolation: "thread" }).remote();
    const put = ray.put(block(1, MiB));
    const made = keeper.make.remote(2, MiB);
    expect((await ray.get([put, made])).map(markOf)).toEqual([1, 2]);
    (await ray.get(put))[9] = 1;
    await ray.get(keeper.spoil.remote(made));
    for (const [ref, label] of [
      [put, "put"],
      [made, "BlockKeeper.make"],
    ] as const) {
      const error = await rejection(() => ray.get(ref));
      expect(error).toBeInstanceOf(ray.ObjectMutatedError);
      expect(error).toMatchObject({ code: "OBJECT_MUTATED", objectId: ref.id, label });
    }
  });

  test("so is one that an actor keeps in its own store", async () => {
    await ray.init({ numCpus: 1, prewarm: 0, development: true });
    const keeper = BlockKeeper.remote();
    await ray.get(keeper.fill.remote(1, MiB));
    expect(await ray.get(keeper.readOwn.remote(0))).toBe(0);
    await ray.get(keeper.spoilOwn.remote(0));
    await expect(ray.get(keeper.readOwn.remote(0))).rejects.toThrow(ray.ObjectMutatedError);
  });

  test("one that was changed and dropped is warned of", async () => {
    await ray.init({ numCpus: 1, prewarm: 0, development: true });
    const warnings: unknown[] = [];
    process.once("warning", (warning) => warnings.push(warning));
    await spoilAndDrop();
    // The collector is driven here, so that the wait is for an event.
    for (let round = 0; warnings.length === 0; round++) {
      if (round === 200) expect.fail("there was no warning");
      globalThis.gc?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(warnings[0]).toMatchObject({ code: "OBJECT_MUTATED", label: "put" });
  });

  test("values go to disk and come back as they were", async () => {
    await ray.init({
      numCpus: 1,
      prewarm: 0,
      development: true,
      objectStoreMemory: 4 * MiB,
      spillDirectory: root,
    });
    const refs = Array.from({ length: 12 }, (_, mark) => ray.put(block(mark, MiB)));
    for (const ref of [...refs, ...refs]) markOf(await ray.get(ref));
    const first = refs[0] as (typeof refs)[number];
    (await ray.get(first))[1] = 1;
    await expect(ray.get(first)).rejects.toThrow(ray.ObjectMutatedError);
  });
});

test("development mode is on where the environment says so", async () => {
  process.env["RAYLING_DEV"] = "1";
  try {
    await ray.init({ numCpus: 1, prewarm: 0 });
  } finally {
    delete process.env["RAYLING_DEV"];
  }
  const ref = ray.put(block(1, MiB));
  (await ray.get(ref))[9] = 5;
  await expect(ray.get(ref)).rejects.toThrow(ray.ObjectMutatedError);
});

test("outside development mode nobody looks: a change is seen by all", async () => {
  await ray.init({ numCpus: 1, prewarm: 0, development: false });
  const ref = ray.put(block(1, MiB));
  (await ray.get(ref))[9] = 5;
  expect((await ray.get(ref))[9]).toBe(5);
});

async function spoilAndDrop(): Promise<void> {
  const values = await ray.get(ray.put(block(1, MiB)));
  values[9] = 1;
}

test.each([
  ["development", { development: "yes" as never }],
  ["objectStoreMemory", { objectStoreMemory: 1000 }],
  ["objectStoreMemory", { objectStoreMemory: "1 GB" as never }],
  ["spillDirectory", { spillDirectory: "/nowhere/at/all" }],
  ["spillDirectory", { spillDirectory: process.execPath }],
])("a bad %s is refused", async (option, options) => {
  await expect(ray.init(options)).rejects.toMatchObject({ code: "INVALID_OPTION", option });
});

async function rejection(action: () => unknown): Promise<unknown> {
  try {
    await action();
  } catch (error) {
    return error;
  }
  return expect.fail("it did not fail");
}
