/**
 * Reads model solutions: in the format of GSM8K's example_model_solutions.jsonl (one question per
 * line with its ground truth and any number of solutions, each under a key of its own), or rollouts
 * in a shape of @rayling/reward-loop/rows, as JSON Lines, a JSON array or Parquet. The error of a
 * bad line has its number and reason.
 */

import { stat } from "node:fs/promises";
import {
  HubFileError,
  hubFile,
  isHubPath,
  JsonlError,
  ParquetError,
  readRecords,
} from "@rayling/data-proto";
import type { SampleLabel } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { CliError, refusalOf } from "../cli-error.ts";
import {
  assumedSource,
  isConversation,
  isRollout,
  isRow,
  readRollout,
  textOf,
} from "@rayling/reward-loop/rows";
import type { Conversation, Row, RowKeys } from "@rayling/reward-loop/rows";
import { groupNameOf } from "./group-name.ts";
import { labelOf } from "./sample-label.ts";

/** One solution of one question. */
export interface SolutionSample extends RewardSample {
  readonly extraInfo: { readonly question: string; readonly [key: string]: unknown };
  /**
   * The place in the file. The reward function does not get it: a sample is the same at any place.
   */
  readonly place: SolutionPlace;
  /** The label of the data, for comparison; the reward function does not get it. */
  readonly label: SampleLabel | undefined;
}

/** The place of a sample in its file. */
export interface SolutionPlace {
  /** From 0. */
  readonly index: number;
  /** The index of its line or row, from 0. */
  readonly questionIndex: number;
  /** The key: "response" for a rollout, "responses.0" for one of several. */
  readonly solutionKey: string;
}

export interface InputOptions {
  readonly keys: RowKeys;
  /** The key whose value names the group of an answer; undefined: `uid`, else the prompt. */
  readonly groupKey?: string | undefined;
  /** The key whose value is the label of an answer; undefined: `is_correct`, where there is one. */
  readonly labelKey?: string | undefined;
  /** Whether NaN and Infinity are read, which Python writes. */
  readonly allowNan: boolean;
}

export interface Solutions {
  readonly total: number;
  /** The number of samples with a label. */
  readonly labelled: number;
  readonly read: () => AsyncIterable<SolutionSample> | Iterable<SolutionSample>;
}

/**
 * Reads the file once to check and count it, so that a bad line costs nothing; `read` reads it
 * again, as a stream. A source that can be read only once (a pipe) is kept in memory. Throws
 * CliError 2.
 */
export async function openSolutions(
  path: string,
  signal: AbortSignal,
  options: InputOptions = { keys: {}, allowNan: false },
): Promise<Solutions> {
  const file = await localFile(path);
  const kept: SolutionSample[] = [];
  const isFile = (await stat(file).catch(() => undefined))?.isFile() ?? false;
  let [total, labelled] = [0, 0];
  for await (const sample of readSolutions(file, signal, options)) {
    total += 1;
    if (sample.label !== undefined) labelled += 1;
    if (!isFile) kept.push(sample);
  }
  if (total === 0) throw new CliError(2, `${path} has no solutions.`);
  if (options.labelKey !== undefined && labelled === 0) {
    throw new CliError(2, `${path}: no row has a label at "${options.labelKey}" (--label-key).`);
  }
  return { total, labelled, read: () => (isFile ? readSolutions(file, signal, options) : kept) };
}

/** A file of the Hugging Face Hub is copied first. Throws CliError 2. */
async function localFile(path: string): Promise<string> {
  if (!isHubPath(path)) return path;
  try {
    return await hubFile(path);
  } catch (error) {
    throw refusalOf(error, [HubFileError], "--solutions");
  }
}

async function* readSolutions(
  path: string,
  signal: AbortSignal,
  options: InputOptions,
): AsyncGenerator<SolutionSample> {
  const { allowNan } = options;
  const dataSource = assumedSource(path);
  let questionIndex = 0;
  let firstIndex = 0;
  try {
    for await (const { line, row, value } of readRecords(path, { signal, allowNan })) {
      const place = line === undefined ? `${path}, row ${row}` : `${path}:${line}`;
      const bad = (reason: string): CliError => new CliError(2, `${place}: ${reason}`);
      const counted = { dataSource, questionIndex, firstIndex };
      const samples = samplesOf(value, options, bad, counted);
      yield* samples;
      firstIndex += samples.length;
      questionIndex += 1;
    }
  } catch (error) {
    throw refusalOf(error, [JsonlError, ParquetError]);
  }
}

