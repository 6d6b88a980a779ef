import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import * as ray from "../src/index.ts";
import { currentCaller } from "../src/caller/current.ts";
import { Codec, type Encoded } from "../src/protocol/codec.ts";
import { collectGarbage } from "../src/protocol/shared-memory.ts";
import { newBudget } from "../src/store/memory-budget.ts";
import { ObjectEntry } from "../src/store/object-entry.ts";
import { awayOf, ObjectMemory } from "../src/store/object-memory.ts";
import { DiskFull, SpillFiles } from "../src/store/spill-files.ts";

const KiB = 1024;
const MiB = 1024 * KiB;

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "object-memory-test-"));
});

afterEach(async () => {
  await Promise.all(memories.splice(0).map((memory) => memory.close()));
  rmSync(root, { recursive: true, force: true });
});

const codec = new Codec({
  isReference: () => false,
  write: () => undefined,
  read: () => ({}),
  decline: () => undefined,
});

let sequence = 0;
const memories: ObjectMemory[] = [];

function entryWith(value: Encoded): ObjectEntry {
  const entry = new ObjectEntry("owner", sequence++, "test");
  entry.resolve(value);
  return entry;
}

function bytes(mark: number, byteLength: number): Encoded {
  return codec.encode(new Uint8Array(byteLength).fill(mark), "value");
}

function memoryOf(limitBytes: number): ObjectMemory {
  const memory = new ObjectMemory({
    budget: newBudget(limitBytes),
    files: new SpillFiles(join(root, "session"), "writer"),
    describe: (error) => ({ name: error.name, message: error.message, stack: "", fields: {} }),
  });
  memories.push(memory);
  return memory;
}

