import { expect, test } from "vitest";
import { UnansweredCalls } from "../src/caller/calls/actor/unanswered-calls.ts";
import { CallState } from "../src/caller/calls/call-state.ts";
import { ObjectEntry } from "../src/store/object-entry.ts";
import type { Encoded } from "../src/protocol/codec.ts";

const facts = [
  "isUnstarted",
  "isAgain",
  "isCancelled",
  "isSettled",
  "keepsPlace",
  "isCounted",
  "isApart",
  "mayHaveRun",
] as const;

test("each fact of a call changes by itself, and none of them the count of arguments", () => {
  for (const fact of facts) {
    const state = new CallState();
    state.unresolved = 1_000_000;
    state[fact] = true;
    state.unresolved -= 1;
    expect(facts.filter((one) => state[one])).toEqual([fact]);
    expect(state.unresolved).toBe(999_999);
    state[fact] = false;
    expect(facts.some((one) => state[one])).toBe(false);
    expect(state.unresolved).toBe(999_999);
  }
});

test("a counted handle is kept until the calls of such handles are answered, a weak one until all are", () => {
  const unanswered = new UnansweredCalls();
  const counted = { handle: {}, isCounted: true };
  const weak = { handle: {}, isCounted: false };
  const made = (hold: typeof counted): CallState => {
    const call = new CallState();
    unanswered.count += 1;
    unanswered.keep(call, hold);
    return call;
  };
  const calls = [made(weak), made(counted), made({ handle: {}, isCounted: true }), made(weak)];
  expect(unanswered.held).toEqual([counted, weak]);
  unanswered.settled(calls[1]!);
  expect(unanswered.held).toEqual([counted, weak]);
  unanswered.settled(calls[2]!);
  expect(unanswered.held).toEqual([weak]);
  unanswered.settled(calls[0]!);
  unanswered.settled(calls[3]!);
  expect(unanswered.held).toEqual([]);
  expect(unanswered.count).toBe(0);
});

test("the handle of a call that failed at once is not kept", () => {
  const unanswered = new UnansweredCalls();
  const call = new CallState();
  unanswered.count += 1;
  call.isSettled = true;
  unanswered.settled(call);
  unanswered.keep(call, { handle: {}, isCounted: true });
  expect(unanswered.held).toEqual([]);
});

test("those who wait for an object hear of it in their order, once, and those who have left do not", () => {
  const entry = new ObjectEntry("owner", 1, "made");
  const heard: string[] = [];
  const waiters = ["first", "second", "third", "fourth"].map((name) => () => void heard.push(name));
  for (const waiter of waiters) entry.watch(waiter);
  entry.unwatch(waiters[0]!);
  entry.unwatch(waiters[2]!);
  const only = new ObjectEntry("owner", 2, "made");
  only.watch(waiters[0]!);
  only.unwatch(waiters[0]!);
  const value = {} as Encoded;
  for (const one of [entry, only, entry]) one.resolve(value);
  expect(heard).toEqual(["second", "fourth"]);
});