/** The position in the file. */
interface Counted {
  /** The name of the file, for rows without a data source. */
  readonly dataSource: string;
  /** The number of lines or rows so far. */
  readonly questionIndex: number;
  /** The number of samples so far. */
  readonly firstIndex: number;
}

function samplesOf(
  value: unknown,
  options: InputOptions,
  bad: (reason: string) => CliError,
  counted: Counted,
): SolutionSample[] {
  if (!isRow(value)) throw bad("the line is not an object");
  const present = withoutNulls(value);
  const isOfSolutions = Object.values(present).some((part) => isRow(part) && "solution" in part);
  return isRollout(present, options.keys) || !isOfSolutions
    ? rolloutsOf(value, options, bad, counted)
    : solutionsOf(present, options, bad, counted);
}

/** Parquet's rows have all columns, even without a value: null counts as missing, in JSON, too. */
function withoutNulls(row: Row): Row {
  return Object.fromEntries(Object.entries(row).filter(([, part]) => part !== null));
}

/** One question with any number of solutions. */
function solutionsOf(
  value: Row,
  options: InputOptions,
  bad: (reason: string) => CliError,
  { questionIndex, firstIndex, dataSource }: Counted,
): SolutionSample[] {
  const { question, ground_truth: groundTruth } = value;
  if (typeof question !== "string") throw bad(`"question" is not a text`);
  if (groundTruth === undefined) throw bad(`"ground_truth" is missing`);
  const solutions = Object.entries(value).flatMap(([key, entry]) =>
    key !== "ground_truth" && isRow(entry) && "solution" in entry ? [{ key, entry }] : [],
  );
  const context = { group: groupNameOf(value, options, question, bad) };
  return solutions.map(({ key: solutionKey, entry }, offset) => {
    const { solution } = entry;
    if (typeof solution !== "string") throw bad(`"${solutionKey}.solution" is not a text`);
    const at = { place: offset, within: `${solutionKey}.` };
    const label = labelOf(entry, options.labelKey, at, bad);
    const place = { index: firstIndex + offset, questionIndex, solutionKey };
    return {
      dataSource,
      isSourceAssumed: true,
      response: solution,
      groundTruth,
      extraInfo: { question },
      context,
      place,
      label,
    };
  });
}

/**
 * Reads { ..., data_source?, extra_info?, question?, is_correct? }, or another label, beside the
 * keys of readRollout, of which `response_length` counts tokens (dapo).
 */
function rolloutsOf(
  row: Row,
  options: InputOptions,
  bad: (reason: string) => CliError,
  { questionIndex, firstIndex, dataSource: source }: Counted,
): SolutionSample[] {
  // Its errors name a column that is null.
  const { responses, groundTruth, prompt } = readRollout(row, options.keys, { ...flags, bad });
  const value = withoutNulls(row);
  const { data_source: dataSource = source, extra_info: extraInfo = {} } = value;
  if (typeof dataSource !== "string") throw bad(`"data_source" is not a text`);
  if (!isRow(extraInfo)) throw bad(`"extra_info" is not an object`);
  const { question = extraInfo["question"] ?? lastOf(prompt) ?? "" } = value;
  if (typeof question !== "string") throw bad(`"question" is not a text`);
  const named = groupNameOf(value, options, prompt ?? question, bad);
  // Responses of one row answer one prompt, whatever it is.
  const group = named ?? (responses.length > 1 ? `row ${questionIndex}` : undefined);
  return responses.map(({ key, text, length }, offset) => ({
    dataSource,
    ...("data_source" in value ? {} : { isSourceAssumed: true }),
    response: text,
    ...(length === undefined ? {} : { responseLength: length }),
    groundTruth,
    extraInfo: { ...extraInfo, question },
    place: { index: firstIndex + offset, questionIndex, solutionKey: key },
    ...(isConversation(prompt) ? { rawPrompt: prompt } : {}),
    ...(group === undefined ? {} : { context: { group } }),
    label: labelOf(value, options.labelKey, { place: offset }, bad),
  }));
}

const flags = {
  promptOption: "--prompt-key",
  responseOption: "--response-key",
  truthOption: "--truth-key",
};

/** Returns the last question, if it is a text. */
function lastOf(prompt: string | Conversation | undefined): string | undefined {
  return typeof prompt === "string" ? prompt : textOf(prompt?.at(-1)?.content);
}
