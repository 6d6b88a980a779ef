/** How many calls to one actor are under way by all of its handles here. */
import { expect, test } from "vitest";
import { CallWindow, freeCalls } from "../src/rpc/session/call-window.ts";

test("is full with as many calls as need no credit, and free again by each that is back", () => {
  const window = new CallWindow("actor");
  const most = freeCalls(3);
  for (let call = 0; call < most; call++) {
    expect(window.isFree(3)).toBe(true);
    window.sent();
  }
  expect(window.isFree(3)).toBe(false);
  window.back(1);
  expect(window.isFree(3)).toBe(true);
  window.back(most - 1);
  for (let call = 0; call < most; call++) {
    expect(window.isFree(3)).toBe(true);
    window.sent();
  }
  expect(window.isFree(3)).toBe(false);
});

test("tells all who wait, until they do not, and is over when nobody uses it and nothing is under way", () => {
  const window = new CallWindow("actor");
  const told: string[] = [];
  window.enter();
  window.sent();
  window.sent();
  const ends = ["one", "other"].map((name) => window.watch(() => told.push(name)));
  window.back(1);
  expect(told).toEqual(["one", "other"]);
  ends[0]?.();
  window.leave();
  expect(window.isOver).toBe(false);
  window.back(1);
  expect(told).toEqual(["one", "other", "other"]);
  expect(window.isOver).toBe(true);
});