/** Finalizers run in turns of their own, and files are written beside them. */
async function collected(isDone: () => boolean): Promise<void> {
  const endMs = performance.now() + 60_000;
  while (!isDone()) {
    if (performance.now() > endMs) expect.fail("it is still held");
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe("the memory of objects", () => {
  test("counts big values only, and what two of them share once", () => {
    const memory = memoryOf(100 * MiB);
    const value = bytes(1, MiB);
    const entries = [
      entryWith(value),
      entryWith(value),
      entryWith(codec.encode([1, 2, 3], "value")),
    ];
    for (const entry of entries) memory.keep(entry, true);
    expect(memory.stats).toMatchObject({ objects: 2, bytesInMemory: MiB, bytesSpilled: 0 });
  });

  test("lets those unused for longest go, and keeps those that are used", () => {
    const memory = memoryOf(10 * MiB);
    const entries = [0, 1, 2, 3].map((mark) => entryWith(bytes(mark, 2 * MiB)));
    for (const entry of entries) memory.keep(entry, true);
    memory.used(entries[0] as ObjectEntry);
    entries.push(entryWith(bytes(4, 3 * MiB)));
    memory.keep(entries[4] as ObjectEntry, true);
    const isThere = entries.map((entry) => awayOf(entry) === undefined);
    expect(isThere).toEqual([true, false, false, true, true]);
    expect(memory.stats).toMatchObject({ bytesInMemory: 7 * MiB, bytesSpilled: 4 * MiB });
  });

  test("brings a value back once for all who ask, and holds it while they look", async () => {
    const memory = memoryOf(2 * MiB);
    const entries = [0, 1, 2, 3].map((mark) => entryWith(bytes(mark, MiB)));
    for (const entry of entries) memory.keep(entry, true);
    const first = entries[0] as ObjectEntry;
    const seen: unknown[] = [];
    const look = (): void => {
      const { outcome } = first;
      if (outcome?.ok === true && outcome.value !== undefined)
        seen.push((codec.decode(outcome.value) as Uint8Array)[MiB - 1]);
    };
    await Promise.all([memory.bring([first], look), memory.bring([first], look)]);
    expect(seen).toEqual([0, 0]);
    expect(memory.stats.restores).toBe(1);
  });

  test("all of them come back although they do not fit together", async () => {
    const memory = memoryOf(2 * MiB);
    const entries = Array.from({ length: 10 }, (_, mark) => entryWith(bytes(mark, MiB)));
    for (const entry of entries) memory.keep(entry, true);
    let marks: unknown[] = [];
    await memory.bring(entries, () => {
      marks = entries.map(({ outcome }) =>
        outcome?.ok === true && outcome.value !== undefined
          ? (codec.decode(outcome.value) as Uint8Array)[5]
          : undefined,
      );
    });
    expect(marks).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });

  test("forgets what nobody holds, in memory and on disk", async () => {
    const memory = memoryOf(2 * MiB);
    let entries = Array.from({ length: 10 }, (_, mark) => entryWith(bytes(mark, MiB)));
    // A loop of this function would keep the last one.
    entries.forEach((entry) => memory.keep(entry, true));
    expect(readdirSync(join(root, "session")).length).toBeGreaterThan(0);
    entries = [];
    await collected(() => memory.stats.objects === 0);
    expect(memory.stats).toMatchObject({ objects: 0, bytesInMemory: 0, bytesSpilled: 0 });
    await collected(() => readdirSync(join(root, "session")).length === 0);
  });

  test("spills in the background above four fifths, without a word to the caller", async () => {
    const memory = memoryOf(10 * MiB);
    const entries = Array.from({ length: 9 }, (_, mark) => entryWith(bytes(mark, MiB)));
    for (const entry of entries) memory.keep(entry, true);
    expect(memory.stats).toMatchObject({ bytesInMemory: 9 * MiB, spills: 0 });
    await collected(() => memory.stats.spills > 0);
    expect(memory.stats).toMatchObject({ bytesInMemory: 7 * MiB, bytesSpilled: 2 * MiB });
    expect(entries).toHaveLength(9);
  });

  test("a value is written once, however often it leaves", async () => {
    const memory = memoryOf(2 * MiB);
    const entries = [0, 1, 2, 3].map((mark) => entryWith(bytes(mark, MiB)));
    for (const entry of entries) memory.keep(entry, true);
    for (let round = 0; round < 12; round++) {
      await memory.bring([entries[round % 4] as ObjectEntry], () => undefined);
      const { spills } = memory.stats;
      await collected(
        () => memory.stats.bytesInMemory <= 1.6 * MiB || memory.stats.spills > spills,
      );
    }
    const written = readdirSync(join(root, "session")).length;
    expect(written).toBeLessThanOrEqual(4);
  });
});

test("a big text leaves no memory with the packer", async () => {
  const sizes = { before: process.memoryUsage().arrayBuffers, after: 0 };
  for (const value of ["x".repeat(32 * MiB), { text: "y".repeat(32 * MiB), list: [new Date()] }]) {
    expect(codec.encode(value, "value").end).toBeGreaterThan(32 * MiB);
    codec.encode("small", "value");
  }
  await collected(() => {
    sizes.after = process.memoryUsage().arrayBuffers;
    return sizes.after < sizes.before + 8 * MiB;
  });
});

describe("spill files", () => {
  test("hold several values, and go with the last of them", async () => {
    const files = new SpillFiles(root, "writer");
    const values = [1, 2, 3].map((mark) => [
      new Uint8Array(KiB).fill(mark),
      new Uint8Array(10).fill(mark),
    ]);
    const extents = await files.write(values);
    expect(readdirSync(root)).toEqual(["writer-0"]);
    const back = [new Uint8Array(KiB), new Uint8Array(10)];
    await files.read(extents[1] as (typeof extents)[0], back);
    expect(back).toEqual(values[1]);
    for (const extent of extents.slice(0, 2)) files.release(extent);
    expect(readdirSync(root)).toEqual(["writer-0"]);
    files.release(extents[2] as (typeof extents)[0]);
    await collected(() => readdirSync(root).length === 0);
  });

  test("take more pieces than one write does, with and without waiting", async () => {
    const files = new SpillFiles(root, "writer");
    const values = Array.from({ length: 3000 }, (_, mark) => [new Uint8Array(7).fill(mark)]);
    const written = [await files.write(values), files.writeSync(values)];
    for (const extents of written) {
      for (const index of [0, 511, 512, 1024, 2999]) {
        const back = new Uint8Array(7);
        await files.read(extents[index] as (typeof extents)[0], [back]);
        expect(back).toEqual((values[index] as Uint8Array[])[0]);
      }
    }
  });

  test("a file that is shorter than it was is an error, not a value", async () => {
    const files = new SpillFiles(root, "writer");
    const [extent] = files.writeSync([[new Uint8Array(KiB)]]);
    const back = [new Uint8Array(2 * KiB)];
    await expect(files.read(extent as NonNullable<typeof extent>, back)).rejects.toThrow("ends at");
  });

  test("a disk that has no room says so, and keeps no half of a file", async () => {
    const files = new SpillFiles(root, "writer");
    // No disk has room for this; its length is known before a byte of it is written.
    const huge = Array.from({ length: 10 }, () => [
      new Uint8Array(new SharedArrayBuffer(64 * MiB)),
    ]);
    const values = Array.from({ length: 4000 }, () => huge).flat();
    await expect(files.write(values)).rejects.toBeInstanceOf(DiskFull);
    expect(() => files.writeSync(values)).toThrow(DiskFull);
    expect(readdirSync(root)).toEqual([]);
  });
});

test("what an actor that died kept is given back to the budget of the process", async () => {
  await ray.init({ numCpus: 2, prewarm: 0, objectStoreMemory: 100 * MiB, spillDirectory: root });
  try {
    const { Keeper } = await import("./fixtures/keeper.ts");
    const memory = currentCaller()?.objects.memory;
    const keeper = Keeper.remote();
    await ray.get(keeper.hold.remote(4 * MiB));
    expect(memory?.stats.bytesInMemory).toBe(0);
    expect(memory?.bytesOfProcess).toBe(4 * MiB);
    await ray.kill(keeper);
    expect(memory?.bytesOfProcess).toBe(0);
  } finally {
    await ray.shutdown();
  }
});
