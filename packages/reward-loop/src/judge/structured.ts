/**
 * Asks for an answer that fits a schema. An answer within prose or fences is understood, and what
 * it quotes of the question there is not its verdict; for one that does not fit, the judge gets the
 * mistake and is asked again, in the same conversation.
 *
 * Invariant: the usage of all answers is counted, also if the result is an error.
 */

import { z } from "zod";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { askForOptions } from "../options/defaults/asking.ts";
import type { TableOf } from "../options/defaults/calls.ts";
import { checkOptions } from "../options/read.ts";
import { noteFailure } from "../client/announced.ts";
import { together, usageOf } from "../spend/usage.ts";
import type { TokenUsage } from "../outcome.ts";
import type { Ask, JudgeAnswer, JudgeMessage } from "./ask/ask.ts";
import { countIn, sumOf, withCount } from "./judge-count.ts";
import { JudgeAnswerError, JudgePromptError } from "./judge-error.ts";
import { candidatesIn } from "./answer/json-in.ts";
import type { Candidate } from "./answer/json-in.ts";
import { quotationsOf } from "./answer/quotations.ts";

/**
 * A schema of zod 4, of whichever version of it and of `zod/mini` too. The types of zod's own
 * versions refuse each other.
 */
export interface JudgeSchema<Value> {
  readonly _zod: { readonly output: Value };
}

export interface StructuredOptions<Value> {
  readonly messages: readonly JudgeMessage[];
  readonly schema: JudgeSchema<Value>;
  /** The name of the schema, for servers that want one. Default "verdict". */
  readonly name?: string | undefined;
  /** How often the judge is asked, at most. Default 3. */
  readonly attempts?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface Structured<Value> {
  readonly value: Value;
  /** The usage of all answers. */
  readonly usage: TokenUsage | undefined;
  /** How often the judge was asked. */
  readonly asked: number;
}

/**
 * Rejects with RewardLoopOptionError, with JudgeAnswerError where no answer fits, with
 * JudgePromptError for a schema that no JSON fits, or of no zod 4, or a number of attempts that is
 * none, and as `ask` does; an error that it passes on has the `usage` of all answers so far, and
 * how often the judge was `asked`. In the place of a signal's reason, which may be others' too, is
 * an error of the same name with it as its cause.
 */
export async function askFor<Value>(
  ask: Ask,
  options: StructuredOptions<Value>,
): Promise<Structured<Value>> {
  checkOptions(askForOptions satisfies TableOf<StructuredOptions<Value>>, options, "askFor");
  const { messages, schema, name = "verdict", attempts = 3, signal } = options;
  const jsonSchema = jsonSchemaOf(schema);
  checkAttempts(attempts);
  const form = `Answer with one JSON object that fits this JSON Schema, and with nothing else:\n${JSON.stringify(jsonSchema)}`;
  const question = { schema: jsonSchema, name, signal };
  const first = withForm(messages, form);
  const isQuoted = quotationsOf(messages.map(({ content }) => content));
  let conversation = first;
  let usage: TokenUsage | undefined;
  for (let asked = 1; ; asked++) {
    let answer: JudgeAnswer;
    try {
      answer = await ask({ ...question, messages: conversation });
    } catch (error) {
      if (asked === 1) throw error;
      const count = sumOf([{ usage, asked: asked - 1 }, countIn(error)]);
      throw withCount(error, count, signal);
    }
    const { text } = answer;
    usage = together(usage, usageOf({ usage: answer.usage }));
    const isCutOff = answer.finishReason === "length";
    const found = await fitting(text, schema, (one) => isQuoted(one, isCutOff));
    if ("value" in found) return { value: found.value, usage, asked };
    const problem = isCutOff ? "was cut off" : found.problem;
    const failure = new JudgeAnswerError(problem, { text, asked, usage, isCutOff });
    if (asked >= attempts) throw failure;
    noteFailure(failure);
    const brief = isCutOff ? " Be brief." : "";
    conversation = [
      ...first,
      { role: "assistant", content: text },
      { role: "user", content: `Your answer ${problem}.${brief} ${form}` },
    ];
  }
}

/** Throws JudgePromptError for a number of attempts that does not end, or does not begin. */
export function checkAttempts(attempts: number): void {
  if (Number.isSafeInteger(attempts) && attempts >= 1) return;
  throw new JudgePromptError(
    `A judge is asked a whole number of times, at least 1; not ${String(attempts)} times.`,
  );
}

/**
 * Describes answers that fit. A schema that makes something else of an answer (a transform) is
 * described by what it takes. Throws JudgePromptError for one that no JSON fits (dates, bigints),
 * and for one of another library or of zod 3.
 */
export function jsonSchemaOf(schema: JudgeSchema<unknown>): Readonly<Record<string, unknown>> {
  checkVersion(schema);
  try {
    return z.toJSONSchema(schema);
  } catch {
    try {
      return z.toJSONSchema(schema, { io: "input" });
    } catch (cause) {
      const why = messageOf(cause);
      throw new JudgePromptError(`A judge cannot answer by this schema: ${why}.`, { cause });
    }
  }
}

/** All versions of zod 4 read each other's schemas, and only their types differ. */
function checkVersion<Value>(
  schema: JudgeSchema<Value>,
): asserts schema is JudgeSchema<Value> & z.core.$ZodType<Value> {
  if ("_zod" in schema) return;
  const found = "_def" in schema ? "a schema of zod 3" : "no schema of zod";
  throw new JudgePromptError(
    `A judge cannot answer by this schema: this is ${found}; zod 4 is needed.`,
  );
}

/** Appends the form to the system message, or puts it before all messages. */
function withForm(messages: readonly JudgeMessage[], form: string): readonly JudgeMessage[] {
  const [first, ...others] = messages;
  if (first?.role !== "system") return [{ role: "system", content: form }, ...messages];
  return [{ role: "system", content: `${first.content}\n\n${form}` }, ...others];
}

/**
 * Only the last value counts: where it does not fit, an earlier one is no verdict. What the judge
 * quotes of the question is left out, except where its whole answer is that.
 */
async function fitting<Value>(
  text: string,
  schema: JudgeSchema<Value>,
  isQuoted: (candidate: Candidate) => boolean,
): Promise<{ readonly value: Value } | { readonly problem: string }> {
  const candidates = candidatesIn(text);
  const verdict = candidates.find((one) => !isQuoted(one));
  if (verdict === undefined) {
    const problem =
      candidates.length === 0 ? "has no JSON in it" : "has no JSON but what the question contains";
    return { problem };
  }
  checkVersion(schema);
  let problem: string | undefined;
  for (const reading of verdict.readings) {
    const result = await z.safeParseAsync(schema, reading);
    if (result.success) return { value: result.data };
    problem ??= `does not fit: ${z.prettifyError(result.error).replaceAll(/\s+/g, " ")}`;
  }
  return { problem: problem ?? "has no JSON in it" };
}
