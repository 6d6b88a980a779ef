/**
 * A reward module that waits like a remote judge and then calls another reward function. The wait
 * is uniform between two bounds and depends only on the seed and the sample, so the baseline and
 * the loop wait equally long for a sample.
 */

import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { hereOf } from "@rayling/core/code";
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

let reward: Promise<ComputeScore> | undefined;

export async function computeScore(input: ScoreInput): Promise<ScoreOutput> {
  const { judge } = input;
  if (!isSimulatedJudge(judge)) throw new TypeError("the rewardKwargs have no judge to simulate");
  // The thread caches modules, so loading is looked up once; the judge of a thread never changes.
  reward ??= loadComputeScore(judge.reward, {
    baseDirectory: judge.baseDirectory,
    locate: (url) => hereOf(url) ?? url,
  });
  const [score] = await Promise.all([
    reward,
    delay(latencyMs(judge, `${String(input.extraInfo["question"])}\n${input.solutionStr}`)),
  ]);
  const { judge: _, ...rest } = input;
  return score({ ...rest, ...callOf(input) });
}

/**
 * Returns what belongs to the call and not to the sample, which a copy of the arguments leaves out.
 * To the loop it is read by this, so that no score comes from a cache.
 */
function callOf(input: ScoreInput): Partial<ScoreInput> {
  const { uid, group, step, lane, signal } = input;
  const call = Object.entries({ uid, group, step, lane, signal });
  return Object.fromEntries(call.filter(([, value]) => value !== undefined));
}

function isSimulatedJudge(value: unknown): value is SimulatedJudge {
  if (typeof value !== "object" || value === null) return false;
  return (
    "reward" in value &&
    "latencyMs" in value &&
    Array.isArray(value.latencyMs) &&
    "seed" in value &&
    typeof value.seed === "number" &&
    "baseDirectory" in value &&
    typeof value.baseDirectory === "string"
  );
}

export function latencyMs({ latencyMs: [min, max], seed }: SimulatedJudge, sample: string): number {
  return min + (max - min) * uniform(`${seed} ${sample}`);
}

/** Returns a number in [0, 1). */
function uniform(text: string): number {
  return createHash("sha256").update(text).digest().readUInt32LE() / 2 ** 32;
}
