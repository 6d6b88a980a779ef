/**
 * Rollouts in common formats: verl's rows and the dumps of its trainer ({ input, output, gts }),
 * TRL's { prompt, completion }, chat messages that end with the answer, samples of
 * lm-evaluation-harness ({ doc, target, arguments, resps }); and any others, by given keys. Owns
 * the meaning of keys; knows no files.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { firstOf, isRow, missing, valueAt } from "./named-values.ts";
import type { Row } from "./named-values.ts";

/** Names or paths, if they differ from the known ones. */
export interface RowKeys {
  readonly promptKey?: string | undefined;
  readonly responseKey?: string | undefined;
  readonly truthKey?: string | undefined;
}

export interface RolloutRow {
  /** Responses with their places, such as "response" or "responses.0". */
  readonly responses: readonly { readonly key: string; readonly text: string }[];
  readonly groundTruth: unknown;
  readonly prompt: string | Conversation | undefined;
}

export type Conversation = NonNullable<RewardSample["rawPrompt"]>;

const responseKeys = ["response", "responses", "output", "completion", "messages", "resps"];

/**
 * Whether a row is a rollout, even a wrong one.
 *
 * @param keys given keys make any row a rollout
 */
export function isRollout(row: Row, keys: RowKeys): boolean {
  const known = [...responseKeys, "prompt"].some((key) => isOfRollout(row, key));
  return known || Object.values(keys).some((key) => key !== undefined);
}

/** GSM8K's rows have objects with a solution under keys of any name. */
function isOfRollout(row: Row, key: string): boolean {
  const value = valueAt(row, key);
  return value !== undefined && !(isRow(value) && "solution" in value);
}

/** @param bad makes the error of a reason */
export function readRollout(row: Row, keys: RowKeys, bad: (reason: string) => Error): RolloutRow {
  const responses = keys.responseKey === undefined ? responseKeys : [keys.responseKey];
  const found = firstOf(row, responses);
  if (found === undefined) throw bad(missing(row, "response", responses, "--response-key"));
  const truths = keys.truthKey === undefined ? truthKeys(found.path) : [keys.truthKey];
  const truth = firstOf(row, truths);
  // Null inside of a struct is a ground truth; a column of null is a missing one.
  const isNull = valueAt(row, "reward_model") !== undefined && hasNullTruth(row);
  if (truth === undefined && !(keys.truthKey === undefined && isNull)) {
    throw bad(missing(row, "ground truth", truths, "--truth-key"));
  }
  return {
    responses: textsOf(found.path, found.value, bad),
    groundTruth: truth === undefined ? null : truth.value,
    prompt: promptOf(row, keys, found, bad),
  };
}

function hasNullTruth({ reward_model: rewardModel }: Row): boolean {
  return isRow(rewardModel) && rewardModel["ground_truth"] === null;
}

function truthKeys(responseKey: string): readonly string[] {
  const own: Readonly<Record<string, readonly string[]>> = {
    output: ["gts"],
    completion: ["solution", "answer"],
    messages: ["solution", "answer"],
    resps: ["target"],
  };
  return ["ground_truth", "reward_model.ground_truth", ...(own[responseKey] ?? [])];
}

type Response = RolloutRow["responses"][number];

/**
 * Returns a text, the last message of a conversation, or a list of such; lm-evaluation-harness has
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

/** Returns the answer to score: a text, or the text of the assistant's last message. */
function answerOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (!isConversation(value)) return undefined;
  const last = value.at(-1);
  return last?.role === "assistant" ? textOf(last.content) : undefined;
}

/** Returns the text of a content: a text, or parts that are all texts. */
export function textOf(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (!Array.isArray(content) || content.length === 0) return undefined;
  const texts = content.map((part: unknown) =>
    isRow(part) && part["type"] === "text" ? part["text"] : undefined,
  );
  return texts.every((text) => typeof text === "string") ? texts.join("") : undefined;
}

function promptOf(
  row: Row,
  { promptKey }: RowKeys,
  found: { readonly path: string; readonly value: unknown },
  bad: (reason: string) => Error,
): RolloutRow["prompt"] {
  const { path, value } = firstOf(row, promptKey === undefined ? promptKeys : [promptKey]) ?? {};
  if (value === undefined && promptKey !== undefined) {
    throw bad(missing(row, "prompt", [promptKey], "--prompt-key"));
  }
  if (value === undefined && isConversation(found.value) && found.path === "messages") {
    return found.value.slice(0, -1);
  }
  if (value === undefined || typeof value === "string" || isConversation(value)) return value;
  throw bad(`"${path}" is neither a text nor a list of { role, content }`);
}

/** The last two are lm-evaluation-harness's, in the earlier and the current format. */
const promptKeys = ["prompt", "input", "arguments.0.0", "arguments.gen_args_0.arg_0"];

export function isConversation(value: unknown): value is Conversation {
  return (
    Array.isArray(value) &&
    value.every((one) => isRow(one) && typeof one["role"] === "string" && "content" in one)
  );
}
