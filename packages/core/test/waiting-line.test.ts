import { describe, expect, test } from "vitest";
import { Line } from "../src/shared/waiting-line.ts";

describe("a line", () => {
  test("gives its items in order, however many left from the middle", () => {
    const line = new Line<string>();
    const places = ["a", "b", "c", "d"].map((item) => line.add(item));
    expect(places).toEqual([0, 1, 2, 3]);
    expect([line.take(0), line.take(2), line.take(2)]).toEqual(["a", "c", undefined]);
    expect([line.size, line.shift(), line.shift(), line.shift()]).toEqual([2, "b", "d", undefined]);
  });

  test("takes an item back at its old place", () => {
    const line = new Line<string>();
    for (const item of ["a", "b", "c"]) line.add(item);
    expect([line.shift(), line.shift()]).toEqual(["a", "b"]);
    line.putBack(1, "b");
    line.putBack(0, "a");
    expect(Array.from(line.entries()).toSorted(([left], [right]) => left - right)).toEqual([
      [0, "a"],
      [1, "b"],
      [2, "c"],
    ]);
    expect([line.shift(), line.shift(), line.shift(), line.size]).toEqual(["a", "b", "c", 0]);
    expect([line.add("d"), line.shift()]).toEqual([3, "d"]);
  });
});
