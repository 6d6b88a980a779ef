/** The generated additions: right, all there, and none of the test in the training. */

import {
  arithmeticAlphabet,
  arithmeticTask,
  PromptDataset,
  TrainerInputError,
} from "@rayling/trainer";
import type { ArithmeticOptions, ArithmeticRow } from "@rayling/trainer";
import { describe, expect, test } from "vitest";

const operandsOf = ({ prompt: [{ content }] }: ArithmeticRow): number[] => {
  const [, a, b] = /^(\d+)\+(\d+)=$/.exec(content) ?? [];
  return [Number(a), Number(b)];
};
const answerOf = ({ reward_model }: ArithmeticRow): string => reward_model.ground_truth;

describe("the arithmetic task", () => {
  test("has every addition once, and its answer from the last digit to the first", () => {
    const { train, test: tested } = arithmeticTask();
    const rows = [...train, ...tested];
    expect(new Set(rows.map((row) => operandsOf(row).join("+"))).size).toBe(90 * 90);
    expect(rows).toHaveLength(90 * 90);
    for (const row of rows) {
      const [a = 0, b = 0] = operandsOf(row);
      expect(Number(answerOf(row).split("").toReversed().join(""))).toBe(a + b);
      expect(Math.min(a, b)).toBeGreaterThanOrEqual(10);
      expect(Math.max(a, b)).toBeLessThanOrEqual(99);
      for (const character of row.prompt[0].content + answerOf(row)) {
        expect(arithmeticAlphabet).toContain(character);
      }
    }
  });

  test("keeps for the test what training never sees, not with its operands exchanged either", () => {
    const { train, test: tested } = arithmeticTask({ testShare: 0.25, seed: 4 });
    const unordered = (row: ArithmeticRow): string =>
      operandsOf(row)
        .toSorted((x, y) => x - y)
        .join("+");
    const trained = new Set(train.map(unordered));
    expect(tested.filter((row) => trained.has(unordered(row)))).toEqual([]);
    expect(tested.length / (90 * 90)).toBeCloseTo(0.25, 2);
  });

  test("is the same for the same seed, in another order and with another test for another", () => {
    expect(arithmeticTask({ seed: 1 })).toEqual(arithmeticTask({ seed: 1 }));
    expect(arithmeticTask({ seed: 2 }).test).not.toEqual(arithmeticTask({ seed: 1 }).test);
  });

  test("is a data set as verl has it", async () => {
    const { train } = arithmeticTask({ low: 0, high: 3, reversed: false });
    const { rows } = await PromptDataset.fromRows(train);
    expect(
      rows.map(({ dataSource, index, extraInfo }) => [dataSource, index, extraInfo["split"]]),
    ).toEqual(train.map((_, index) => ["arithmetic", index, "train"]));
  });

  test.each<[string, ArithmeticOptions]>([
    ["low", { low: -1 }],
    ["high", { low: 10, high: 9 }],
    ["testShare", { testShare: 1 }],
  ])("%s is checked", (input, options) => {
    expect(() => arithmeticTask(options)).toThrow(expect.objectContaining({ input }));
    expect(() => arithmeticTask(options)).toThrow(TrainerInputError);
  });
});
