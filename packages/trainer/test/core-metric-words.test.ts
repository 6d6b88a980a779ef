/** Metrics of a validation in words. */
import { expect, test } from "vitest";
import { coreMetricText, coreMetricValue } from "../src/metrics/core-metric-words.ts";

const gsm8k = "val-core/openai/gsm8k/acc/mean@1";
const best = "val-core/openai/gsm8k/acc/best@4/mean";
const maths = "val-core/maths/reward/mean@4";

test.each([
  [gsm8k, [gsm8k, "val-aux/other/reward/mean@1"], "accuracy", "52.8 %"],
  [gsm8k, [gsm8k, maths], "accuracy on openai/gsm8k", "52.8 %"],
  [best, [gsm8k, best], "accuracy best@4/mean", "52.8 %"],
  [maths, [maths], "reward mean@4", "0.5278"],
  ["actor/lr", ["actor/lr"], "actor/lr", "0.5278"],
])("%s among %j", (name, all, text, value) => {
  expect(coreMetricText(name, all)).toBe(text);
  expect(coreMetricValue(name, 0.5278)).toBe(value);
});
