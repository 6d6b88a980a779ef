/** A stream of lists read one value at a time, as an async generator of the values would be. */

import { expect, test } from "vitest";
import { Flattened } from "../../src/manager/stream/flattened.ts";

/** Yields the lists, and tells how it ended. */
async function* listsOf(
  lists: readonly (readonly number[])[],
  ends: string[],
): AsyncGenerator<readonly number[], void, undefined> {
  try {
    for (const list of lists) yield list;
    ends.push("over");
  } catch (error) {
    ends.push(`thrown: ${String(error)}`);
    throw error;
  } finally {
    ends.push("closed");
  }
}

test("values come in order, and empty lists are passed over", async () => {
  const ends: string[] = [];
  const values: number[] = [];
  for await (const value of new Flattened(listsOf([[], [1, 2], [], [3]], ends))) values.push(value);
  expect(values).toEqual([1, 2, 3]);
  expect(ends).toEqual(["over", "closed"]);
});

test("calls that do not wait for one another get one value each", async () => {
  const values = new Flattened(listsOf([[1], [2, 3]], []));
  const got = await Promise.all(Array.from({ length: 5 }, () => values.next()));
  expect(got.map(({ value }) => value)).toEqual([1, 2, 3, undefined, undefined]);
  expect(got.map(({ done }) => done)).toEqual([false, false, false, true, true]);
});

test("leaving in the middle of a list closes the source once, and nothing comes after", async () => {
  const ends: string[] = [];
  const values = new Flattened(listsOf([[1, 2, 3], [4]], ends));
  for await (const value of values) if (value === 2) break;
  expect(ends).toEqual(["closed"]);
  expect(await values.next()).toEqual({ done: true, value: undefined });
});

test("an error is that of the call that met it", async () => {
  const broken = new Error("broken");
  async function* failing(): AsyncGenerator<readonly number[], void, undefined> {
    yield [1];
    throw broken;
  }
  const values = new Flattened(failing());
  const [first, second, third] = await Promise.allSettled([
    values.next(),
    values.next(),
    values.next(),
  ]);
  expect(first).toMatchObject({ status: "fulfilled", value: { value: 1 } });
  expect(second).toMatchObject({ status: "rejected", reason: broken });
  expect(third).toMatchObject({ status: "fulfilled", value: { done: true } });
});

test("an error that is thrown in reaches the source", async () => {
  const ends: string[] = [];
  const values = new Flattened(listsOf([[1, 2]], ends));
  await values.next();
  await expect(values.throw(new Error("enough"))).rejects.toThrow("enough");
  expect(ends).toEqual(["thrown: Error: enough", "closed"]);
  await values[Symbol.asyncDispose]();
});
