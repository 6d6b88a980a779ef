import { describe, expect, test } from "vitest";
import { OldestFirst } from "../src/shared/fifo.ts";
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

test("the oldest of a map are taken by one iterator, also when others left before", () => {
  let made = 0;
  class Counted extends Map<string, number> {
    override entries(): MapIterator<[string, number]> {
      made += 1;
      return super.entries();
    }
    override keys(): MapIterator<string> {
      made += 1;
      return super.keys();
    }
    override [Symbol.iterator](): MapIterator<[string, number]> {
      return this.entries();
    }
  }
  const map = new Counted();
  const oldest = new OldestFirst(map);
  expect(oldest.take()).toBeUndefined();
  made = 0;
  const taken: number[] = [];
  for (let index = 0; index < 2000; index++) {
    map.set(`k${index}`, index);
    if (index % 10 === 0) map.delete(`k${index}`);
    if (map.size > 100) taken.push(oldest.take()?.[1] ?? -1);
  }
  expect([map.size, made]).toEqual([100, 1]);
  const kept = Array.from({ length: 2000 }, (_, index) => index).filter((index) => index % 10 > 0);
  expect(taken).toEqual(kept.slice(0, -100));
  while (map.size > 0) oldest.take();
  expect(oldest.take()).toBeUndefined();
  map.set("later", 1);
  expect([oldest.take(), map.size]).toEqual([["later", 1], 0]);
});
