/** The rule by which a mini-batch's size follows the exposed wait, on scripted times. */

import { expect, test } from "vitest";
import { AdaptiveMiniBatchSize } from "../../src/groups/mini-batch-size.ts";

/** What is asked for after each wait and update, in ms. */
function sizesOf(ppoMiniBatchSize: number, parts: readonly (readonly [number, number])[]) {
  const size = new AdaptiveMiniBatchSize(ppoMiniBatchSize);
  return [
    size.next(1024).least,
    ...parts.map(([waitMs, workMs]) => {
      size.waited(waitMs);
      size.worked(workMs);
      return size.next(1024).least;
    }),
  ];
}

const [exposed, hidden] = [
  [11, 100],
  [10, 100],
] as const;

test.each([
  ["it is halved down to a quarter", 256, [exposed, exposed, exposed], [256, 128, 64, 64]],
  [
    "and doubled up to what it was",
    256,
    [exposed, exposed, hidden, hidden, hidden],
    [256, 128, 64, 128, 256, 256],
  ],
  ["one group is the least", 3, [exposed, exposed, hidden, hidden], [3, 1, 1, 2, 3]],
  ["an update that takes no time is always waited for", 8, [[1, 0]], [8, 4]],
  ["nothing that was waited for is nothing", 8, [[0, 0]], [8, 8]],
] as const)("%s", (_, ppoMiniBatchSize, parts, sizes) => {
  expect(sizesOf(ppoMiniBatchSize, parts)).toEqual(sizes);
});

test("several waits for one part are one, and the next part begins anew", () => {
  const size = new AdaptiveMiniBatchSize(8);
  for (const waitMs of [6, 6]) size.waited(waitMs);
  size.worked(100);
  expect(size.next(8).least).toBe(4);
  size.waited(6);
  size.worked(100);
  expect(size.next(8).least).toBe(8);
});

test("never more than there is, and all of it if it is done", () => {
  const size = new AdaptiveMiniBatchSize(8);
  expect(size.next(3)).toEqual({ least: 3, most: 3 });
  expect(size.next(20)).toEqual({ least: 8, most: 20 });
});
