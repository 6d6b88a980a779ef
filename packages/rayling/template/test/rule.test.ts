import assert from "node:assert/strict";
import { test } from "node:test";
import { scoreSample } from "@rayling/reward-manager-registry";
import { computeScore } from "../rule.ts";

for (const [response, score] of [
  ["17 + 25 = 42", 1],
  ["it is 42.0", 1],
  ["42 or 43", 0],
] as const) {
  test(`"${response}" scores ${score}`, async () => {
    const sample = { dataSource: "sums", response, groundTruth: "42" };
    assert.equal((await scoreSample(sample, computeScore)).rewardScore, score);
  });
}

test("a response without a number is left to the judge", () => {
  const input = { dataSource: "sums", solutionStr: "forty-two", groundTruth: "42", extraInfo: {} };
  assert.equal(computeScore(input), null);
});
