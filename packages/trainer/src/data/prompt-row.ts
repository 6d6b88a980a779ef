/**
 * One prompt of a data set, checked once when it is read: an error before anything is trained has
 * the place of the row. Rows are verl's, or of the shapes that `rayling score` reads
 * (@rayling/reward-loop/rows), without their answers. Knows nothing of files.
 */

import { inspect } from "node:util";
import { nearestOf } from "@rayling/config-tree/nearest";
import { assumedSource, isRow, readPrompt, valueAt } from "@rayling/reward-loop/rows";
import type { Row } from "@rayling/reward-loop/rows";
import { isList } from "@rayling/reward-manager-registry/values";
import { DatasetError } from "../errors.ts";
import type { RowPlace } from "../errors.ts";
import type { ChatMessage } from "../policy/policy.ts";

/** One row of a data set, checked. */
export interface PromptRow {
  /**
   * Identity of the row: its place in the data set, from 0, over all files and before any row is
   * left out.
   */
  readonly index: number;
  /** verl `raw_prompt`: the conversation that is to be answered. */
  readonly rawPrompt: readonly ChatMessage[];
  /** verl `data_source`: chooses the default scorer, and validation is reported by it. */
  readonly dataSource: string;
  /** True where the row names no data source, which then is the file's name. */
  readonly isSourceAssumed?: boolean;
  /** verl `reward_model.ground_truth`. */
  readonly groundTruth: unknown;
  /** verl `extra_info`; {} where there is none. */
  readonly extraInfo: Readonly<Record<string, unknown>>;
  /** verl `ability`, if the row has one. */
  readonly ability: string | undefined;
  /** All columns of the row, unchanged. */
  readonly columns: Readonly<Record<string, unknown>>;
}

/** Columns of a row that have other names than verl's. */
export interface ColumnNames {
  /**
   * verl `data.prompt_key`: a column, or a path as "doc.question", with a conversation or a text
   * that a user says. Default "prompt", or where a row has none: messages (without the answer at
   * their end), input (verl's dumps), arguments (lm-evaluation-harness).
   */
  readonly promptKey?: string;
  /**
   * verl `data.reward_fn_key`. Default "data_source", or the file's name in rows that are not
   * verl's and have none.
   */
  readonly rewardFnKey?: string;
  /**
   * The column or path of the ground truth. Default: reward_model.ground_truth (verl), or in rows
   * without a reward_model: ground_truth, gts (verl's dumps), solution or answer (TRL), target
   * (lm-evaluation-harness).
   */
  readonly truthKey?: string | undefined;
}

/** Where a row has its prompt and ground truth. */
export interface RowShape {
  /** The name or path of the prompt. */
  readonly prompt: string;
  /** The name or path of the ground truth. */
  readonly groundTruth: string;
  /** The file's name, where the row names no data source. */
  readonly assumedSource: string | undefined;
}

const ownPromptKey = "prompt";
const ownSourceKey = "data_source";

/** Throws DatasetError with the place. */
export function readPromptRow(
  value: unknown,
  index: number,
  place: RowPlace,
  names: ColumnNames = {},
): { readonly row: PromptRow; readonly shape: RowShape } {
  const bad = (reason: string): DatasetError => new DatasetError(reason, place);
  if (!isRow(value)) throw bad(`a row must be an object of columns, not ${kindOf(value)}`);
  const { source, isAssumed } = sourceOf(value, names, place);
  if (names.truthKey === undefined) checkRewardModel(value, bad);
  const extraInfo = value["extra_info"] ?? {};
  if (!isRow(extraInfo)) throw bad(`extra_info must be an object, not ${kindOf(extraInfo)}`);
  const ability = value["ability"] ?? undefined;
  if (ability !== undefined && typeof ability !== "string") {
    throw bad(`ability must be a text, not ${kindOf(ability)}`);
  }
  const { promptKey = ownPromptKey, truthKey } = names;
  const keys = { promptKey: promptKey === ownPromptKey ? undefined : promptKey, truthKey };
  const found = readPrompt(value, keys, { ...optionNames, bad });
  return {
    row: {
      index,
      rawPrompt: conversationOf(found.promptPath, found.prompt, bad),
      dataSource: source,
      ...(isAssumed ? { isSourceAssumed: true } : {}),
      groundTruth: found.groundTruth,
      extraInfo,
      ability,
      columns: value,
    },
    shape: {
      prompt: found.promptPath,
      groundTruth: found.truthPath,
      assumedSource: isAssumed ? source : undefined,
    },
  };
}

