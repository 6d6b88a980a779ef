/** Does one kind of work with the user's functions. A run hears of its end, and of no other's. */

import { InvalidScoreError } from "@rayling/reward-manager-registry";
import type { RewardResult, RewardSample, ScoredBatch } from "@rayling/reward-manager-registry";
import { itemsIn } from "@rayling/reward-manager-registry/values";
import { isGroup } from "../sample/group-sample.ts";
import { withLane } from "../sample/lane.ts";
import { isTraced, runTraced } from "../sample/sample-trace.ts";
import type { UserFunctions } from "./user-functions.ts";
import type { Run } from "./run.ts";
import type { GroupScoreList, ScoreWork } from "./score-work.ts";

/** Scores the sample of a run, which hears of the end. */
export function beginSample(functions: UserFunctions, run: Run): void {
  const { sample } = run;
  const { begin } = functions;
  if (begin === undefined || isGroup(sample) || isTraced(sample)) {
    return endsOf(run, score(functions, sample));
  }
  withLane(sample);
  begin(run);
}

/** A group's scores come back as the extra info `scores`, a batch's as `rmScores`. */
export function beginOther(functions: UserFunctions, run: Run, work: ScoreWork): void {
  endsOf(run, runOther(functions, work));
}

function endsOf(run: Run, ended: Promise<RewardResult>): void {
  void ended.then(run.settled.bind(run), run.failed.bind(run));
}

function score(functions: UserFunctions, sample: RewardSample): Promise<RewardResult> {
  if (!isGroup(sample)) return runTraced(sample, () => functions.runSingle(withLane(sample)));
  const { runGroup } = functions;
  // A group has the trace of its first member.
  if (runGroup !== undefined) return runTraced(sample.members[0], () => runGroup(sample));
  // The function was reloaded since the group was sent.
  return Promise.reject(new Error("the reward function does not score groups any more"));
}

async function runOther(functions: UserFunctions, work: ScoreWork): Promise<RewardResult> {
  if (work.kind === "group") {
    // The hook may change the list that it gets, and return nothing.
    const scores = [...work.scores];
    const after: unknown = await functions.postProcessScores?.(scores);
    return resultOf(after ?? scores, work.scores);
  }
  if (work.kind === "batch") {
    const { batch } = work;
    return placedOf(await (functions.assembleRmScores?.(batch) ?? []), batch);
  }
  await functions.log?.(work.entry);
  return nothing;
}

function placedOf(placed: unknown, { width, scores }: ScoredBatch): RewardResult {
  const length = width * scores.length;
  const numbers = itemsIn(placed);
  const rmScores = Float32Array.from(numbers ?? [], (one) => (typeof one === "number" ? one : NaN));
  if (numbers?.length === length && rmScores.every(Number.isFinite)) {
    return { rewardScore: 0, rewardExtraInfo: { rmScores } };
  }
  const wanted = `not ${length} finite numbers from assembleRmScores, but ${describe(placed)}`;
  throw new InvalidScoreError("a batch", wanted);
}

const nothing: RewardResult = { rewardScore: 0, rewardExtraInfo: {} };

function resultOf(after: unknown, before: GroupScoreList): RewardResult {
  const isList = Array.isArray(after) && after.length === before.length;
  // Every place, holes too.
  const scores = isList ? Array.from(after, (one, at) => scoreAt(one, before[at])) : [];
  if (isList && !scores.includes(undefined)) return { rewardScore: 0, rewardExtraInfo: { scores } };
  const wanted = `not ${before.length} finite numbers (or null) from postProcessScores, but ${describe(after)}`;
  throw new InvalidScoreError("a group", wanted);
}

/** Undefined where it is neither a score nor none. */
function scoreAt(after: unknown, before: number | null | undefined): number | null | undefined {
  if (after === null || (typeof after === "number" && Number.isFinite(after))) return after;
  // The mean of a group without scores is no number, and the group is as it was.
  return before === null && Number.isNaN(after) ? null : undefined;
}

function describe(value: unknown): string {
  if (!Array.isArray(value)) return typeof value;
  const odd: unknown = value.find((one) => one !== null && !Number.isFinite(one));
  return odd === undefined
    ? `${value.length} of them`
    : `${typeof odd === "number" ? odd : typeof odd} among them`;
}
