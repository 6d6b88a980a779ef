/**
 * A reward module that waits like a remote judge and then calls another reward function. The wait
 * is uniform between two bounds and depends only on the seed and the sample, so the baseline and
 * the loop wait equally long for a sample.
 */

import { createHash } from "node:crypto";
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

/** The URL by which a loader finds this module, from source and installed. */
export const simulatedJudgeUrl: string = new URL(
  `./simulated-judge${import.meta.url.slice(-3)}`,
  import.meta.url,
).href;

let reward: Promise<ComputeScore> | undefined;

export async function computeScore(input: ScoreInput): Promise<ScoreOutput> {
  const judge = input["judge"] as SimulatedJudge;
  // The thread caches modules, so loading is looked up once; the judge of a thread never changes.
  reward ??= loadComputeScore(judge.reward, { baseDirectory: judge.baseDirectory });
  const [score] = await Promise.all([
    reward,
    delay(latencyMs(judge, `${String(input.extraInfo["question"])}\n${input.solutionStr}`)),
  ]);
  const { judge: _, ...rest } = input;
  return score(rest);
}

export function latencyMs({ latencyMs: [min, max], seed }: SimulatedJudge, sample: string): number {
  return min + (max - min) * uniform(`${seed} ${sample}`);
}

/** Returns a number in [0, 1). */
function uniform(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32LE() / 2 ** 32;
}
