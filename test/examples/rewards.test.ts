/** The example reward functions, loaded as a user loads them, agree with every is_correct of their data. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { loadComputeScore, scoreSample } from "@rayling/reward-manager-registry";
import type { ComputeScore } from "@rayling/reward-manager-registry";
import { dataFile } from "../fixtures/data-file.ts";

const baseDirectory = fileURLToPath(new URL("../../", import.meta.url));
const gsm8k = dataFile("gsm8k/example_model_solutions.jsonl");

async function agreement(
  file: string,
  computeScore: ComputeScore,
): Promise<{ solutions: number; agreed: number; correct: number }> {
  const counts = { solutions: 0, agreed: 0, correct: 0 };
  for (const line of readFileSync(file, "utf8").trimEnd().split("\n")) {
    const record = JSON.parse(line) as {
      ground_truth: string;
      [key: string]: string | { is_correct: boolean; solution: string };
    };
    for (const entry of Object.values(record)) {
      if (typeof entry === "string") continue;
      // oxlint-disable-next-line no-await-in-loop -- one by one is the point
      const { rewardScore } = await scoreSample(
        { dataSource: "example", response: entry.solution, groundTruth: record.ground_truth },
        computeScore,
      );
      counts.solutions += 1;
      counts.agreed += Number(rewardScore === Number(entry.is_correct));
      counts.correct += Number(entry.is_correct);
    }
  }
  return counts;
}

test("arithmetic-reward agrees with all of arithmetic-solutions", async () => {
  const computeScore = await loadComputeScore("examples/rewards/arithmetic-reward.ts", {
    baseDirectory,
  });
  const { solutions, agreed, correct } = await agreement(
    join(baseDirectory, "examples/data/arithmetic-solutions.jsonl"),
    computeScore,
  );
  expect(agreed).toBe(solutions);
  expect(solutions).toBeGreaterThanOrEqual(2048);
  expect(correct / solutions).toBeGreaterThan(0.5);
  expect(correct / solutions).toBeLessThan(0.8);
});

test.skipIf(gsm8k.isMissing)("gsm8k-reward agrees with all 5,276 model solutions", async () => {
  const computeScore = await loadComputeScore("examples/rewards/gsm8k-reward.ts", {
    baseDirectory,
  });
  expect(await agreement(gsm8k.path, computeScore)).toMatchObject({
    solutions: 5276,
    agreed: 5276,
  });
});

describe("gsm8k-reward", () => {
  const table: [string, string, number][] = [
    ["A: 18", "A: 18", 1],
    ["work\nA: 65960", "A: 65,960", 1],
    ["A: $1,234.50", "A: 1234.5", 1],
    ["A: -$5", "A: -5", 1],
    ["A: $-5", "A: -5", 1],
    ["A: .5", "A: 0.50", 1],
    ["A: 18.", "A: 18", 1],
    ["A: 18 \r", "A: 18", 1],
    ["A: 3\nA: 18", "A: 18", 1],
    ["A: 18\nA: 3", "A: 18", 0],
    ["18", "A: 18", 0],
    ["so A: 18", "A: 18", 0],
    ["A:", "A: 0", 0],
    ["A: 1/5", "A: 1", 0],
    ["A: -1.8 billion", "A: -1.8", 0],
    ["A: 1e1", "A: 10", 0],
    ["A: 10+John's age", "A: 10", 0],
    ["", "A: 0", 0],
  ];
  test.each(table)("%j against %j is %d", async (response, groundTruth, score) => {
    const computeScore = await loadComputeScore("examples/rewards/gsm8k-reward.ts", {
      baseDirectory,
    });
    await expect(
      scoreSample({ dataSource: "example", response, groundTruth }, computeScore),
    ).resolves.toMatchObject({ rewardScore: score });
  });

  test("does not score against a ground truth without a number", async () => {
    const computeScore = await loadComputeScore("examples/rewards/gsm8k-reward.ts", {
      baseDirectory,
    });
    await expect(
      scoreSample({ dataSource: "example", response: "A: 1", groundTruth: "one" }, computeScore),
    ).rejects.toThrow('"one"');
  });
});
