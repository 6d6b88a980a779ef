/** What is asked and not answered: each is given out once, and all of them in the order in which they were asked, also where numbers are used again. */
import { expect, test } from "vitest";
import { type Pending, PendingTable } from "../src/rpc/session/pending-table.ts";

type Named = Pending & { readonly name: string };

function pending(name: string, isCall = true): Named {
  return {
    name,
    isCall,
    settle: () => undefined,
    lose: () => undefined,
  };
}

const namesOf = (some: readonly Pending[]): string[] => some.map((one) => (one as Named).name);

test("what was taken is not there any more", () => {
  const table = new PendingTable();
  const one = pending("one");
  const id = table.add(one);
  expect(table.peek(id)).toBe(one);
  expect(table.take(id)).toBe(one);
  expect(table.take(id)).toBeUndefined();
  expect(table.peek(id)).toBeUndefined();
  expect(table.size).toBe(0);
});

test("a number that is free is used again, and its cost is not kept", () => {
  const table = new PendingTable();
  const id = table.add(pending("one"));
  table.charge(id, 100);
  table.take(id);
  expect(table.add(pending("two"))).toBe(id);
  expect(table.bytesOf(id)).toBe(0);
  // Only once: another one gets a number of its own.
  expect(table.add(pending("three"))).not.toBe(id);
});

test("all come in the order in which they were asked, whatever their numbers are", () => {
  const table = new PendingTable();
  const first = table.add(pending("first"));
  table.add(pending("second"));
  table.add(pending("third", false));
  table.take(first);
  const fourth = table.add(pending("fourth"));
  expect(fourth).toBe(first);
  expect(namesOf(table.all())).toEqual(["second", "third", "fourth"]);
  expect(table.calls().map((id) => (table.peek(id) as Named).name)).toEqual(["second", "fourth"]);
  expect(namesOf(table.takeAll())).toEqual(["second", "third", "fourth"]);
  expect(table.size).toBe(0);
});
