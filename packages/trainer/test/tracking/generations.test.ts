/** Which answers of a validation are shown: those that verl would show. */

import { expect, test } from "vitest";
import { Tracking } from "@rayling/trainer";
import type { Generation, TrackingLogger } from "@rayling/trainer";
import { optionsIn, runFolder } from "./run-folder.ts";

async function toldOf(inputs: readonly string[], logValGenerations: number): Promise<unknown[]> {
  const told: unknown[] = [];
  const logger: TrackingLogger = {
    name: "noting",
    generations: (step, rows) => void told.push([step, ...rows.map(({ input }) => input)]),
  };
  const directory = await runFolder();
  const options = { logger: [], loggers: [logger], logValGenerations };
  const tracking = await Tracking.open(optionsIn(directory, options));
  const rows = inputs.map((input): Generation => ({ input, output: "a", score: 1 }));
  tracking.generations(5, rows);
  await tracking.close();
  return told;
}

const numbered = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `q${String(index).padStart(2, "0")}`);

// numpy 2: x.sort(); np.random.RandomState(42).shuffle(x)
test.each([
  [5, ["q01", "q04", "q02", "q00", "q03"]],
  [12, "q10 q09 q00 q08 q05 q02 q01 q11 q04 q07 q03 q06".split(" ")],
])("%d rows are in numpy's order, whatever order they came in", async (count, order) => {
  expect(await toldOf(numbered(count).toReversed(), count)).toEqual([[5, ...order]]);
  expect(await toldOf(numbered(count), 3)).toEqual([[5, ...order.slice(0, 3)]]);
});

test("none are told unless some are asked for, and of few all", async () => {
  expect(await toldOf(numbered(5), 0)).toEqual([]);
  expect(await toldOf([], 3)).toEqual([]);
  expect(await toldOf(["only"], 3)).toEqual([[5, "only"]]);
});
