import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { both, plusOne, same, Signal, threeValues } from "../fixtures/conformance.ts";
import { initIn, withinAndApart } from "../fixtures/isolations.ts";

const caught = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    (value) => expect.fail(`expected a rejection, got ${String(value)}`),
    (error: unknown) => error,
  );

describe.each(withinAndApart)("get, put, wait, refs: %s", (isolation) => {
  beforeAll(() => initIn(isolation));
  afterAll(() => ray.shutdown());

  test("test_basic_2::test_get_multiple: values come in the order asked, for repeated refs too", async () => {
    const refs = Array.from({ length: 10 }, (_, index) => ray.put(index));
    expect(await ray.get(refs)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    const order = [3, 3, 0, 9, 3, 5];
    expect(await ray.get(order.map((index) => refs[index] as ray.ObjectRef<number>))).toEqual(
      order,
    );
  });

  test("test_basic_2::test_get_with_timeout: rejects with GetTimeoutError, and a later get succeeds", async () => {
    const signal = Signal.remote();
    const ref = signal.wait.remote("value");
    for (const timeoutMs of [100, 0]) {
      const error = await caught(ray.get(ref, { timeoutMs }));
      expect(error).toBeInstanceOf(ray.GetTimeoutError);
      expect(error).toMatchObject({ name: "GetTimeoutError", code: "GET_TIMEOUT", timeoutMs });
    }
    signal.send.remote();
    expect(await ray.get(ref)).toBe("value");
  });

  test("test_wait::test_wait: of a fast and a slow task one is ready when the time is over", async () => {
    const signal = Signal.remote();
    const slow = signal.wait.remote();
    const fast = plusOne.remote(1);
    await ray.get(fast);
    const { ready, pending } = await ray.wait([slow, fast] as ray.ObjectRef[], {
      numReturns: 2,
      timeoutMs: 50,
    });
    expect([ready, pending]).toEqual([[fast], [slow]]);
    signal.send.remote();
    const all = await ray.wait([slow, fast] as ray.ObjectRef[], { numReturns: 2 });
    expect(all).toEqual({ ready: [slow, fast], pending: [] });
  });

  test("test_wait::test_wait: refuses duplicates and what is no list of refs, and takes an empty list", async () => {
    const ref = ray.put(1);
    for (const bad of [[ref, ref], ref, 1, [1]]) {
      await expect(ray.wait(bad as never)).rejects.toBeInstanceOf(TypeError);
    }
    expect(await ray.wait([])).toEqual({ ready: [], pending: [] });
  });

  test("test_basic_2::test_call_chain: a hundred tasks, each with the result of the one before", async () => {
    let ref = ray.put(0);
    for (let index = 0; index < 100; index++) ref = plusOne.remote(ref);
    expect(await ray.get(ref)).toBe(100);
  });

  test("test_basic_2::test_duplicate_args: one ref in several places has its value in each", async () => {
    const ref = ray.put([1]);
    const [first, second, third] = await ray.get(both.remote(ref, [2], ref));
    expect([first, second, third]).toEqual([[1], [2], [1]]);
  });

  test("test_basic::test_putting_object_that_closes_over_object_ref: a ref inside a stored value is a ref", async () => {
    const inner = ray.put("inner");
    const { nested } = await ray.get(ray.put({ nested: [inner] }));
    expect(nested[0]).toBeInstanceOf(ray.ObjectRef);
    expect(await ray.get(nested)).toEqual(["inner"]);
  });

  test("test_basic::test_submit_api: numReturns gives as many refs, 0 gives none, and a mismatch fails each", async () => {
    const three = threeValues.options({ numReturns: 3 }).remote();
    expect(await ray.get(three)).toEqual([1, 2, 3]);
    expect(threeValues.options({ numReturns: 0 }).remote()).toBeUndefined();
    for (const ref of threeValues.options({ numReturns: 2 }).remote()) {
      const error = await caught(ray.get(ref));
      expect(error).toBeInstanceOf(ray.TaskError);
      expect(String(error)).toContain("must be a list of 2 values");
    }
  });

  test("test_asyncio::test_asyncio_double_await: a ref gives its value as often as it is asked, also after a wait that ran out of time", async () => {
    const signal = Signal.remote();
    const ref = signal.wait.remote(7);
    const promise = ray.get(ref);
    await caught(ray.get(ref, { timeoutMs: 1 }));
    signal.send.remote();
    expect([await promise, await promise, await ray.get(ref), await ray.get(ref)]).toEqual([
      7, 7, 7, 7,
    ]);
  });

  test("test_async::test_gather_mixup: refs and local promises together keep their order", async () => {
    const local = async (value: number): Promise<number> => {
      await new Promise((resolve) => setImmediate(resolve));
      return value;
    };
    const mixed = Array.from({ length: 10 }, (_, index) =>
      index % 2 === 0 ? local(index) : ray.get(same.remote(index)),
    );
    expect(await Promise.all(mixed)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});
