/**
 * One prompt as a data set has it, by verl's columns, checked once when it is read: what is missing or of the wrong kind is found before anything is trained,
 * and told with its place. Knows nothing of files.
 */

import { inspect } from "node:util";
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
    return refuse(`${rewardFnKey} must be a text, not ${kindOf(dataSource)}`);
  }
  const rewardModel = value["reward_model"];
  if (!isRecord(rewardModel)) {
    return refuse(`reward_model must be { ground_truth, ... }, not ${kindOf(rewardModel)}`);
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
  if (problem !== undefined) return refuse(`${promptKey}${problem}`);
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
    for (const key of ["role", "content"]) {
      const text = message[key];
      if (typeof text !== "string") return `[${at}].${key} must be a text, not ${kindOf(text)}`;
    }
  }
  return undefined;
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
