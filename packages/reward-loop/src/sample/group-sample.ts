/**
 * A group on its way to a function that scores all answers to a prompt at once: it travels, waits,
 * is retried and cached as one sample, and its outcome is split into one for each member at the
 * end. Each outcome has the times of the call; the cost is shared among them.
 */

import type { GroupScorer, RewardResult, RewardSample } from "@rayling/reward-manager-registry";
import { isList, isRecord } from "@rayling/reward-manager-registry/values";
import { failureOf } from "../faults/thrown.ts";
import type { SampleOutcome, ScoreFailure } from "../outcome.ts";
import { withLane } from "./lane.ts";
import { beyond, together, usageOf } from "../spend/usage.ts";
import type { TokenUsage } from "../outcome.ts";

export interface GroupSample extends RewardSample {
  readonly members: readonly RewardSample[];
}

/** The result of the call for one member. */
type MemberResult = RewardResult | { readonly error: ScoreFailure };

export function groupSampleOf(members: readonly RewardSample[]): GroupSample {
  const dataSource = members[0]?.dataSource ?? "";
  return { dataSource, response: "", groundTruth: null, members };
}

/**
 * @param sample that has entered a loop (`inLane`): its owner's field `members` has stayed outside
 */
export function isGroup(sample: RewardSample): sample is GroupSample {
  // The loop is given any value by code without types, and objects of classes with getters.
  return isRecord(sample) && Array.isArray(sample["members"]) && isSent(sample);
}

function isSent(sample: object): boolean {
  return Object.prototype.propertyIsEnumerable.call(sample, "members");
}

/**
 * Runs in the executor and returns one result of the whole group, with the tokens that all of it
 * used. Rejects as GroupScorer.run.
 */
export async function runGroup(
  scorer: GroupScorer,
  { members }: GroupSample,
  runSingle: (sample: RewardSample) => Promise<RewardResult>,
): Promise<RewardResult> {
  const settled = await scorer.run(members.map(withLane), runSingle);
  const results = settled.map((one): MemberResult =>
    one.status === "fulfilled" ? one.value : { error: failureOf(one.reason) },
  );
  const usage = results.reduce<TokenUsage | undefined>(
    (sum, one) => together(sum, usageOf(extraOf(one))),
    undefined,
  );
  const used = usage === undefined ? {} : { usage };
  return { rewardScore: 0, rewardExtraInfo: { members: results, ...used } };
}

function extraOf(result: MemberResult): Readonly<Record<string, unknown>> {
  return "error" in result ? (result.error.rewardExtraInfo ?? {}) : result.rewardExtraInfo;
}

function isMemberResult(value: unknown): value is MemberResult {
  return isRecord(value) && ("error" in value || typeof value["rewardScore"] === "number");
}

/**
 * Returns why members of a group have no score in its result, but for those that cannot tell: these
 * failures may not recur. None for a sample that is no group.
 */
export function memberFailuresIn(
  sample: RewardSample,
  { rewardExtraInfo }: RewardResult,
): readonly ScoreFailure[] {
  const results = isGroup(sample) ? rewardExtraInfo["members"] : undefined;
  if (!isList(results)) return none;
  return results.flatMap((one) =>
    isMemberResult(one) && "error" in one && one.error.code !== "CANNOT_TELL" ? [one.error] : [],
  );
}

const none: readonly never[] = [];

/** Returns the outcome of each member, in order. */
export function outcomesOf(
  { members }: GroupSample,
  outcome: SampleOutcome,
): readonly SampleOutcome[] {
  const { cost, usageBefore: before, used, hedges, ...common } = outcome;
  // Members keep the usage that they report; the client may know of more.
  const said = usageOf((outcome.valid ? outcome : outcome.error).rewardExtraInfo ?? {});
  const usageBefore = together(before, beyond(used, said));
  const shared = { ...common, ...(cost === undefined ? {} : { cost: cost / members.length }) };
  // These are counted once, so that a sum over the members is right.
  const once = {
    ...(usageBefore === undefined ? {} : { usageBefore }),
    ...(hedges === undefined ? {} : { hedges }),
  };
  const further: Pick<SampleOutcome, "sharesCall"> = { sharesCall: true };
  return members.map((_, at): SampleOutcome => {
    const measured = at === 0 ? { ...shared, ...once } : { ...shared, ...further };
    if (!measured.valid) {
      const { rewardExtraInfo: _used, ...error } = measured.error;
      return { ...measured, error: at === 0 ? measured.error : error };
    }
    const { rewardScore: _score, rewardExtraInfo, valid: _valid, ...rest } = measured;
    const results = rewardExtraInfo["members"];
    const result: unknown = isList(results) ? results[at] : undefined;
    if (!isMemberResult(result)) throw new TypeError(`member ${at} of a group has no result`);
    if ("error" in result) return { ...rest, valid: false, error: result.error };
    const { rewardScore, rewardExtraInfo: own } = result;
    return { ...rest, valid: true, rewardScore, rewardExtraInfo: own };
  });
}
