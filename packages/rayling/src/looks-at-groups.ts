/**
 * Whether a loop's reward function looks at all answers to a prompt. Where samples come one by one
 * a group's rank or mean would be taken of one sample: a wrong score that looks right.
 */
import type { RewardLoopManager } from "@rayling/reward-loop";

export function looksAtGroups({ traits }: RewardLoopManager): boolean {
  return traits.scoresGroups || traits.postProcesses;
}
