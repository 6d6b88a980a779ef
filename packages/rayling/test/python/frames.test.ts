import { expect, test } from "vitest";
import { encodeFrame, type Frame, FrameError, FrameReader } from "../../src/python/wire/frames.ts";

const heads: readonly unknown[] = [
  [false, { options: { reward: "/grade.ts" }, raises: true }],
  [false, [[1, 0.1, { words: 2, text: "ü\u{1f600}", none: null }]]],
  [0, 1, [{ $: ["b", 0] }, { $: ["b", 1] }]],
  [],
];
const buffers: readonly Uint8Array[] = [new Uint8Array([1, 2, 3]), new Uint8Array()];
const framesOf = (bytes: Buffer, size: number): Frame[] => {
  const frames: Frame[] = [];
  const reader = new FrameReader((frame) => frames.push(frame));
  for (let at = 0; at < bytes.byteLength; at += size) reader.push(bytes.subarray(at, at + size));
  return frames;
};

const bytes: Buffer = Buffer.concat(
  heads.flatMap((head, index) => encodeFrame(head, index === 2 ? buffers : [])),
);

test.each([1, 2, 3, 7, 64, bytes.length])("frames are read from chunks of %i bytes", (size) => {
  const frames = framesOf(bytes, size);
  expect(frames.map(({ head }) => head)).toEqual(heads);
  const memory = frames.map((frame) => frame.buffers.map((one) => [...new Uint8Array(one)]));
  expect(memory).toEqual([[], [], [[1, 2, 3], []], []]);
});

/** The begin of a frame: `u32 headBytes, u32 buffers`, and what follows. */
const begin = (headBytes: number, count: number, rest: Buffer = Buffer.alloc(0)): Buffer => {
  const prefix = Buffer.alloc(8);
  prefix.writeUInt32LE(headBytes, 0);
  prefix.writeUInt32LE(count, 4);
  return Buffer.concat([prefix, rest]);
};

test.each([
  ["without a head", begin(0, 0)],
  ["with a head that no text can hold", begin(2 ** 32 - 1, 0)],
  ["with more buffers than its head can name", begin(2, 3)],
  ["with a buffer that no memory can hold", begin(9, 1, Buffer.alloc(8, 255))],
  ["with a head that is no JSON", begin(2, 0, Buffer.from("[}"))],
])("a frame %s is refused", (_, wrong) => {
  expect(() => framesOf(wrong, wrong.length)).toThrow(FrameError);
});
