/** Which sample it is, by what it says: the same in every run, whatever its place. */

import { createHash } from "node:crypto";
import type { RewardSample } from "@rayling/reward-manager-registry";

/** 16 characters: of a million samples two are alike once in 18 million times. */
const length = 16;

/**
 * Of all that a function, a manager or a reward model may read of it, but for the name of its group, which may be drawn anew for each run, and for a data source that it does not say itself: the name of the
 * file that it lies in says where it is, and not which sample it is.
 */
export function sampleKey(sample: RewardSample): string {
  const { response, responseLength, rawPrompt, groundTruth, extraInfo } = sample;
  const dataSource = sample.isSourceAssumed === true ? null : sample.dataSource;
  const { toolExtraFields, numTurns, rolloutRewardScores } = sample;
  const text = typeof response === "string" ? response : Array.from(response);
  const extra = extraInfo && withoutGroup(extraInfo);
  const ofRollout = [toolExtraFields, numTurns, rolloutRewardScores];
  // A sample that does not say it has the key that it had before samples could.
  const ofTokens = responseLength === undefined ? [] : [responseLength];
  return digestOf([dataSource, text, rawPrompt, groundTruth, extra, ...ofRollout, ...ofTokens]);
}

/** What the sample was called before: logs and caches may have it. */
export function olderSampleKeys(sample: RewardSample): string[] {
  if (sample.isSourceAssumed !== true) return [];
  return [sampleKey({ ...sample, isSourceAssumed: false })];
}

function withoutGroup(extraInfo: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { uid: _, group_uid: __, ...others } = extraInfo;
  return others;
}

/** The order of an object's keys says nothing. */
export function digestOf(value: unknown): string {
  const text = JSON.stringify(value, (_, part: unknown) => canonical(part));
  return createHash("sha256").update(text).digest("base64url").slice(0, length);
}

function canonical(part: unknown): unknown {
  if (typeof part === "bigint") return `${part}n`;
  if (typeof part !== "object" || part === null || Array.isArray(part)) return part;
  return Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
