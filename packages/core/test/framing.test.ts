import { describe, expect, test } from "vitest";
import type { Batch } from "../src/protocol/message.ts";
import {
  type FrameLimits,
  FrameReader,
  frameOf,
  peerLimits,
} from "../src/transport/socket/framing.ts";

const bytesOf = (length: number, seed = 1): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 31 + seed) % 251);

function sharedOf(length: number): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(length);
  new Uint8Array(buffer).set(bytesOf(length, 7));
  return buffer;
}

const batches: readonly Batch[] = [
  { bytes: bytesOf(1), buffers: [] },
  { bytes: bytesOf(70_000), buffers: [] },
  { bytes: bytesOf(100), buffers: [sharedOf(0), sharedOf(5), sharedOf(200_000)] },
  { bytes: bytesOf(3000), buffers: [] },
  { bytes: bytesOf(80_000), buffers: [sharedOf(1)] },
];
const stream = Buffer.concat(batches.flatMap((batch) => frameOf(batch)));

const plain = ({ bytes, buffers }: Batch): unknown => ({
  bytes: Buffer.from(bytes).toString("hex"),
  buffers: buffers.map((buffer) => Buffer.from(new Uint8Array(buffer)).toString("hex")),
});

function readAll(reader: FrameReader, chunks: Iterable<Uint8Array>): Batch[] {
  const read: Batch[] = [];
  for (const chunk of chunks) {
    reader.push(chunk);
    for (let batch = reader.next(); batch !== undefined; batch = reader.next()) read.push(batch);
  }
  return read;
}

function* cut(size: (index: number) => number): Generator<Uint8Array> {
  for (let at = 0, index = 0; at < stream.length; index++) {
    const end = Math.min(stream.length, at + size(index));
    // A copy, as every read of a socket is memory of its own.
    yield Uint8Array.from(stream.subarray(at, end));
    at = end;
  }
}

describe("frames", () => {
  test.each<[string, (index: number) => number]>([
    ["byte by byte", () => 1],
    ["in pieces of 7", () => 7],
    ["in pieces that a socket reads", () => 65_536],
    ["in pieces of changing size", (index) => 1 + ((index * 7919) % 9001)],
    ["at once", () => stream.length],
  ])("arrive as they were sent when the stream comes %s", (_name, size) => {
    const reader = new FrameReader();
    expect(readAll(reader, cut(size)).map(plain)).toEqual(batches.map(plain));
    expect(reader.isBetweenFrames).toBe(true);
  });

  test("bring their buffers in shared memory", () => {
    const [batch] = readAll(new FrameReader(), frameOf(batches[2] as Batch));
    expect(batch?.buffers.every((buffer) => buffer instanceof SharedArrayBuffer)).toBe(true);
  });

  test("that lie whole in a chunk are windows of it", () => {
    const [chunk] = frameOf(batches[3] as Batch) as [Uint8Array];
    const [batch] = readAll(new FrameReader(), [chunk]);
    expect(batch?.bytes.buffer).toBe(chunk.buffer);
  });

  test("do not copy big buffers when they are written", () => {
    const { buffers } = batches[2] as Batch;
    const pieces = frameOf(batches[2] as Batch);
    expect(pieces.map((piece) => piece.buffer)).toEqual(expect.arrayContaining([buffers[2]]));
  });

  test("read after a pause in the middle go on where they were", () => {
    const reader = new FrameReader();
    reader.push(stream.subarray(0, 100));
    reader.push(stream.subarray(100, 120));
    expect(plain(reader.next() as Batch)).toEqual(plain(batches[0] as Batch));
    reader.push(stream.subarray(120));
    expect(plain(reader.next() as Batch)).toEqual(plain(batches[1] as Batch));
  });

  test("know when the stream ends inside one", () => {
    const reader = new FrameReader();
    expect(readAll(reader, [stream.subarray(0, stream.length - 1)])).toHaveLength(4);
    expect(reader.isBetweenFrames).toBe(false);
  });
});

describe("limits", () => {
  const limits: FrameLimits = { maxBatchBytes: 100, maxBuffers: 2, maxBufferBytes: 1000 };
  const head = (size: number, count: number): Uint8Array => {
    const bytes = Buffer.alloc(8);
    bytes.writeUInt32LE(size, 0);
    bytes.writeUInt32LE(count, 4);
    return bytes;
  };

  test.each<[string, Uint8Array, string]>([
    ["a batch that is too long", head(101, 0), "a frame of 101 bytes is over the limit of 100"],
    ["too many buffers", head(1, 3), "a frame with 3 buffers is over the limit of 2"],
    ["garbage", Buffer.from("GET / HTTP/1.1\r\n\r\n"), "over the limit"],
    [
      "buffers that are too long together",
      Buffer.concat([head(1, 2), Buffer.from([0, 2, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0])]),
      "buffers of 1024 bytes is over the limit of 1000",
    ],
  ])("refuse %s before any memory is taken for it", (_name, bytes, message) => {
    expect(() => readAll(new FrameReader(limits), [bytes])).toThrow(message);
    const single = Array.from(bytes, (byte) => Uint8Array.of(byte));
    expect(() => readAll(new FrameReader(limits), single)).toThrow(message);
  });

  test("hold for the sender too", () => {
    expect(() => frameOf({ bytes: bytesOf(101), buffers: [] }, limits)).toThrow("over the limit");
    expect(peerLimits.maxBatchBytes).toBeGreaterThan(limits.maxBatchBytes);
  });
});
