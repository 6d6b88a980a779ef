/**
 * The baseline: samples scored one at a time, each waited for before the next begins, in one thread and without the reward loop.
 * An actor of its own, so that the user's code does not run in the thread of the command; before that it tells whether the reward
 * function can be loaded.
 */

import * as ray from "@rayling/core";
import { loadComputeScore, scoreSample } from "@rayling/reward-manager-registry";
import type { RewardSample, RewardSpec } from "@rayling/reward-manager-registry";

export interface BaselineResult {
  readonly wallMs: number;
  readonly scores: readonly number[];
  readonly latenciesMs: readonly number[];
}

export class Baseline {
  /** Rejects with why the function cannot be loaded. */
  async load(spec: RewardSpec): Promise<void> {
    await loadComputeScore(spec);
  }

  /** @param inner what the function of `spec` asks itself: loaded before the clock starts, as everything */
  async run(
    spec: RewardSpec,
    inner: RewardSpec,
    samples: readonly RewardSample[],
  ): Promise<BaselineResult> {
    const [computeScore] = await Promise.all([loadComputeScore(spec), loadComputeScore(inner)]);
    const scores: number[] = [];
    const latenciesMs: number[] = [];
    const startedAt = performance.now();
    for (const sample of samples) {
      const sampleStartedAt = performance.now();
      const { rewardScore } = await scoreSample(sample, computeScore);
      scores.push(rewardScore);
      latenciesMs.push(performance.now() - sampleStartedAt);
    }
    return { wallMs: performance.now() - startedAt, scores, latenciesMs };
  }
}

export const BaselineActor: ray.ActorClass<typeof Baseline> = ray.remote(Baseline);
