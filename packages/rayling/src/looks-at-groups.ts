/**
 * Whether a loop's reward function looks at all answers to a prompt. Where samples come one by one
 * a group's rank or mean would be taken of one sample: a wrong score that looks right.
 */
import type { RewardLoopManager } from "@rayling/reward-loop";

/** The traits that say so: a loop has them, and a function that is loaded without one. */
export type GroupTraits = Pick<RewardLoopManager["traits"], "scoresGroups" | "postProcesses">;

export function looksAtGroups({ traits }: { readonly traits: GroupTraits }): boolean {
  return traits.scoresGroups || traits.postProcesses;
}
