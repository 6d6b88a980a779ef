import { describe, expect, test } from "vitest";
import { Codec, type Encoded } from "../src/protocol/codec.ts";
import type { Batch, Message } from "../src/protocol/message.ts";
import { BatchReader } from "../src/protocol/frames/batch-reader.ts";
import { BatchWriter } from "../src/protocol/frames/batch-writer.ts";

const codec = new Codec({
  isReference: () => false,
  write: () => undefined,
  read: () => ({}),
  decline: () => undefined,
});
const encode = (value: unknown): Encoded => codec.encode(value, "value");

/** Messages with their bodies decoded, so that they compare. */
function plain(message: Message): unknown {
  switch (message.kind) {
    case "call":
      return {
        ...message,
        arguments: codec.decode(message.arguments),
        dependencies: message.dependencies.map((one) => codec.decode(one)),
      };
    case "value":
    case "result":
      return { ...message, value: codec.decode(message.value) };
    case "abort":
      return { ...message, reason: codec.decode(message.reason) };
    case "failure":
      return { ...message, error: codec.decode(message.error) };
    default:
      return message;
  }
}

function roundTrip(
  writer: BatchWriter,
  reader: BatchReader,
  messages: readonly Message[],
): unknown[] {
  for (const message of messages) writer.write(message);
  const { bytes, buffers } = writer.take();
  const read: unknown[] = [];
  reader.read({ bytes, buffers }, (message) => read.push(plain(message)));
  return read;
}

const big = new Uint8Array(100_000).fill(9);
const messages: readonly Message[] = [
  {
    kind: "call",
    id: 1,
    sequence: 7,
    route: { target: "a", method: "m" },
    arguments: encode([1, "two"]),
    dependencies: [],
  },
  {
    kind: "call",
    id: 2,
    sequence: 2 ** 40,
    route: { target: "ä", method: "ü" },
    arguments: encode([big]),
    dependencies: [encode(big), encode("x".repeat(70_000))],
  },
  { kind: "result", id: 2 ** 32 - 1, value: encode({ deep: [new Map([["k", big]])] }) },
  { kind: "failure", id: 4, error: encode({ name: "E" }) },
  {
    kind: "call",
    id: 3,
    sequence: 8,
    route: { target: "a", method: "m" },
    arguments: encode([3]),
    dependencies: [{ ...encode([true, big]), isSignal: true }],
  },
  { kind: "abort", id: 3, index: 2 ** 20, reason: encode(["why", big]) },
  { kind: "fetch", whole: true, id: 5, objectId: "driver-1:0" },
  { kind: "value", objectId: "host-1:3", value: encode([big]) },
  { kind: "reference", objectId: "o", holder: "h", change: -3 },
];

describe("a batch", () => {
  test("carries every kind of message, with bodies in band and out of band", () => {
    expect(roundTrip(new BatchWriter(), new BatchReader(), messages)).toEqual(messages.map(plain));
  });

  test("says which bodies are states of signals", () => {
    const writer = new BatchWriter();
    writer.write({ kind: "result", id: 1, value: { ...encode([true, big]), isSignal: true } });
    writer.write({ kind: "result", id: 2, value: encode([true, big]) });
    const found: unknown[] = [];
    new BatchReader().read(writer.take(), (message) => {
      if (message.kind === "result")
        found.push([message.value.isSignal, message.value.buffers.length]);
    });
    expect(found).toEqual([
      [true, 1],
      [undefined, 1],
    ]);
  });

  test("names a route once per session", () => {
    const writer = new BatchWriter();
    const reader = new BatchReader();
    const route = { target: "target-with-a-long-name", method: "method" };
    const one: Message = {
      kind: "call",
      id: 1,
      sequence: 7,
      route,
      arguments: encode([]),
      dependencies: [],
    };
    const first = writer.write(one);
    expect(writer.write(one)).toBeLessThan(first - route.target.length);
    expect(roundTrip(writer, reader, [])).toHaveLength(2);
    expect(roundTrip(writer, reader, [one])).toEqual([plain(one)]);
  });

  test("grows beyond any size it had before", () => {
    const many = Array.from({ length: 5000 }, (_, id): Message => ({
      kind: "result",
      id,
      value: encode("y".repeat(50)),
    }));
    expect(roundTrip(new BatchWriter(), new BatchReader(), many)).toHaveLength(5000);
  });

  test("gives memory away only where no later batch is written into it", () => {
    const writer = new BatchWriter();
    const reader = new BatchReader();
    const sizes = [10, 14_000, 60_000, 100, 30_000, 12_000, 5, 50_000];
    const batches = sizes.map((size, id) => {
      writer.write({ kind: "result", id, value: encode(new Uint8Array(size).fill(id + 1)) });
      return writer.take();
    });
    expect(batches.some(({ isOwn }) => isOwn === true)).toBe(true);
    for (const { bytes, isOwn } of batches) {
      if (isOwn !== true) continue;
      expect(bytes.buffer.byteLength).toBeLessThanOrEqual(2 * bytes.length);
      expect(batches.filter((other) => other.bytes.buffer === bytes.buffer)).toHaveLength(1);
    }
    for (const [id, batch] of batches.entries()) {
      reader.read(batch, (message) =>
        expect(plain(message)).toEqual({
          kind: "result",
          id,
          value: new Uint8Array(sizes[id] ?? 0).fill(id + 1),
        }),
      );
    }
  });

  test("that is no batch is refused, not guessed at", () => {
    const read = (bytes: Uint8Array): void =>
      new BatchReader().read({ bytes, buffers: [] }, () => undefined);
    expect(() => read(Uint8Array.of(99, 0, 0, 0, 0))).toThrow("unknown frame kind 99");
    expect(() => read(Uint8Array.of(2, 1, 0))).toThrow("a message exceeds it");
    const call = new Uint8Array(21);
    call[0] = 2;
    expect(() => read(call)).toThrow("unknown route");
  });

  /** A message of fixed fields, little endian: a kind, then numbers of four bytes, or bytes as they are. */
  const raw = (kind: number, ...fields: readonly (number | string)[]): Batch => {
    const parts = fields.map((field) => {
      if (typeof field === "string") return Buffer.from(field);
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32LE(field);
      return bytes;
    });
    return { bytes: Buffer.concat([Buffer.of(kind), ...parts]), buffers: [] };
  };
  const shapeOf = (shape: string): Batch => raw(1, 0, 1, "a", 1, "m", shape.length, shape);

  test.each<[string, Batch, string]>([
    ["a value that reaches beyond it", raw(3, 1, 40, 0, 0, "short"), "a message exceeds it"],
    ["a text that does", raw(5, 1, 1, 40, "short"), "a message exceeds it"],
    [
      "a big value that reaches beyond its buffer",
      { ...raw(3, 1, 70_000, 0, 0, 10), buffers: [new SharedArrayBuffer(70_000)] },
      "a message exceeds it",
    ],
    ["more values than it has room for", raw(7, 1, 30_000_000), "a message exceeds it"],
    ["more buffers than came", raw(3, 1, 0, 30_000_000, 0), "did not arrive"],
    ["a number for a route that nobody counts to", raw(1, 2 ** 31), "over the limit"],
    ["a route of no shape", shapeOf('{"group":{"toString":1}}'), "its shape is unknown"],
    ["a shape that is none", shapeOf('{"group"'), "its shape is unknown"],
  ])("with %s is refused", (_name, batch, message) => {
    const before = process.memoryUsage();
    expect(() => new BatchReader().read(batch, () => undefined)).toThrow(message);
    expect(process.memoryUsage().heapUsed - before.heapUsed).toBeLessThan(50e6);
  });
});
