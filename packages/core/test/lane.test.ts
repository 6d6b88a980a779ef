/** How many calls to one actor are under way by all of its handles here. */
import { expect, test } from "vitest";
import { freeCalls, Lane } from "../src/rpc/session/lane.ts";

test("is full with as many calls as need no credit, and free again by each that is back", () => {
  const lane = new Lane("actor");
  const most = freeCalls(3);
  for (let call = 0; call < most; call++) {
    expect(lane.isFree(3)).toBe(true);
    lane.sent();
  }
  expect(lane.isFree(3)).toBe(false);
  lane.back(1);
  expect(lane.isFree(3)).toBe(true);
  lane.back(most - 1);
  for (let call = 0; call < most; call++) {
    expect(lane.isFree(3)).toBe(true);
    lane.sent();
  }
  expect(lane.isFree(3)).toBe(false);
});

test("tells all who wait, until they do not, and is over when nobody uses it and nothing is under way", () => {
  const lane = new Lane("actor");
  const told: string[] = [];
  lane.enter();
  lane.sent();
  lane.sent();
  const ends = ["one", "other"].map((name) => lane.watch(() => told.push(name)));
  lane.back(1);
  expect(told).toEqual(["one", "other"]);
  ends[0]?.();
  lane.leave();
  expect(lane.isOver).toBe(false);
  lane.back(1);
  expect(told).toEqual(["one", "other", "other"]);
  expect(lane.isOver).toBe(true);
});
