/** One rollout of one prompt, with its group and the weights that generated it. */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { optional } from "@rayling/reward-manager-registry/values";
import type { PromptRow } from "../data/prompt-row.ts";
import { messageText } from "../policy/message-text.ts";
import type { Rollout } from "../policy/policy.ts";

/** One prompt with one rollout. */
export interface TrainingSample {
  /** `{uid}/{sample}`: no other sample of the run has it. */
  readonly id: string;
  /** The uid of its group: all samples of one prompt share it. */
  readonly uid: string;
  /** The row of the data set. */
  readonly prompt: PromptRow;
  /** The answer of the policy. */
  readonly rollout: Rollout;
  /** Steps that were finished when its generation began. */
  readonly generatedAt: number;
}

/**
 * Returns the sample that the reward loop scores.
 *
 * @param step the step that generated it; for a validation, the number of finished steps
 */
export function rewardSampleOf(
  { id, prompt, rollout }: TrainingSample,
  step: number,
): RewardSample {
  return {
    dataSource: prompt.dataSource,
    ...optional("isSourceAssumed", prompt.isSourceAssumed),
    response: rollout.response,
    responseLength: rollout.responseIds.length,
    // A rollout is one turn.
    turnEnds: rollout.responseIds.length === 0 ? [] : [rollout.responseIds.length - 1],
    groundTruth: prompt.groundTruth,
    rawPrompt: prompt.rawPrompt,
    extraInfo: prompt.extraInfo,
    context: { uid: id, step },
  };
}

/** Returns the text of all messages of the prompt, for people to read. */
export function promptTextOf({ rawPrompt }: PromptRow): string {
  return rawPrompt.map(messageText).join("\n");
}
