/** How many samples are sent ahead of a synchronous function, by the time that its runs take. */

import { expect, test } from "vitest";
import { BriefRuns } from "../../src/executor/brief-run-batching.ts";

const usual = 2;

function after(latenciesMs: readonly number[], hasTotalTime = false): number {
  const runs = new BriefRuns(hasTotalTime);
  for (const latencyMs of latenciesMs) runs.ended(latencyMs);
  return runs.inFlight(usual);
}

const some = (latencyMs: number, count = 200): number[] => Array<number>(count).fill(latencyMs);

test.each([
  ["nothing has run", [], usual],
  ["too few runs were brief", some(0.01, 15), usual],
  ["a few hundred runs took next to no time", some(0.001, 1000), 64],
  ["two thousand did", some(0.001, 2048), 128],
  ["thousands did", some(0.001, 5000), 256],
  ["runs take no time that the clock shows", some(0, 5000), 256],
  ["256 runs take less than 16 ms", some(0.05, 5000), 256],
  ["runs are as long as brief ones may be", some(0.249), 64],
  ["the last run was not brief", [...some(0.01), 0.25], usual],
  ["runs were brief again after a long one", [...some(0.01, 5000), 5, ...some(0.01, 16)], 64],
])("where %s, so many are sent ahead", (_, latenciesMs, expected) => {
  expect(after(latenciesMs)).toBe(expected);
});

test("what is sent ahead takes no more than 16 ms by the mean of the last runs", () => {
  const between = after([...some(0.02, 5000), ...some(0.12)]);
  expect(between).toBe(Math.floor(16 / 0.12));
});

test("where the time of a sample goes on meanwhile, no more than a few are sent ahead", () => {
  expect(after(some(0.001, 5000), true)).toBe(64);
});
