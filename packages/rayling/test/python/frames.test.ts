import { expect, test } from "vitest";
import { FrameError, FrameReader, frameOf } from "../../src/python/frames.ts";

const messages: readonly unknown[] = [
  { options: { reward: "/grade.ts" }, raises: true },
  [[1, 0.1, { words: 2, text: "ü\u{1f600}", none: null }]],
  [[2, Infinity, { big: 2n ** 70n, deep: [NaN, -Infinity] }]],
  [],
];

const bytes: Buffer = Buffer.concat(messages.map(frameOf));

test.each([1, 2, 3, 7, 64, bytes.length])("messages are read from chunks of %i bytes", (size) => {
  const reader = new FrameReader();
  const read: unknown[] = [];
  for (let from = 0; from < bytes.length; from += size) {
    read.push(...reader.read(bytes.subarray(from, from + size)));
  }
  expect(read).toEqual(messages);
});

test("what looks like a mark is none in a text without marks", () => {
  const message = [{ $int: "5" }, { $float: "NaN" }];
  expect([...new FrameReader().read(frameOf(message))]).toEqual([message]);
});

test.each([
  ["of no bytes", [0, 0, 0, 0, 0]],
  ["of more than 2 GiB", [255, 255, 255, 255, 0]],
  ["of an unknown kind", [3, 0, 0, 0, 9, 0x5b, 0x5d]],
])("a frame %s is refused", (_, wrong) => {
  expect(() => [...new FrameReader().read(Buffer.from(wrong))]).toThrow(FrameError);
});
