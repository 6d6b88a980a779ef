/**
 * Prompts with their ground truths, which a policy is to answer: verl's rows and the dumps of its
 * trainer, TRL's { prompt, solution }, chat messages, samples of lm-evaluation-harness; and
 * whatever else, by keys that are given. An answer that a row has is left out. Knows no files.
 */

import { basename } from "node:path";
import { isConversation } from "./conversation.ts";
import { groundTruthOf, truthNamesOfPrompts } from "./ground-truth.ts";
import { firstOf, missing } from "./named-values.ts";
import type { Row } from "./value-at.ts";
import type { RowWords } from "./row-errors.ts";

/** Names or paths, where they are not those that are known. */
export interface PromptKeys {
  readonly promptKey?: string | undefined;
  readonly truthKey?: string | undefined;
}

export interface FoundPrompt {
  /** The name or path of the prompt, as "messages" or "arguments.0.0". */
  readonly promptPath: string;
  /** A text, or whatever else is there; `messages` come without the answer at their end. */
  readonly prompt: unknown;
  readonly truthPath: string;
  readonly groundTruth: unknown;
}

/** The last two are of lm-evaluation-harness, of before and now. */
const ofLogs = ["input", "arguments.0.0", "arguments.gen_args_0.arg_0"];

/** Names of the prompt in rows that have a response. */
export const promptNames: readonly string[] = ["prompt", ...ofLogs];

const namesOfPrompts = ["prompt", "messages", ...ofLogs];

/** Throws the error that `words` makes for a row that is not understood. */
export function readPrompt(row: Row, keys: PromptKeys, words: RowWords): FoundPrompt {
  const tried = keys.promptKey === undefined ? namesOfPrompts : [keys.promptKey];
  const found = firstOf(row, tried);
  if (found === undefined) throw words.bad(missing(row, "prompt", tried, words.promptOption));
  const { path, value } = found;
  if (ofLogs.includes(path) && typeof value === "string" && isRendered(value)) {
    const reason = `"${path}" is a conversation that a chat template has written out, and would be put into another one`;
    throw words.bad(`${reason} (${words.promptOption} names a list of messages, or a plain text)`);
  }
  const truth = groundTruthOf(row, truthNamesOfPrompts, keys.truthKey, words);
  return {
    promptPath: path,
    prompt: path === "messages" ? withoutAnswer(value) : value,
    truthPath: truth.path,
    groundTruth: truth.value,
  };
}

/**
 * Whether it has tokens as <|im_start|>, or ends where an assistant would begin, as verl's dumps
 * do, which leave such tokens out.
 */
function isRendered(text: string): boolean {
  return /<\|\w+\|>|<start_of_turn>|\[INST\]/.test(text) || /\n(?:assistant|model)\s*$/.test(text);
}

function withoutAnswer(value: unknown): unknown {
  if (!isConversation(value) || value.at(-1)?.role !== "assistant") return value;
  return value.slice(0, -1);
}

/** Returns the name of a file without its endings: the data source of rows that name none. */
export function assumedSource(path: string): string {
  return basename(path).replace(/\.(?:jsonl?|parquet)(?:\.gz)?$/i, "");
}
