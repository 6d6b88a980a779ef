import { receiveMessageOnPort } from "node:worker_threads";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Codec, type Encoded } from "../src/protocol/codec.ts";
import { dropSpares, limitSpares, spareBytes } from "../src/protocol/memory-pool.ts";
import type { Batch } from "../src/protocol/message.ts";
import { allocateToFill, collectGarbage, seenBytes } from "../src/protocol/shared-memory.ts";
import { threadChannel } from "../src/transport/thread.ts";

const MiB = 1024 * 1024;
const size = 2 * MiB;

const codec = new Codec({
  isReference: () => false,
  write: () => undefined,
  read: () => ({}),
  decline: () => undefined,
});

/** Bytes that the next collection frees. */
let unused = 0;

beforeAll(() => limitSpares(16 * MiB, (bytes) => void (unused += bytes)));
beforeEach(async () => {
  // Those of the test before are not to come back into this one.
  for (let turn = 0; turn < 3; turn++) await turnAfterCollection();
  dropSpares();
});
afterAll(() => {
  dropSpares();
  limitSpares(0, () => undefined);
});

/** Finalizers run in turns of their own. */
async function collected(isDone: () => boolean): Promise<void> {
  const endMs = performance.now() + 60_000;
  while (!isDone()) {
    if (performance.now() > endMs) expect.fail(`${spareBytes()} bytes are spare`);
    await turnAfterCollection();
  }
}

async function turnAfterCollection(): Promise<void> {
  collectGarbage();
  await new Promise((resolve) => setImmediate(resolve));
}

function bytesOf(mark: number, byteLength = size): Encoded {
  return codec.encode(new Uint8Array(byteLength).fill(mark), "value");
}

/** Drops what is made inside, and waits until this much is spare. */
async function dropped(make: () => unknown, spare: number): Promise<void> {
  make();
  await collected(() => spareBytes() === spare);
}

describe("memory of dropped values", () => {
  test("is used again for a value of the same size, which has its own bytes", async () => {
    await dropped(() => bytesOf(1), size);
    const seen = seenBytes();
    const again = bytesOf(2);
    expect(spareBytes()).toBe(0);
    expect(seenBytes()).toBe(seen);
    expect(new Set(codec.decode(again) as Uint8Array)).toEqual(new Set([2]));
  });

  test("serves no value of another size", async () => {
    await dropped(() => bytesOf(1), size);
    bytesOf(2, size + 8);
    expect(spareBytes()).toBe(size);
  });

  test("is not used again once somebody was given it, who may have passed it on", async () => {
    let elsewhere: Uint8Array = new Uint8Array();
    await dropped(() => {
      // A user of the memory that no collector of this thread knows of.
      elsewhere = structuredClone(codec.decode(bytesOf(3)) as Uint8Array);
      bytesOf(4);
      bytesOf(5);
    }, 2 * size);
    for (const mark of [6, 7, 8]) bytesOf(mark);
    expect(new Set(elsewhere)).toEqual(new Set([3]));
  });

  test("is not used again once it was posted to another thread", async () => {
    const { port1, port2 } = new MessageChannel();
    const channel = threadChannel(port1, () => new Promise(() => undefined));
    await dropped(() => {
      const { bytes, buffers } = bytesOf(3);
      channel.send({ bytes, buffers });
      bytesOf(4);
    }, size);
    for (const mark of [6, 7]) bytesOf(mark);
    const { message } = receiveMessageOnPort(port2) as { message: Batch };
    expect(new Set(new Uint8Array(message.buffers[0] as SharedArrayBuffer))).toEqual(new Set([3]));
    port1.close();
    port2.close();
  });

  test("is found right after its collection, before any finalizer", async () => {
    for (let count = 0; count < 4; count++) bytesOf(7);
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    expect(spareBytes()).toBe(0);
    // It has the bytes of the value before, which new memory has not.
    const memory = allocateToFill(size);
    expect(new Set(new Uint8Array(memory))).toEqual(new Set([7]));
    expect(spareBytes()).toBe(3 * size);
  });

  test("is used again within the job that drops it, and a value that is held there stays", () => {
    const held: Encoded[] = [];
    for (let mark = 1; mark <= 36; mark++) {
      const value = bytesOf(mark);
      if (mark % 12 === 0) held.push(value);
    }
    // 64 MiB were filled, so there was a collection. This memory has the bytes of an earlier value,
    // which new memory has not.
    expect(new Set(new Uint8Array(allocateToFill(size)))).not.toEqual(new Set([0]));
    expect(spareBytes()).toBeLessThanOrEqual(16 * MiB);
    expect(held.map((value) => [...new Set(codec.decode(value) as Uint8Array)])).toEqual([
      [12],
      [24],
      [36],
    ]);
  });

  test("of another size gives way where there is no room", async () => {
    await dropped(() => {
      for (let count = 0; count < 8; count++) bytesOf(1);
    }, 16 * MiB);
    const before = unused;
    await dropped(() => bytesOf(1, 3 * MiB), 15 * MiB);
    expect(unused - before).toBe(4 * MiB);
  });

  test("comes back from a value that only gave a copy of itself", async () => {
    await dropped(() => {
      const copy = codec.decode(codec.encode(new Uint8Array(size).fill(9).buffer, "value"));
      expect(copy).toBeInstanceOf(ArrayBuffer);
    }, size);
  });

  test("stays with whoever holds the value, and two values never share it", async () => {
    const held: Encoded[] = [];
    await dropped(() => bytesOf(0), size);
    for (let mark = 1; mark <= 20; mark++) {
      if (mark % 3 === 0) held.push(bytesOf(mark));
      else bytesOf(mark);
      await turnAfterCollection();
    }
    const marks = held.map((value) => [...new Set(codec.decode(value) as Uint8Array)]);
    expect(marks).toEqual([[3], [6], [9], [12], [15], [18]]);
  });

  test("is kept up to the limit, and not where values are small", async () => {
    await dropped(() => {
      for (let count = 0; count < 10; count++) bytesOf(1, 3 * MiB);
      for (let count = 0; count < 10; count++) bytesOf(1, MiB / 2);
    }, 15 * MiB);
    expect(allocateToFill(MiB / 2)).toBeInstanceOf(SharedArrayBuffer);
  });
});
