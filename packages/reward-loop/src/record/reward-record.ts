/**
 * The record of one outcome: to a line of a reward log, and back. Field names are data that other
 * programs read: they stay.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { classOf } from "../faults/failure-class.ts";
import type { FailureClass } from "../outcome.ts";
import type { SampleOutcome, ScoreFailure } from "../outcome.ts";
import { wholeUsageOf } from "../spend/usage.ts";
import type { TokenUsage } from "../outcome.ts";
import { groupNameOf, sampleKey } from "../sample/sample-key.ts";
import type { SampleTexts } from "../sample/logged-texts.ts";

/** One line of a reward log. */
export interface RewardRecord extends Partial<SampleTexts> {
  /** The sample's place in its input, from 0. */
  readonly index: number;
  /** Which sample it is, by what it says. */
  readonly sample: string;
  /**
   * The part of several rewards, or of a cascade, that the line belongs to ("correct/judge"); null:
   * all of them together, or the only one.
   */
  readonly component: string | null;
  /** verl `uid`: `context.group`, or what the sample's extraInfo calls its group; null without. */
  readonly group: string | null;
  /** The version of the reward function: its source and settings. */
  readonly version: string;
  /** ISO 8601, when the outcome was there. */
  readonly at: string;
  /** The lane in which it was scored: "training", "validation" or another. */
  readonly lane: string;
  /** Whether it has a score. */
  readonly valid: boolean;
  /** The score; null if it has none. */
  readonly score: number | null;
  /** Why it has no score; null if it has one. */
  readonly error: ScoreFailure | null;
  /** The class of that failure; null if it has a score. */
  readonly errorClass: FailureClass | null;
  /** How often the score function was started on it. */
  readonly attempts: number;
  /** How long it waited for a slot, for limits and between attempts. */
  readonly waitedMs: number;
  /** How long the score function took. */
  readonly latencyMs: number;
  /** Set where prices are known. */
  readonly cost: number | null;
  /** No function was called for it. */
  readonly cached: boolean;
  /** Which of several functions gave the score; null where there is one. */
  readonly answeredBy: string | null;
  /** Tokens, where the score's extra info tells them. */
  readonly usage: TokenUsage | null;
  /** The data source that the function was given, where the writer of the log keeps it. */
  readonly dataSource?: string;
  /** The label of the data, where it has one: whether the sample is right, or its grade. */
  readonly label?: boolean | number;
  /** Further values of the score function. */
  readonly extra: Readonly<Record<string, unknown>>;
  /**
   * The line says what the sample's group made of it, and stands behind one with what its functions
   * gave: this score, or null for none. Its tokens, times and costs are those of that line, and
   * count once. Lines of its parts have it, too.
   */
  readonly scoredAs?: number | null;
  /** Why `extra` is empty, where the line would have been too long. */
  readonly extraDropped?: string;
  /**
   * Why the prompt, the response and the ground truth are missing, where the line would have been
   * too long, say.
   */
  readonly textsDropped?: string;
  /**
   * Places in this line, as `$.extra.logprob`, whose values JSON cannot carry: they stand there as
   * text ("-Infinity").
   */
  readonly asText?: readonly string[];
}

/** Where and when an outcome was recorded. */
export interface RecordPlace {
  /** The sample's place in its input, from 0. */
  readonly index: number;
  /** The lane in which it was scored. */
  readonly lane: string;
  /** The version of the reward function for outcomes without one. */
  readonly version: string;
  /** When the outcome was there. */
  readonly at: Date;
}

/**
 * Returns the records of the parts, and then that of the whole: a log with the whole's line is
 * complete for the sample.
 */
export function recordsOf(
  sample: RewardSample,
  outcome: SampleOutcome,
  place: RecordPlace,
  component: string | null = null,
): RewardRecord[] {
  const parts = Object.entries(outcome.components ?? {}).flatMap(([name, part]) =>
    recordsOf(sample, part, place, component === null ? name : `${component}/${name}`),
  );
  return [...parts, recordOf(sample, outcome, place, component)];
}

