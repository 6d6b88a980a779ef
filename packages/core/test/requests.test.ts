/** What is asked and not answered: each is given out once, and all of them in the order in which they were asked, also where numbers are used again. */
import { expect, test } from "vitest";
import type { Pending } from "../src/protocol/message.ts";
import { Requests } from "../src/rpc/session/requests.ts";

const lost = { kind: "killed", message: "the test is over" } as const;

/** Says its name when it ends. */
function pending(name: string, ends: string[] = [], isCall = true): Pending {
  return {
    isCall,
    settle: ({ kind }) => void ends.push(`${name}: ${kind}`),
    lose: () => void ends.push(name),
  };
}

function requestsOf(maxBytes = 100): Requests {
  return new Requests({ maxCalls: 100, maxBytes }, () => undefined);
}

test("what was taken is not there any more", () => {
  const requests = requestsOf();
  const one = pending("one");
  const id = requests.add(one);
  expect(requests.peek(id)).toBe(one);
  expect(requests.take(id)).toBe(one);
  expect(requests.take(id)).toBeUndefined();
  expect(requests.peek(id)).toBeUndefined();
  expect(requests.size).toBe(0);
});

test("a number that is free is used again, and its cost is not kept", () => {
  const requests = requestsOf(100);
  const { credit } = requests;
  const id = requests.add(pending("one"));
  credit.charge(id, 60);
  credit.charge(id, 40);
  expect(credit.allows(0)).toBe(false);
  requests.take(id);
  expect(credit.allows(0)).toBe(true);
  expect(requests.add(pending("two"))).toBe(id);
  credit.charge(id, 99);
  expect(credit.allows(0)).toBe(true);
  requests.take(id);
  credit.charge(requests.add(pending("three")), 99);
  expect(credit.allows(0)).toBe(true);
  // Only once: another one gets a number of its own.
  expect(requests.add(pending("four"))).not.toBe(id);
});

test("all come in the order in which they were asked, whatever their numbers are", () => {
  const requests = requestsOf();
  const ends: string[] = [];
  const [second, third] = [pending("second", ends), pending("third", ends, false)];
  const first = requests.add(pending("first", ends));
  requests.add(second);
  requests.add(third);
  requests.take(first);
  const fourth = pending("fourth", ends);
  expect(requests.add(fourth)).toBe(first);
  expect(requests.all()).toEqual([second, third, fourth]);
  requests.lose(lost);
  expect(ends).toEqual(["second", "third", "fourth"]);
  expect(requests.size).toBe(0);
});

test("where the peer starts nothing more, calls are absent in their order, and fetches wait on", () => {
  const requests = requestsOf();
  const ends: string[] = [];
  const first = requests.add(pending("first", ends));
  requests.add(pending("second", ends));
  requests.add(pending("fetch", ends, false));
  requests.take(first);
  requests.add(pending("third", ends));
  requests.neverBegan();
  expect(ends).toEqual(["second: absent", "third: absent"]);
  expect(requests.size).toBe(1);
});
