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
  return digestOfText(textOf(partsOf(sample), true));
}

/** Before values were told apart that JSON confuses. */
function keyBefore(sample: RewardSample): string {
  return digestOf(partsOf(sample));
}

/** The parts of its key. One that it does not have is null. */
function partsOf(sample: RewardSample): readonly unknown[] {
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
  const whole = [dataSource, text, rawPrompt, groundTruth, extra, ...ofRollout];
  return [...whole, ...ofTokens, ...ofTurns].map((part) => part ?? null);
}

/** Returns the digest of samples that are scored together, and that of earlier releases. */
export function groupKeys(members: readonly RewardSample[]): [string, ...string[]] {
  const key = digestOf(["group", members.map(sampleKey)]);
  const keys: [string, ...string[]] = [key];
  if (members.some(isConfusable)) keys.push(digestOf(["group", members.map(keyBefore)]));
  const before = members.map(beforeLength);
  const hasLength = before.some((member, at) => member !== members[at]);
  return hasLength ? [...keys, ...groupKeys(before)] : keys;
}

/**
 * Returns the keys of earlier releases, which logs and caches may have. Some of these releases
 * left out `extraInfo.uid` and `extraInfo.group_uid`: such a key stands for the sample only
 * together with the name of its group, as `keysOfRecord` has them.
 */
export function olderSampleKeys(sample: RewardSample): string[] {
  if (!isRecord(sample)) return [];
  const keys = olderKeys(sample);
  const before = beforeLength(sample);
  return before === sample ? keys : [...keys, sampleKey(before), ...olderKeys(before)];
}

/** Before the length of a text was read from masks and rows. */
function beforeLength(sample: RewardSample): RewardSample {
  const { response, responseLength } = sample;
  const hasLength = typeof response === "string" && responseLength !== undefined;
  return hasLength ? { ...sample, responseLength: undefined } : sample;
}

function olderKeys(sample: RewardSample): string[] {
  const older = olderBy(sample, sampleKey);
  if (!isConfusable(sample)) return older;
  return [...older, keyBefore(sample), ...olderBy(sample, keyBefore)];
}

type KeyOf = (sample: RewardSample) => string;

function olderBy(sample: RewardSample, keyOf: KeyOf): string[] {
  const { extraInfo, isGroupAdded } = sample;
  const own = isGroupAdded === true ? withoutNames(extraInfo, "group_uid") : extraInfo;
  const unnamed = withoutNames(own, "uid", "group_uid");
  const group = groupNameOf(sample);
  const ofSource = keysOfSource(sample, keyOf);
  if (unnamed === own || group === undefined) return ofSource;
  const before = { ...sample, extraInfo: unnamed };
  const inGroups = [keyOf(before), ...keysOfSource(before, keyOf)];
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
function keysOfSource(sample: RewardSample, keyOf: KeyOf): string[] {
  return sample.isSourceAssumed === true ? [keyOf({ ...sample, isSourceAssumed: false })] : [];
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
  return digestOfText(textOf(value, false));
}

/** @param isExact values that JSON confuses are told apart: digests of versions do not do so */
function textOf(value: unknown, isExact: boolean): string | undefined {
  try {
    return JSON.stringify(plain(value, [], isExact));
  } catch {
    return undefined;
  }
}

/** Whether the sample may have had another key before values were told apart. */
function isConfusable(sample: RewardSample): boolean {
  return textOf(partsOf(sample), true)?.includes(JSON.stringify(tag).slice(1, -1)) === true;
}

function digestOfText(text: string | undefined): string {
  return createHash("sha256")
    .update(text ?? randomUUID())
    .digest("base64url")
    .slice(0, length);
}

/**
 * Converts a value as JSON does, and keeps apart values that JSON drops or confuses. An undefined
 * field is an absent one. @param above the objects that it lies in
 */
function plain(part: unknown, above: readonly object[], isExact: boolean): unknown {
  if (isExact && isConfused(part)) return withKind(part, above);
  if (typeof part === "bigint") return `${part}n`;
  if (typeof part === "number" && !Number.isFinite(part)) return tagged("number", String(part));
  if (typeof part !== "object" || part === null) return part;
  const depth = above.indexOf(part);
  if (depth >= 0) return tagged("above", depth);
  const here = [...above, part];
  const inside = (one: unknown): unknown => plain(one, here, isExact);
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
  const given = isExact ? entries.filter(([, one]) => one !== undefined) : entries;
  return Object.fromEntries(given.map(([key, one]) => [key, inside(one)]));
}

/** Whether JSON writes it as it writes another value. */
function isConfused(part: unknown): boolean {
  if (typeof part !== "object") {
    return part === undefined || typeof part === "bigint" || Object.is(part, -0);
  }
  if (part === null) return false;
  if (ArrayBuffer.isView(part) || part instanceof Error) return true;
  return "toJSON" in part && typeof part.toJSON === "function";
}

/** Returns a confused value with its kind. */
function withKind(part: unknown, above: readonly object[]): unknown {
  if (typeof part !== "object" || part === null) return tagged(typeof part, sayOf(part));
  const kind = Object.prototype.toString.call(part).slice("[object ".length, -1);
  if (ArrayBuffer.isView(part)) {
    const { buffer, byteOffset, byteLength } = part;
    return tagged(kind, Buffer.from(buffer, byteOffset, byteLength).toString("base64"));
  }
  const depth = above.indexOf(part);
  if (depth >= 0) return tagged("above", depth);
  const inside = (one: unknown): unknown => plain(one, [...above, part], true);
  if (part instanceof Error) {
    const { name, message, cause } = part;
    return tagged(kind, [name, message, inside(cause), inside(Object.entries(part))]);
  }
  const asJson: unknown = "toJSON" in part && typeof part.toJSON === "function" && part.toJSON();
  return tagged(kind, inside(asJson));
}

function sayOf(part: unknown): string {
  return Object.is(part, -0) ? "-0" : String(part);
}

const tag = "\0";

/** No record of a user's has such a key. */
function tagged(kind: string, content: unknown): unknown {
  return { [`${tag}${kind}`]: content };
}
