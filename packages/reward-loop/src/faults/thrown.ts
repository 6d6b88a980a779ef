/**
 * Turns a value that user code threw into a failure as data. User values may throw when they are
 * read: nothing here throws.
 */

import {
  CannotTellError,
  InvalidSampleError,
  InvalidScoreError,
  MissingTokenizerError,
  SandboxUnavailableError,
  UnknownDataSourceError,
} from "@rayling/reward-manager-registry";
import { messageOf } from "@rayling/reward-manager-registry/values";
import type { ScoreFailure, ScoreFailureCode, TokenUsage } from "../outcome.ts";
import { usageOf } from "../spend/usage.ts";
import { partOf, textPartOf, withinError } from "./error-tree.ts";
import { httpDetailsOf } from "./http-details.ts";
import { isMalformedAnswer } from "./malformed-answer.ts";
import { transportFailureOf } from "./transport-failure.ts";

/**
 * Turns a value that the pipeline threw into data. An error that is not the pipeline's own is the
 * user's.
 *
 * @param withStack false where nobody will read it: the engine takes long to write a stack
 */
export function failureOf(thrown: unknown, withStack = true): ScoreFailure {
  if (!(thrown instanceof Error)) {
    // A Response, or what stands for one, may be thrown, too.
    const name = thrown instanceof Response ? "Response" : typeof thrown;
    return { code: "SCORE_THREW", name, message: wordsOf(thrown), ...foundIn(thrown) };
  }
  const error = { name: nameOf(thrown), message: textAt(thrown, "message") };
  if (thrown instanceof CannotTellError) {
    return { code: thrown.code, ...error, rewardExtraInfo: thrown.extraInfo };
  }
  if (thrown instanceof InvalidScoreError) {
    return { code: thrown.code, ...error, ...usedBy(thrown.extraInfo) };
  }
  if (isPipelineError(thrown)) return { code: thrown.code, ...error };
  const found = foundIn(thrown);
  const { errorCode = "" } = found;
  return {
    code: silences[errorCode] ?? "SCORE_THREW",
    ...error,
    ...found,
    ...(withStack ? stackOf(thrown) : {}),
  };
}

type Found = Pick<
  ScoreFailure,
  "errorCode" | "status" | "shouldRetry" | "retryAfterMs" | "transport" | "rewardExtraInfo"
>;

/** Collects facts about the endpoint from the user's error and the errors within it. */
function foundIn(thrown: unknown): Found {
  const within = withinError(thrown);
  const errorCode =
    within.map((one) => textPartOf(one, "code")).find((code) => code !== "") ??
    (isMalformedAnswer(within) ? "MALFORMED_ANSWER" : undefined);
  const transport = transportFailureOf(within);
  return {
    ...(errorCode === undefined ? {} : { errorCode }),
    ...httpDetailsOf(thrown),
    ...(transport === undefined ? {} : { transport }),
    ...usedBy(...within),
  };
}

/** Errors that say why a judge said nothing. */
const silences: Readonly<Partial<Record<string, ScoreFailureCode>>> = {
  REFUSED_ANSWER: "REFUSED",
  TRUNCATED_ANSWER: "TRUNCATED",
};

const namesOfTheLanguage: ReadonlySet<string> = new Set([
  "Error",
  "AggregateError",
  "EvalError",
  "RangeError",
  "ReferenceError",
  "SyntaxError",
  "TypeError",
  "URIError",
]);

/**
 * Returns the class's name where its errors have no name of their own, as with clients of endpoints
 * (openai: APIConnectionTimeoutError).
 */
function nameOf(thrown: Error): string {
  const own = textAt(thrown, "name");
  if (!namesOfTheLanguage.has(own)) return own;
  try {
    const { name } = thrown.constructor;
    return typeof name === "string" && name !== "" ? name : own;
  } catch {
    return own;
  }
}

function textAt(error: Error, key: "name" | "message"): string {
  try {
    const text = error[key];
    return textOf(key === "message" && text === "" ? messageOf(error) : text);
  } catch {
    return `a ${key} that cannot be read`;
  }
}

/** The engine makes it when it is read first, of a name and a message that may throw. */
function stackOf(thrown: Error): { readonly stack?: string } {
  try {
    const { stack } = thrown;
    return typeof stack === "string" ? { stack } : {};
  } catch {
    return {};
  }
}

/**
 * A judge that answered has its usage, even if the answer could not be used: on the error, on
 * errors within it, or in the answer that it keeps (ai: APICallError, InvalidResponseDataError).
 */
function usedBy(...within: readonly object[]): Pick<ScoreFailure, "rewardExtraInfo"> {
  for (const one of within) {
    const answers = [one, partOf(one, "data"), parsedOrNot(partOf(one, "responseBody"))];
    for (const usage of answers.map((answer) => partOf(answer, "usage"))) {
      const used = usage === undefined ? undefined : usageIn(usage);
      if (used !== undefined) return { rewardExtraInfo: { usage: used } };
    }
  }
  return {};
}

/** Getters of the user's may throw. */
function usageIn(usage: unknown): TokenUsage | undefined {
  try {
    return usageOf({ usage });
  } catch {
    return undefined;
  }
}

function parsedOrNot(body: unknown): unknown {
  if (typeof body !== "string" || !body.includes('"usage"')) return undefined;
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** Describes a thrown value that is no error. */
function wordsOf(thrown: unknown): string {
  const status = partOf(thrown, "status");
  const words = textPartOf(thrown, "message") || textPartOf(thrown, "statusText");
  if (words === "" && typeof status !== "number") return textOf(thrown);
  return [typeof status === "number" ? `status ${status}` : "", words].filter(Boolean).join(": ");
}

function isPipelineError(
  error: Error,
): error is
  | InvalidScoreError
  | InvalidSampleError
  | MissingTokenizerError
  | UnknownDataSourceError
  | SandboxUnavailableError {
  return (
    error instanceof InvalidScoreError ||
    error instanceof InvalidSampleError ||
    error instanceof MissingTokenizerError ||
    error instanceof UnknownDataSourceError ||
    error instanceof SandboxUnavailableError
  );
}

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    // A value whose conversion to text throws still needs words.
    return `a value of type ${typeof value}`;
  }
}
