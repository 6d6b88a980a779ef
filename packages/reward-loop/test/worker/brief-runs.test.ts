/** How many samples are sent ahead of a synchronous function, by the time that its runs take. */

import { expect, test } from "vitest";
import { BriefRuns } from "../../src/executor/brief-run-batching.ts";

const usual = 2;

function after(latenciesMs: readonly number[]): number {
  const runs = new BriefRuns();
  for (const latencyMs of latenciesMs) runs.ended(latencyMs);
  return runs.inFlight(usual);
}

const some = (latencyMs: number, count = 200): number[] => Array<number>(count).fill(latencyMs);

test.each([
  ["nothing has run", [], usual],
  ["too few runs were brief", some(0.01, 15), usual],
  ["runs take next to no time", some(0.001), 256],
  ["runs take no time that the clock shows", some(0, 1000), 256],
  ["256 runs take less than 16 ms", some(0.05), 256],
  ["runs are as long as brief ones may be", some(0.249), 64],
  ["the last run was not brief", [...some(0.01), 0.25], usual],
  ["runs were brief again after a long one", [...some(0.01), 5, ...some(0.01, 16)], 167],
])("where %s, so many are sent ahead", (_, latenciesMs, expected) => {
  expect(after(latenciesMs)).toBe(expected);
});

test("what is sent ahead takes no more than 16 ms by the mean of the last runs", () => {
  const between = after([...some(0.02), ...some(0.12)]);
  expect(between).toBe(Math.floor(16 / 0.12));
});
