/**
 * Rollouts in the shapes that they are written in: verl's rows and the dumps of its trainer ({
 * input, output, gts }), TRL's { prompt, completion }, chat messages that end with the answer,
 * samples of lm-evaluation-harness ({ doc, target, arguments, resps }); and whatever else, by
 * keys that are given. Owns which key is what; knows no files.
 */

import { isConversation, textOf } from "./conversation.ts";
import type { Conversation } from "./conversation.ts";
import { groundTruthOf, truthNames } from "./ground-truth.ts";
import { firstOf, missing } from "./named-values.ts";
import { isRow, valueAt } from "./value-at.ts";
import type { Row } from "./value-at.ts";
import { promptNames } from "./prompt-row.ts";
import type { RowWords } from "./row-errors.ts";

/** Names or paths, where they are not those that are known. */
export interface RowKeys {
  readonly promptKey?: string | undefined;
  readonly responseKey?: string | undefined;
  readonly truthKey?: string | undefined;
}

export interface RolloutRow {
  /**
   * Responses by their keys, as "response" or "responses.0", each with its length in tokens where
   * the row has a `response_length`: a number, or for several responses a list of them.
   */
  readonly responses: readonly {
    readonly key: string;
    readonly text: string;
    readonly length?: number;
  }[];
  readonly groundTruth: unknown;
  readonly prompt: string | Conversation | undefined;
}

const responseKeys = ["response", "responses", "output", "completion", "messages", "resps"];

/** Whether it is one, however wrong. @param keys some are given */
export function isRollout(row: Row, keys: RowKeys): boolean {
  const known = [...responseKeys, "prompt"].some((key) => isOfRollout(row, key));
  return known || Object.values(keys).some((key) => key !== undefined);
}

/** GSM8K's rows have objects with a solution under keys of any name. */
function isOfRollout(row: Row, key: string): boolean {
  const value = valueAt(row, key);
  return value !== undefined && !(isRow(value) && "solution" in value);
}

/** Throws the error that `words` makes for a row that is not understood. */
export function readRollout(row: Row, keys: RowKeys, words: RowWords): RolloutRow {
  const responses = keys.responseKey === undefined ? responseKeys : [keys.responseKey];
  const found = firstOf(row, responses);
  if (found === undefined) {
    throw words.bad(missing(row, "response", responses, words.responseOption));
  }
  return {
    responses: withLengths(textsOf(found.path, found.value, words.bad), row, words.bad),
    groundTruth: groundTruthOf(row, truthNames(found.path), keys.truthKey, words).value,
    prompt: promptOf(row, keys, found, words),
  };
}

type Response = RolloutRow["responses"][number];

/**
 * A text, what was said last in a conversation, or a list of such; lm-evaluation-harness has
 * lists of lists.
 */
function textsOf(key: string, value: unknown, bad: (reason: string) => Error): readonly Response[] {
  const text = answerOf(value);
  if (text !== undefined) return [{ key, text }];
  if (isConversation(value) && value.length > 0) {
    const role = value.at(-1)?.role ?? "";
    throw bad(`"${key}" does not end with a text of the assistant, but with what ${role} says`);
  }
  if (!Array.isArray(value)) throw bad(`"${key}" is neither a text nor a list`);
  return value.flatMap((one: unknown, at) => {
    const part = `${key}.${at}`;
    if (Array.isArray(one) && answerOf(one) === undefined) {
      return one.map((inner: unknown, place) => {
        const innerText = answerOf(inner);
        if (innerText === undefined) throw bad(`"${part}.${place}" is not a text`);
        return { key: `${part}.${place}`, text: innerText };
      });
    }
    const partText = answerOf(one);
    if (partText === undefined) throw bad(`"${part}" is not a text`);
    return [{ key: part, text: partText }];
  });
}

/** A length that cannot be that of a response is an error, as it decides scores (dapo). */
function withLengths(
  responses: readonly Response[],
  row: Row,
  bad: (reason: string) => Error,
): readonly Response[] {
  const given = valueAt(row, "response_length");
  if (given === undefined) return responses;
  const lengths: readonly unknown[] = Array.isArray(given) ? given.flat() : [given];
  if (lengths.length !== responses.length) {
    const count = `${lengths.length} of them for ${responses.length} responses`;
    throw bad(`"response_length" is not one number for each response, but ${count}`);
  }
  return responses.map((response, at) => {
    const length = lengths[at];
    if (typeof length === "number" && Number.isInteger(length) && length >= 0) {
      return { ...response, length };
    }
    const problem = `is not a whole number of tokens, 0 or more, but ${describe(length)}`;
    throw bad(`"response_length" ${problem}`);
  });
}

function describe(value: unknown): string {
  return typeof value === "number" ? String(value) : value === null ? "null" : typeof value;
}

/** The answer that is scored: a text, or the text of the assistant's last message. */
function answerOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (!isConversation(value)) return undefined;
  const last = value.at(-1);
  return last?.role === "assistant" ? textOf(last.content) : undefined;
}

function promptOf(
  row: Row,
  { promptKey }: RowKeys,
  found: { readonly path: string; readonly value: unknown },
  { bad, promptOption }: RowWords,
): RolloutRow["prompt"] {
  const { path, value } = firstOf(row, promptKey === undefined ? promptNames : [promptKey]) ?? {};
  if (value === undefined && promptKey !== undefined) {
    throw bad(missing(row, "prompt", [promptKey], promptOption));
  }
  if (value === undefined && isConversation(found.value) && found.path === "messages") {
    return found.value.slice(0, -1);
  }
  if (value === undefined || typeof value === "string" || isConversation(value)) return value;
  throw bad(`"${path}" is neither a text nor a list of { role, content }`);
}
