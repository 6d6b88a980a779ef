/**
 * A judge of additions who takes his time: up to `latencyMs` for each answer, by chance. 1 for the
 * right sum, to the letter.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { ScoreInput } from "@rayling/reward-manager-registry";
import { uniformOf } from "../values/random.ts";

let asked = 0;

/** @param input.latencyMs of the slowest answer */
export async function computeScore(input: ScoreInput): Promise<number> {
  const { solutionStr, groundTruth, latencyMs = 0, signal } = input;
  const waitMs = Number(latencyMs) * uniformOf(1, asked++);
  if (waitMs > 0) await delay(waitMs, undefined, signal === undefined ? {} : { signal });
  return solutionStr === groundTruth ? 1 : 0;
}
