// pnpm start:score --solutions PATH --baseline 0 --reward examples/rewards/gsm8k-reward.ts --reward examples/rewards/noisy-judge.ts
//
// A judge that is right most of the time, as a model is: it grades from 0 to 1 in tenths, near the
// rule's score. Each sample has its own noise, the same in every run; NOISE=0.3 is how much.

import { createHash } from "node:crypto";
import type { ScoreInput } from "@rayling/reward-manager-registry";
import { computeScore as ruleScore } from "./gsm8k-reward.ts";

const noise = Number(process.env["NOISE"] ?? 0.3);

export function computeScore(input: ScoreInput): { score: number; reason: string } {
  const [first, second] = uniforms(`${String(input.groundTruth)}\n${input.solutionStr}`);
  // The sum of two uniform numbers: small errors are common, large ones rare.
  const error = (first + second - 1) * 2 * noise;
  const grade = Math.round(10 * Math.min(1, Math.max(0, 0.15 + 0.7 * ruleScore(input) + error)));
  return { score: grade / 10, reason: grade >= 5 ? "The steps lead to it." : "A step is wrong." };
}

/** Two numbers in [0, 1) that hang on the text alone. */
function uniforms(text: string): [number, number] {
  const digest = createHash("sha256").update(text).digest();
  return [digest.readUInt32LE(0) / 2 ** 32, digest.readUInt32LE(4) / 2 ** 32];
}
