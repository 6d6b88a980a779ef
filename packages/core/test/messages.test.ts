import { describe, expect, test } from "vitest";
import { Codec, type Encoded } from "../src/protocol/codec.ts";
import { BatchReader, BatchWriter, type Message } from "../src/protocol/messages.ts";

const codec = new Codec({ isReference: () => false, write: () => undefined, read: () => ({}) });
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
  { kind: "fetch", whole: true, id: 5, objectId: "driver-1:0" },
  { kind: "value", objectId: "host-1:3", value: encode([big]) },
  { kind: "reference", objectId: "o", holder: "h", change: -3 },
];

describe("a batch", () => {
  test("carries every kind of message, with bodies in band and out of band", () => {
    expect(roundTrip(new BatchWriter(), new BatchReader(), messages)).toEqual(messages.map(plain));
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

  test("that is no batch is refused, not guessed at", () => {
    const read = (bytes: Uint8Array): void =>
      new BatchReader().read({ bytes, buffers: [] }, () => undefined);
    expect(() => read(Uint8Array.of(99, 0, 0, 0, 0))).toThrow("unknown frame kind 99");
    expect(() => read(Uint8Array.of(2, 1, 0))).toThrow(RangeError);
    const call = new Uint8Array(21);
    call[0] = 2;
    expect(() => read(call)).toThrow("unknown route");
  });
});
