import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { same } from "../fixtures/conformance.ts";
import { alike, initIn } from "../fixtures/isolations.ts";
import { difference } from "../fixtures/same-value.ts";
import { Point, PointKeeper } from "../fixtures/serialized.ts";

describe.each(alike)("values: %s", (isolation) => {
  beforeAll(() => initIn(isolation));
  afterAll(() => ray.shutdown());

  /** As an argument and a result, and as a stored value. */
  const arrives = async (value: unknown): Promise<void> => {
    expect(difference([value], [await ray.get(same.remote(value))])).toBeUndefined();
    expect(difference([value], [await ray.get(ray.put(value))])).toBeUndefined();
  };

  test("test_serialization::test_simple_serialization: primitives and collections, alone and in others", async () => {
    const values = [
      0, -0, 0.9, 2 ** 62, 2n ** 62n, 2n ** 999n, "", "a", "\u262f", "\u00ff\u00fe\u0001\0",
      null, undefined, true, false, [], {}, new Set(), new Map([["hello", 1], ["world", 2]]),
      Buffer.from(""), Buffer.from("a"), Object(5), Object("text"),
    ]; // prettier-ignore
    for (const value of values) {
      await arrives([[value], { k: value }, new Map([[value, value]]), new Set([value])]);
      expect(difference(value, await ray.get(same.remote(value)))).toBeUndefined();
    }
  });

  test("test_serialization::test_complex_serialization: nested values, arrays of numbers, errors", async () => {
    const numbers = Object.fromEntries(
      Array.from({ length: 10 }, (_, index) => [`obj${index}`, new Float64Array(10_000).fill(0.1)]),
    );
    await arrives([[[[[[[[[[[[]]]]]]]]]]], numbers, { a: { b: { c: { d: {} } } } }]);
    await arrives([new Error("Test object."), new RangeError("r", { cause: { deep: [1n] } })]);
    await arrives("see chapter 3.4.5".match(/(?<what>\w+) (\d+)/));
  });

  test("test_serialization::test_register_class: an instance travels by its serializer, and without one is refused", async () => {
    class Temporary {
      readonly value = 1;
    }
    expect(() => ray.put(new Temporary())).toThrow("value is an instance of Temporary");
    expect(() => same.remote(new Temporary())).toThrow(ray.NotEncodableError);
    const keeper = PointKeeper.remote(new Point(3, 4));
    expect(await ray.get(keeper.length.remote())).toBe(5);
    const moved = await ray.get(keeper.moved.remote({ by: [new Point(1, 1)] }));
    expect(moved).toEqual(new Point(4, 5));
    const { source, flags } = (await ray.get(same.remote(/\d+\.\d*/u))) as RegExp;
    expect([source, flags]).toEqual(["\\d+\\.\\d*", "u"]);
  });

  test("test_serialization::test_inspect_serialization: what cannot travel is found, wherever it is", () => {
    class Lock {
      readonly held = true;
    }
    const lock = new Lock();
    const holder = { tests: new Map([["one", [{ lock }]]]) };
    const found = (): unknown => ray.put(holder);
    expect(found).toThrow('value.tests.get("one")[0].lock is an instance of Lock');
    expect(found).toThrow(
      expect.objectContaining({ path: 'value.tests.get("one")[0].lock' }) as Error,
    );
    expect(() => ray.put({ f: [() => lock] })).toThrow("value.f[0] is a function");
  });

  test("test_serialization::test_buffer_alignment: an array can be used where it arrives, whatever its size", async () => {
    const sizes = Array.from({ length: 100 }, (_, index) => index);
    const small = sizes.map((size) => new Float64Array(size).fill(size));
    const large = [20_000, 8193].map((size) => new Float64Array(size).fill(size));
    await arrives([...small, ...large]);
    // A view that is aligned to nothing, and of which the buffer is much larger.
    const bytes = new Uint8Array(50_000).fill(7);
    await arrives([new DataView(bytes.buffer, 3, 17), bytes.subarray(1, 4)]);
  });
});