const optionNames = {
  promptOption: "data.prompt_key",
  responseOption: "",
  truthOption: "data.truth_key",
};

function sourceOf(
  row: Row,
  { rewardFnKey = ownSourceKey }: ColumnNames,
  place: RowPlace,
): { readonly source: string; readonly isAssumed: boolean } {
  const source = valueAt(row, rewardFnKey);
  if (typeof source === "string") return { source, isAssumed: false };
  const isVerls = valueAt(row, "reward_model") !== undefined;
  const isMisspelt = nearestOf(rewardFnKey, Object.keys(row)) !== undefined;
  const isAssumed = source === undefined && rewardFnKey === ownSourceKey && !isVerls && !isMisspelt;
  if (isAssumed && place.path !== undefined) {
    return { source: assumedSource(place.path), isAssumed };
  }
  const reason = `${rewardFnKey} must be a text, not ${kindOf(row[rewardFnKey])}`;
  throw new DatasetError(reason + thereAre(row, rewardFnKey), place);
}

/** A row with a reward_model is verl's: no other column is its ground truth. */
function checkRewardModel(row: Row, bad: (reason: string) => DatasetError): void {
  const rewardModel = valueAt(row, "reward_model");
  if (rewardModel === undefined) return;
  if (!isRow(rewardModel)) {
    throw bad(`reward_model must be { ground_truth, ... }, not ${kindOf(rewardModel)}`);
  }
  if (rewardModel["ground_truth"] === undefined) {
    throw bad("reward_model.ground_truth is missing (null counts)");
  }
}

/** Returns the conversation; a text is a message of the user. */
function conversationOf(
  path: string,
  prompt: unknown,
  bad: (reason: string) => DatasetError,
): readonly ChatMessage[] {
  if (typeof prompt === "string" && prompt !== "") return [{ role: "user", content: prompt }];
  const problem = promptProblem(prompt);
  if (problem !== undefined) throw bad(`${path}${problem}`);
  return prompt as readonly ChatMessage[];
}

function promptProblem(prompt: unknown): string | undefined {
  if (!isList(prompt)) {
    return ` must be a list of { role, content } or a text, not ${kindOf(prompt)}`;
  }
  if (prompt.length === 0) return " has no messages";
  for (const [at, message] of prompt.entries()) {
    if (!isRow(message)) return `[${at}] must be { role, content }, not ${kindOf(message)}`;
    const { role, content } = message;
    if (typeof role !== "string") return `[${at}].role must be a text, not ${kindOf(role)}`;
    const problem = typeof content === "string" ? undefined : partsProblem(content);
    if (problem !== undefined) return `[${at}].content${problem}`;
  }
  return undefined;
}

/** Checks the parts of a message, images and texts. Other keys of a part are left to the model. */
function partsProblem(content: unknown): string | undefined {
  if (!isList(content)) {
    return ` must be a text or a list of { type, ... }, not ${kindOf(content)}`;
  }
  if (content.length === 0) return " has no parts";
  for (const [at, part] of content.entries()) {
    if (!isRow(part) || typeof part["type"] !== "string") {
      return `[${at}] must be { type, ... }, not ${kindOf(part)}`;
    }
    if (part["type"] === "text" && typeof part["text"] !== "string") {
      return `[${at}].text must be a text, not ${kindOf(part["text"])}`;
    }
  }
  return undefined;
}

/** Names the columns that there are, for a missing one, and the one that was probably meant. */
function thereAre(row: Readonly<Record<string, unknown>>, key: string): string {
  if (row[key] !== undefined) return "";
  const keys = Object.keys(row);
  const alike = nearestOf(key, keys);
  const meant = alike === undefined ? "" : `; is it ${alike}?`;
  return keys.length === 0 ? "" : ` (there are ${keys.join(", ")}${meant})`;
}

function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (isList(value)) return `a list of ${value.length}`;
  return typeof value === "object"
    ? "an object"
    : `the ${typeof value} ${inspect(value, { maxStringLength: 60 })}`;
}
