/**
 * A reward module that waits like a remote judge and then asks another reward function. The wait is uniform between two bounds and
 * hangs only on the seed and the sample's index, so the baseline and the loop wait equally long for the same sample.
 */

import { setTimeout as delay } from "node:timers/promises";
import { loadComputeScore } from "@rayling/reward-manager-registry";
import type {
  ComputeScore,
  RewardSpec,
  ScoreInput,
  ScoreOutput,
} from "@rayling/reward-manager-registry";

/** The rewardKwargs of this module, under the key `judge`. */
export interface SimulatedJudge {
  readonly reward: RewardSpec;
  readonly latencyMs: readonly [number, number];
  readonly seed: number;
  readonly baseDirectory: string;
}

/** How a loader finds this module, from source and installed. */
export const simulatedJudgeUrl: string = new URL(
  `./simulated-judge${import.meta.url.slice(-3)}`,
  import.meta.url,
).href;

let reward: Promise<ComputeScore> | undefined;

export async function computeScore(input: ScoreInput): Promise<ScoreOutput> {
  const judge = input["judge"] as SimulatedJudge;
  // Modules are kept by the thread, so loading is looked up once; the judge of a thread never changes.
  reward ??= loadComputeScore(judge.reward, { baseDirectory: judge.baseDirectory });
  const [score] = await Promise.all([
    reward,
    delay(latencyMs(judge, Number(input.extraInfo["index"]))),
  ]);
  const { judge: _, ...rest } = input;
  return score(rest);
}

export function latencyMs({ latencyMs: [min, max], seed }: SimulatedJudge, index: number): number {
  return min + (max - min) * uniform(seed, index);
}

/** In [0, 1): the finaliser of MurmurHash3 over both numbers. */
function uniform(seed: number, index: number): number {
  let bits = Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
}
