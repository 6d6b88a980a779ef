/** Which sample it is, by what it says: the same in every run, whatever its place. */

import { createHash, randomUUID } from "node:crypto";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { isRecord } from "@rayling/reward-manager-registry/values";

/** 16 characters: of a million samples two are alike once in 18 million times. */
const length = 16;

/**
 * Returns a digest of everything that a function, a manager or a reward model may read of a sample.
 * It excludes a group's name that a request added, which may be drawn anew for each run, and a data
 * source that comes from the file's name, which tells the sample's location and not its content.
 */
export function sampleKey(sample: RewardSample): string {
  if (!isRecord(sample)) return digestOf(["no sample", typeof sample]);
  const { response, responseLength, turnEnds, rawPrompt, groundTruth, extraInfo } = sample;
  const dataSource = sample.isSourceAssumed === true ? null : sample.dataSource;
  const { toolExtraFields, numTurns, rolloutRewardScores } = sample;
  // Token ids are alike in whatever list they stand; what is no response at all is what it is.
  const isList = typeof response === "object" && response !== null;
  const text = isList ? Array.from(response) : response;
  const own = sample.isGroupAdded === true ? withoutNames(extraInfo, "group_uid") : extraInfo;
  const extra = own && { ...own };
  const ofRollout = [toolExtraFields, numTurns, rolloutRewardScores];
  // A sample that does not say it has the key that it had before samples could.
  const ofTokens = responseLength === undefined ? [] : [responseLength];
  const ofTurns = turnEnds === undefined || turnEnds.length < 2 ? [] : [turnEnds];
  return digestOf([
    dataSource,
    text,
    rawPrompt,
    groundTruth,
    extra,
    ...ofRollout,
    ...ofTokens,
    ...ofTurns,
  ]);
}

/** Returns the digest of samples that are scored together. */
export function groupKey(members: readonly RewardSample[]): string {
  return digestOf(["group", members.map(sampleKey)]);
}

/**
 * Returns the keys of earlier releases, which logs and caches may have. Some of these releases
 * left out `extraInfo.uid` and `extraInfo.group_uid`: such a key stands for the sample only
 * together with the name of its group, as `keysOfRecord` has them.
 */
export function olderSampleKeys(sample: RewardSample): string[] {
  if (!isRecord(sample)) return [];
  const { extraInfo, isGroupAdded } = sample;
  const own = isGroupAdded === true ? withoutNames(extraInfo, "group_uid") : extraInfo;
  const unnamed = withoutNames(own, "uid", "group_uid");
  const group = groupNameOf(sample);
  const ofSource = keysOfSource(sample);
  if (unnamed === own || group === undefined) return ofSource;
  const before = { ...sample, extraInfo: unnamed };
  const inGroups = [sampleKey(before), ...keysOfSource(before)];
  return [...ofSource, ...inGroups.map((key) => inGroup(key, group))];
}

/** Returns the keys by which a line of a reward log is found. */
export function keysOfRecord({
  sample,
  group,
}: {
  readonly sample: string;
  readonly group: string | null;
}): string[] {
  return typeof group === "string" ? [sample, inGroup(sample, group)] : [sample];
}

/** Returns verl's `uid` of a sample: of its context, or what its extraInfo calls its group. */
export function groupNameOf({ context, extraInfo }: RewardSample): string | undefined {
  const name = context?.group ?? extraInfo?.["group_uid"] ?? extraInfo?.["uid"];
  return typeof name === "string" ? name : undefined;
}

/** Before a source could be assumed. */
function keysOfSource(sample: RewardSample): string[] {
  return sample.isSourceAssumed === true ? [sampleKey({ ...sample, isSourceAssumed: false })] : [];
}

/** No digest has a blank. */
function inGroup(key: string, group: string): string {
  return `${key} ${group}`;
}

function withoutNames(
  extraInfo: RewardSample["extraInfo"],
  ...names: readonly ("uid" | "group_uid")[]
): RewardSample["extraInfo"] {
  if (!isRecord(extraInfo) || !names.some((name) => Object.hasOwn(extraInfo, name))) {
    return extraInfo;
  }
  const others: Record<string, unknown> = { ...extraInfo };
  for (const name of names) delete others[name];
  return others;
}

/**
 * Returns a digest that ignores the order of an object's keys. A value that cannot be read has a
 * new key each time, so that it equals no other.
 */
export function digestOf(value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(plain(value, []));
  } catch {
    text = undefined;
  }
  return createHash("sha256")
    .update(text ?? randomUUID())
    .digest("base64url")
    .slice(0, length);
}

/**
 * Converts a value as JSON does, and keeps apart values that JSON drops or confuses. @param above
 * the objects that it lies in
 */
function plain(part: unknown, above: readonly object[]): unknown {
  if (typeof part === "bigint") return `${part}n`;
  if (typeof part === "number" && !Number.isFinite(part)) return tagged("number", String(part));
  if (typeof part !== "object" || part === null) return part;
  const depth = above.indexOf(part);
  if (depth >= 0) return tagged("above", depth);
  const here = [...above, part];
  const inside = (one: unknown): unknown => plain(one, here);
  if (Array.isArray(part)) return Array.from(part, inside);
  if (part instanceof Map)
    return tagged(
      "Map",
      Array.from(part, (one) => one.map(inside)),
    );
  if (part instanceof Set) return tagged("Set", Array.from(part, inside));
  if (part instanceof RegExp) return tagged("RegExp", [part.source, part.flags]);
  if (part instanceof ArrayBuffer || part instanceof SharedArrayBuffer) {
    return tagged("bytes", Buffer.from(part).toString("base64"));
  }
  if ("toJSON" in part && typeof part.toJSON === "function") return inside(part.toJSON());
  const entries = Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, one]) => [key, inside(one)]));
}

/** No record of a user's has such a key. */
function tagged(kind: string, content: unknown): unknown {
  return { [`\0${kind}`]: content };
}
