import { afterEach, describe, expect, test, vi } from "vitest";
import { Codec, giveBackLent } from "../src/protocol/codec.ts";
import { LentMemory } from "../src/protocol/lent-memory.ts";
import { type AnyArguments, encodeArguments } from "../src/caller/calls/call-arguments.ts";
import { followGlobals } from "./fixtures/follow-globals.ts";

followGlobals();

const codec = new Codec({
  isReference: () => false,
  write: () => undefined,
  read: () => ({}),
  decline: () => undefined,
});
const bytesOf = (mark: number, size = 16_384): Uint8Array => new Uint8Array(size).fill(mark);
const decoded = ({ values }: Pick<AnyArguments, "values">): unknown => codec.decode(values);

describe("memory that was given back", () => {
  test("is lent again for what needs as many steps", () => {
    const memory = new LentMemory();
    const first = memory.lend(5000);
    expect(first.length).toBeGreaterThanOrEqual(5000);
    memory.giveBack(first);
    expect(memory.lend(20_000)).not.toBe(first);
    expect(memory.lend(5100)).toBe(first);
    expect(memory.lend(5000)).not.toBe(first);
  });

  test("stands ready up to 16 MiB", () => {
    const memory = new LentMemory();
    const all = Array.from({ length: 400 }, () => memory.lend(65_536));
    for (const one of all) memory.giveBack(one);
    expect(memory.readyBytes).toBeLessThanOrEqual(16 * 1024 * 1024);
    expect(memory.readyBytes).toBeGreaterThan(15 * 1024 * 1024);
  });
});

describe("memory that nobody wants", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test("is let go after a while, and not as long as it is wanted", () => {
    vi.useFakeTimers();
    const memory = new LentMemory();
    memory.giveBack(memory.lend(5000));
    for (let turn = 0; turn < 5; turn++) {
      vi.advanceTimersByTime(1500);
      expect(memory.readyBytes).toBe(5120);
      memory.giveBack(memory.lend(5000));
    }
    vi.advanceTimersByTime(4001);
    expect(memory.readyBytes).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("arguments", () => {
  test("of 4 KiB and more lie in it until they are let go", () => {
    const first = encodeArguments(codec, [bytesOf(1)]);
    const second = encodeArguments(codec, [bytesOf(2), "text"]);
    expect(first.values.isLent).toBe(true);
    const { bytes } = first.values;
    first.letGo();
    first.letGo();
    const third = encodeArguments(codec, [bytesOf(3)]);
    expect(third.values.bytes).toBe(bytes);
    expect(decoded(second)).toEqual([bytesOf(2), "text"]);
    expect(decoded(third)).toEqual([bytesOf(3)]);
    expect(() => decoded(first)).toThrow("a value of 0 bytes cannot be decoded");
  });

  test("that are kept are never written over", () => {
    const kept = encodeArguments(codec, [bytesOf(1)]);
    kept.keep();
    kept.letGo();
    const others = [2, 3, 4].map((mark) => encodeArguments(codec, [bytesOf(mark)]));
    expect(others.every(({ values }) => values.bytes !== kept.values.bytes)).toBe(true);
    expect(decoded(kept)).toEqual([bytesOf(1)]);
  });

  test.for([100, 4000, 65_536, 100_000])("of %d bytes have memory of their own", (size) => {
    const args = encodeArguments(codec, [bytesOf(1, size)]);
    expect(args.values.isLent).toBeUndefined();
    args.letGo();
    expect(decoded(args)).toEqual([bytesOf(1, size)]);
  });
});

test("the packer's next window does not end in one that is lent or small", () => {
  const small = codec.encode({ text: "small" }, "value");
  const lent = codec.encode({ text: "x".repeat(10_000) }, "value", true);
  const next = codec.encode({ text: "next" }, "value");
  expect(codec.decode(small)).toEqual({ text: "small" });
  expect(codec.decode(lent)).toEqual({ text: "x".repeat(10_000) });
  expect(codec.decode(next)).toEqual({ text: "next" });
  expect(lent.isLent).toBe(true);
  giveBackLent(next);
  giveBackLent(lent);
  expect(codec.encode({ text: "y".repeat(10_000) }, "value", true).bytes).toBe(lent.bytes);
});

test("what nobody gives back is not lent", () => {
  expect(codec.encode({ text: "x".repeat(10_000) }, "value").isLent).toBeUndefined();
});

describe("a getter that packs something itself", () => {
  const inner = (size: number): object => ({
    first: 1,
    get report() {
      codec.decode(codec.encode({ text: "x".repeat(size) }, "value", true));
      return "report ".repeat(20);
    },
    last: 7,
  });
  const shared = { text: "twice" };

  test.for([
    ["4 KiB", 4096],
    ["10 KB", 10_000],
    ["100 KB", 100_000],
    ["2 MB", 2_000_000],
  ] as const)("leaves the windows of others alone, %s", ([, size]) => {
    // The packer has much memory.
    codec.encode({ text: "x".repeat(20_000) }, "value");
    const texts = Array.from({ length: 20 }, (_, index) => `waiting ${index} `.repeat(5));
    const waiting = texts.map((text) => codec.encode({ text }, "value"));
    for (const value of [inner(size), { parts: [shared, shared], value: inner(size) }]) {
      const outer = codec.encode(value, "value", true);
      expect(codec.decode(outer)).toEqual(value);
    }
    expect(waiting.map((one) => codec.decode(one))).toEqual(texts.map((text) => ({ text })));
  });
});
