/**
 * Everything that a policy generates for a request, each rollout once: one that is missing, comes
 * twice or was not asked for is the policy's error, and named.
 */

import { TrainerStateError } from "../errors.ts";
import type { GenerateRequest, PolicyHandle, Rollout } from "../policy/policy.ts";
import { partsOf, type PolicyTimeout } from "../policy/policy-answers.ts";

/** Calls `onMoment` with rollouts as they are finished. Resolves when all are there. */
export async function collectRollouts(
  policy: PolicyHandle,
  request: GenerateRequest,
  timeout: PolicyTimeout,
  onMoment: (rollouts: readonly Rollout[]) => void,
): Promise<void> {
  const { prompts, n = 1 } = request;
  const isThere = new Uint8Array(prompts.length * n);
  let left = isThere.length;
  const moments = policy.generate.remote(request);
  for await (const rollouts of partsOf("the policy, asked for rollouts,", moments, timeout)) {
    for (const { prompt, sample, rewardScore = 0, responseIds, rolloutLogProbs } of rollouts) {
      const row = prompt * n + sample;
      const isAsked = prompt >= 0 && prompt < prompts.length && sample >= 0 && sample < n;
      if (!isAsked || isThere[row] === 1) {
        const problem = isAsked ? "twice" : "without being asked";
        throw new TrainerStateError(
          "BAD_ROLLOUTS",
          `the policy generated sample ${sample} of prompt ${prompt} ${problem}`,
        );
      }
      if (!Number.isFinite(rewardScore)) {
        throw new TrainerStateError(
          "BAD_ROLLOUTS",
          `the policy generated sample ${sample} of prompt ${prompt} with a rewardScore that is no finite number: ${String(rewardScore)}`,
        );
      }
      if (rolloutLogProbs !== undefined && rolloutLogProbs.length !== responseIds.length) {
        throw new TrainerStateError(
          "BAD_ROLLOUTS",
          `the policy generated sample ${sample} of prompt ${prompt} with ${responseIds.length} responseIds and ${rolloutLogProbs.length} rolloutLogProbs`,
        );
      }
      isThere[row] = 1;
      left -= 1;
    }
    onMoment(rollouts);
  }
  if (left === 0) return;
  const row = isThere.indexOf(0);
  throw new TrainerStateError(
    "BAD_ROLLOUTS",
    `the policy generated ${isThere.length - left} of ${isThere.length} rollouts; sample ${row % n} of prompt ${Math.floor(row / n)} is missing`,
  );
}
