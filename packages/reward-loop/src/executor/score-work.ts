/**
 * The kinds of work that an executor does with the user's functions besides the scoring of samples:
 * post-process a group's scores, place a batch's scores, or call a request's log.
 */

import type { ScoredBatch, ScoreLogEntry } from "@rayling/reward-manager-registry";

export type ScoreWork =
  | { readonly kind: "group"; readonly scores: GroupScoreList }
  | { readonly kind: "batch"; readonly batch: ScoredBatch }
  | { readonly kind: "log"; readonly entry: ScoreLogEntry };

/** Null in the place of one that is invalid. */
export type GroupScoreList = readonly (number | null)[];
