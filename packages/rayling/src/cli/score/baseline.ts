/**
 * The baseline: it scores samples one at a time, each after the previous one, in one thread and
 * without the reward loop. It is an actor, so that the user's code does not run in the command's
 * thread. Before the run it checks that the reward function loads.
 */

import * as ray from "@rayling/core";
import { hereOf } from "@rayling/core/code";
import { loadComputeScore, loadScorer, scoreSample } from "@rayling/reward-manager-registry";
import type { LoadOptions, RewardSample, RewardSpec } from "@rayling/reward-manager-registry";
import type { GroupTraits } from "../../looks-at-groups.ts";

export interface BaselineResult {
  readonly wallMs: number;
  readonly scores: readonly number[];
  readonly latenciesMs: readonly number[];
}

export class Baseline {
  readonly #options: LoadOptions;

  /** @param baseDirectory the driver's, where relative paths start */
  constructor(baseDirectory: string) {
    this.#options = { baseDirectory, locate: (url) => hereOf(url) ?? url };
  }

  /** Says how the function looks at groups. Rejects with the reason why it does not load. */
  async load(spec: RewardSpec): Promise<GroupTraits> {
    const { computeScores, postProcessScores } = await loadScorer(spec, this.#options);
    return {
      scoresGroups: computeScores !== undefined,
      postProcesses: postProcessScores !== undefined,
    };
  }

  /**
   * @param inner the function that `spec` calls itself; it loads before the clock starts, like
   * everything else
   */
  async run(
    spec: RewardSpec,
    inner: RewardSpec,
    samples: readonly RewardSample[],
  ): Promise<BaselineResult> {
    const [computeScore] = await Promise.all([
      loadComputeScore(spec, this.#options),
      loadComputeScore(inner, this.#options),
    ]);
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
