/**
 * Public names of @rayling/reward-loop/reward-log: lines of a reward log, and which of several for
 * one sample counts; a separate entry for readers that keep an index of a log.
 */

export { RewardLogError } from "./errors.ts";
export type { FailureClass, SampleOutcome, ScoreFailureCode } from "./outcome.ts";
export { isOfPart } from "./record/reward-log-file.ts";
export { isRecord, takesPlaceOf } from "./record/reward-record.ts";
export type { RewardRecord } from "./record/reward-record.ts";
