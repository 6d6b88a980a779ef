/** Items by growing numbers, against a map. */

import { expect, test } from "vitest";
import { NumberedItems } from "../../src/exchange/numbered-items.ts";

interface Item {
  readonly number: number;
}

test("has what a map has, whatever is set and deleted", () => {
  const items = new NumberedItems<Item>();
  const map = new Map<number, Item>();
  let seed = 1;
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (let number = 1; number <= 2_000; number++) {
    const item = { number };
    items.set(number, item);
    map.set(number, item);
    for (let deletions = random(3); deletions > 0; deletions--) {
      const other = number - random(300);
      expect(items.get(other)).toBe(map.get(other));
      expect(items.delete(other)).toBe(map.delete(other));
      expect(items.get(other)).toBeUndefined();
    }
    expect(items.size).toBe(map.size);
  }
  expect(map.size).toBeGreaterThan(100);
  expect([...items.values()]).toEqual([...map.values()]);
});

test("an item that is set again takes the place of the one before", () => {
  const items = new NumberedItems<Item>();
  items.set(7, { number: 7 });
  items.set(7, { number: 8 });
  expect(items.size).toBe(1);
  expect(items.get(7)).toEqual({ number: 8 });
});

test("items may be deleted while they are looked at, and are not seen then", () => {
  const items = new NumberedItems<Item>();
  for (let number = 1; number <= 200; number++) items.set(number, { number });
  const seen: number[] = [];
  for (const { number } of items.values()) {
    seen.push(number);
    items.delete(number);
    items.delete(number + 1);
  }
  expect(seen).toEqual(Array.from({ length: 100 }, (_, at) => 2 * at + 1));
  expect(items.size).toBe(0);
});

test("has nothing when it is cleared, and takes further items", () => {
  const items = new NumberedItems<Item>();
  items.set(1, { number: 1 });
  items.clear();
  expect([items.size, items.get(1), items.delete(1), [...items.values()]]).toEqual([
    0,
    undefined,
    false,
    [],
  ]);
  items.set(2, { number: 2 });
  expect([...items.values()]).toEqual([{ number: 2 }]);
});
