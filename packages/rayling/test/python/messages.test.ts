import { expect, test } from "vitest";
import { frameOf, framesOf, messageOf } from "../../src/python/messages.ts";
import { FrameError, FrameReader } from "../../src/python/wire/frames.ts";

function read(frames: readonly (readonly Uint8Array[])[]): unknown[] {
  const messages: unknown[] = [];
  const reader = new FrameReader((frame) => messages.push(messageOf(frame)));
  for (const part of frames.flat()) reader.push(Buffer.from(part));
  return messages;
}

test.each([
  ["plain", [1, 0.1, { words: 2, text: "ü\u{1f600}", none: null }]],
  ["tagged", [1, Number.NaN, { big: 2n ** 60n, bytes: new Uint8Array([1, 2]) }]],
])("a message of %s values comes back equal", (_, message) => {
  expect(read([frameOf(message)])).toEqual([message]);
});

test("rows of more bytes than a frame is to have leave in several", () => {
  const rows = Array.from({ length: 50 }, (_, row) => [row, "x".repeat(row)]);
  const frames = framesOf(rows, 200);
  expect(frames.length).toBeGreaterThan(5);
  expect(frames.every((frame) => Buffer.concat(frame).length <= 200)).toBe(true);
  expect(read(frames).flat()).toEqual(rows);
  expect(framesOf(rows)).toEqual([frameOf(rows)]);
  expect(framesOf(rows.slice(-1), 10)).toEqual([frameOf(rows.slice(-1))]);
});

test("a frame that holds no message is refused", () => {
  expect(() => messageOf({ head: [1, 2, 3], buffers: [] })).toThrow(FrameError);
});