function recordOf(
  sample: RewardSample,
  outcome: SampleOutcome,
  { index, lane, version, at }: RecordPlace,
  component: string | null,
): RewardRecord {
  const extra = outcome.valid ? outcome.rewardExtraInfo : (outcome.error.rewardExtraInfo ?? {});
  return {
    index,
    sample: sampleKey(sample),
    component,
    group: groupNameOf(sample) ?? null,
    version: outcome.version ?? version,
    at: at.toISOString(),
    lane,
    valid: outcome.valid,
    score: outcome.valid ? outcome.rewardScore : null,
    error: outcome.valid ? null : outcome.error,
    errorClass: outcome.valid ? null : classOf(outcome.error),
    attempts: outcome.attempts,
    waitedMs: rounded(outcome.waitedMs),
    latencyMs: rounded(outcome.latencyMs),
    cost: outcome.cost ?? null,
    cached: outcome.cached ?? false,
    answeredBy: outcome.answeredBy ?? null,
    usage: wholeUsageOf(outcome) ?? null,
    extra,
  };
}

/** Removes prompts and responses, of which a run has gigabytes. */
export function withoutTexts(record: RewardRecord): RewardRecord {
  const { prompt: _, response: __, groundTruth: ___, ...others } = record;
  return others;
}

/** Returns the outcome that was recorded, without its parts. */
export function outcomeOf(record: RewardRecord): SampleOutcome {
  const { attempts, waitedMs, latencyMs, cost, cached, version, answeredBy } = record;
  const measured = {
    attempts,
    waitedMs,
    latencyMs,
    ...(typeof cost === "number" ? { cost } : {}),
    ...(cached ? { cached } : {}),
    version,
    // Older logs do not have it.
    ...(typeof answeredBy === "string" ? { answeredBy } : {}),
  };
  if (record.valid && record.score !== null) {
    return {
      valid: true,
      rewardScore: record.score,
      rewardExtraInfo: { ...record.extra },
      ...measured,
    };
  }
  const unknown = {
    code: "SCORE_THREW",
    name: "Error",
    message: "the record has no error",
  } as const;
  return { valid: false, error: record.error ?? unknown, ...measured };
}

/** Makes it the outcome that its functions gave, whatever its group made of it. */
export function givenOutcomeOf(record: RewardRecord): SampleOutcome {
  const { scoredAs, extra } = record;
  const outcome = outcomeOf(record);
  if (scoredAs === undefined) return outcome;
  const {
    valid: _valid,
    rewardScore: _score,
    rewardExtraInfo: _extra,
    ...rest
  } = {
    rewardScore: null,
    rewardExtraInfo: null,
    ...outcome,
  };
  if (scoredAs !== null) {
    return { ...rest, valid: true, rewardScore: scoredAs, rewardExtraInfo: { ...extra } };
  }
  const message = "its function gave no score, and its group a fallback";
  return { ...rest, valid: false, error: { code: "NOT_IN_LOG", name: "NotInLogError", message } };
}

/** Whether calls were made for the line: it does not say what a group made of a score. */
export function isOfCalls({ scoredAs }: Pick<RewardRecord, "scoredAs">): boolean {
  return scoredAs === undefined;
}

/**
 * Whether a line of a log counts in place of the one before it for the same index: it is of
 * another sample, which has that place now, it is valid or says what its group made of it, or
 * neither is.
 *
 * @param before undefined: there was none
 */
export function takesPlaceOf(
  record: Pick<RewardRecord, "valid" | "sample" | "scoredAs">,
  before: Pick<RewardRecord, "valid" | "sample"> | undefined,
): boolean {
  const isLast = record.valid || record.scoredAs !== undefined;
  return before?.valid !== true || isLast || record.sample !== before.sample;
}

/** Whether the sample has a score: a fallback is what one got that has none. */
export function isScored({ valid, extra }: RewardRecord): boolean {
  return valid && !(extra["fallback"] === true && typeof extra["error"] === "string");
}

/**
 * Whether a line of a log is a record: fields that are read without a check have the right type.
 */
export function isRecord(value: unknown): value is RewardRecord {
  if (!isObject(value)) return false;
  const { index, sample, version, at, valid, score, error, extra } = value;
  const { attempts, waitedMs, latencyMs } = value;
  return (
    Number.isSafeInteger(index) &&
    [sample, version, at].every((one) => typeof one === "string") &&
    !Number.isNaN(Date.parse(String(at))) &&
    [attempts, waitedMs, latencyMs].every((one) => typeof one === "number") &&
    isObject(extra) &&
    (valid === true
      ? typeof score === "number"
      : valid === false && score === null && isFailure(error))
  );
}

/** An older record may lack its failure; outcomeOf then adds one. */
function isFailure(error: unknown): boolean {
  if (error === null || error === undefined) return true;
  return (
    isObject(error) && typeof error["code"] === "string" && typeof error["message"] === "string"
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
