/**
 * One prompt as a data set has it, by verl's columns, checked once when it is read: what is missing or of the wrong kind is found before anything is trained,
 * and told with its place. Knows nothing of files.
 */

import { inspect } from "node:util";
import { nearestOf } from "@rayling/config-tree/nearest";
import { DatasetError } from "../errors.ts";
import type { RowPlace } from "../errors.ts";
import type { ChatMessage } from "../policy/policy.ts";

export interface PromptRow {
  /** Where it stands in the data set, from 0, over all of its files and before anything is left out: its identity. */
  readonly index: number;
  /** verl `raw_prompt`: the conversation that is to be answered. */
  readonly rawPrompt: readonly ChatMessage[];
  /** verl `data_source`: chooses the default scorer, and validation is reported by it. */
  readonly dataSource: string;
  /** verl `reward_model.ground_truth`. */
  readonly groundTruth: unknown;
  /** verl `extra_info`; {} where there is none. */
  readonly extraInfo: Readonly<Record<string, unknown>>;
  readonly ability: string | undefined;
  /** All that stood there, as it stood there. */
  readonly columns: Readonly<Record<string, unknown>>;
}

export interface ColumnNames {
  /** verl `data.prompt_key`. Default "prompt". */
  readonly promptKey?: string;
  /** verl `data.reward_fn_key`. Default "data_source". */
  readonly rewardFnKey?: string;
}

/** Throws DatasetError with the place. */
export function readPromptRow(
  value: unknown,
  index: number,
  place: RowPlace,
  { promptKey = "prompt", rewardFnKey = "data_source" }: ColumnNames = {},
): PromptRow {
  const refuse = (reason: string): never => {
    throw new DatasetError(reason, place);
  };
  if (!isRecord(value)) return refuse(`a row must be an object of columns, not ${kindOf(value)}`);
  const dataSource = value[rewardFnKey];
  if (typeof dataSource !== "string") {
    const there = thereAre(value, rewardFnKey);
    return refuse(`${rewardFnKey} must be a text, not ${kindOf(dataSource)}${there}`);
  }
  const rewardModel = value["reward_model"];
  if (!isRecord(rewardModel)) {
    const there = thereAre(value, "reward_model");
    return refuse(`reward_model must be { ground_truth, ... }, not ${kindOf(rewardModel)}${there}`);
  }
  if (rewardModel["ground_truth"] === undefined) {
    return refuse("reward_model.ground_truth is missing (null counts)");
  }
  const extraInfo = value["extra_info"] ?? {};
  if (!isRecord(extraInfo)) {
    return refuse(`extra_info must be an object, not ${kindOf(extraInfo)}`);
  }
  const ability = value["ability"] ?? undefined;
  if (ability !== undefined && typeof ability !== "string") {
    return refuse(`ability must be a text, not ${kindOf(ability)}`);
  }
  const problem = promptProblem(value[promptKey]);
  if (problem !== undefined) return refuse(`${promptKey}${problem}${thereAre(value, promptKey)}`);
  return {
    index,
    rawPrompt: value[promptKey] as readonly ChatMessage[],
    dataSource,
    groundTruth: rewardModel["ground_truth"],
    extraInfo,
    ability,
    columns: value,
  };
}

function promptProblem(prompt: unknown): string | undefined {
  if (!Array.isArray(prompt)) {
    return ` must be a list of { role, content }, not ${kindOf(prompt)}`;
  }
  if (prompt.length === 0) return " has no messages";
  for (const [at, message] of (prompt as readonly unknown[]).entries()) {
    if (!isRecord(message)) return `[${at}] must be { role, content }, not ${kindOf(message)}`;
    const { role, content } = message;
    if (typeof role !== "string") return `[${at}].role must be a text, not ${kindOf(role)}`;
    const problem = typeof content === "string" ? undefined : partsProblem(content);
    if (problem !== undefined) return `[${at}].content${problem}`;
  }
  return undefined;
}

/** Images and texts, as models take them that see. What else is in a part is the model's affair. */
function partsProblem(content: unknown): string | undefined {
  if (!Array.isArray(content)) {
    return ` must be a text or a list of { type, ... }, not ${kindOf(content)}`;
  }
  if (content.length === 0) return " has no parts";
  for (const [at, part] of (content as readonly unknown[]).entries()) {
    if (!isRecord(part) || typeof part["type"] !== "string") {
      return `[${at}] must be { type, ... }, not ${kindOf(part)}`;
    }
    if (part["type"] === "text" && typeof part["text"] !== "string") {
      return `[${at}].text must be a text, not ${kindOf(part["text"])}`;
    }
  }
  return undefined;
}

/** Which columns there are, where one is missing, and which was meant, where one is alike. */
function thereAre(row: Readonly<Record<string, unknown>>, key: string): string {
  if (row[key] !== undefined) return "";
  const keys = Object.keys(row);
  const alike = nearestOf(key, keys);
  const meant = alike === undefined ? "" : `; is it ${alike}?`;
  return keys.length === 0 ? "" : ` (there are ${keys.join(", ")}${meant})`;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return typeof value === "object"
    ? "an object"
    : `the ${typeof value} ${inspect(value, { maxStringLength: 60 })}`;
}
