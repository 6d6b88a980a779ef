/**
 * The contract of the wire forms of other trainers. They have no word for a sample that could not
 * be scored, or one of their own: `OnInvalid` says what is sent in its place, and without it the
 * request fails, which their clients see and try again.
 */

import { HttpRefusal } from "@rayling/core/http";
import type { RewardSample } from "@rayling/reward-manager-registry";
import type { z } from "zod";
import type { Answer, AnswerError } from "../answer.ts";
import type { Query, QueryParameters } from "./query.ts";

/** "fail": an HTTP error; "null": no score, in the form's own way; a number: that score. */
export type OnInvalid = "fail" | "null" | number;

export interface Form {
  /** Whose it is. */
  readonly name: string;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  readonly query: QueryParameters;
  readonly request: z.ZodType;
  readonly response: z.ZodType;
  /** Throws HttpRefusal 422. @param body as JSON has it */
  read(body: unknown, query: Query): readonly RewardSample[];
  /** The body of the answer. With "fail" all answers are valid. @param body that was read */
  write(answers: readonly Answer[], onInvalid: OnInvalid, body: unknown, query: Query): unknown;
}

/** The score that is sent, or null for none. */
export function sentScore({ score, valid }: Answer, onInvalid: OnInvalid): unknown {
  const sent = valid ? score : onInvalid;
  return typeof sent === "number" ? float(sent) : null;
}

/**
 * A number that Python reads as a float also where it is whole: of 1 it makes an int, of which
 * torch makes a tensor of int64, which has no mean.
 */
export function float(value: number): unknown {
  const text = JSON.stringify(value);
  return /^-?\d+$/.test(text) ? rawJson(`${text}.0`) : value;
}

/** Returns an answer's body. Integers that came in as bigints go out as they came. */
export function bodyText(answer: unknown): string {
  return JSON.stringify(answer, (_, value: unknown) =>
    typeof value === "bigint" ? rawJson(String(value)) : value,
  );
}

/** ECMAScript's JSON.rawJSON, which Node 22 has and TypeScript does not know yet. */
const rawJson: (text: string) => unknown = Reflect.get(JSON, "rawJSON");

/**
 * The request of a sample that has no score: the status says who is at fault, the code and the
 * message are the sample's own.
 */
export function refusalOf({
  code,
  message,
  class: kind,
  retry_after_ms,
}: AnswerError): HttpRefusal {
  const seconds = Math.max(1, Math.ceil((retry_after_ms ?? 0) / 1000));
  const mayPass = kind === "infrastructure" || kind === "rate-limit" || kind === "timeout";
  return new HttpRefusal(
    statuses[kind],
    code,
    `the sample could not be scored: ${message}`,
    mayPass ? { "retry-after": String(seconds) } : {},
  );
}

const statuses: Readonly<Record<AnswerError["class"], number>> = {
  infrastructure: 502,
  "rate-limit": 503,
  timeout: 504,
  data: 422,
  "user-code": 500,
};
