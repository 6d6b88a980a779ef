/**
 * Reads model solutions: in the shape of GSM8K's example_model_solutions.jsonl (one question per line with its ground truth and any
 * number of solutions, each under a key of its own), or one rollout per line or row by verl's names (with `responses`, several of one prompt), as JSON Lines or Parquet.
 * Owns what a good line is; a bad one is told with its number and reason.
 */

import { basename } from "node:path";
import { stat } from "node:fs/promises";
import { JsonlError, ParquetError, readJsonl, readParquet } from "@rayling/data-proto";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { CliError } from "./cli-error.ts";

/** One solution of one question. */
export interface SolutionSample extends RewardSample {
  readonly extraInfo: { readonly question: string; readonly [key: string]: unknown };
  /** Not told to the reward function: a sample is the same wherever it stands. */
  readonly place: SolutionPlace;
  /** Of the data, to compare with; not told to the reward function. */
  readonly isCorrect: boolean | undefined;
}

/** Where a sample stands in its file. */
export interface SolutionPlace {
  /** From 0. */
  readonly index: number;
  /** Of its line or row, from 0. */
  readonly questionIndex: number;
  /** Of a rollout "response", of several of one prompt "responses.0". */
  readonly solutionKey: string;
}

export interface Solutions {
  readonly total: number;
  readonly read: () => AsyncIterable<SolutionSample> | Iterable<SolutionSample>;
}

/**
 * Reads the file once to check and count it, so that a bad line costs nothing; `read` reads it again, as a stream. What can be read only
 * once (a pipe) is kept in memory. Throws CliError 2.
 */
export async function openSolutions(path: string, signal: AbortSignal): Promise<Solutions> {
  const kept: SolutionSample[] = [];
  const isFile = (await stat(path).catch(() => undefined))?.isFile() ?? false;
  let total = 0;
  for await (const sample of readSolutions(path, signal)) {
    total += 1;
    if (!isFile) kept.push(sample);
  }
  if (total === 0) throw new CliError(2, `${path} has no solutions.`);
  return { total, read: () => (isFile ? readSolutions(path, signal) : kept) };
}

async function* readSolutions(path: string, signal: AbortSignal): AsyncGenerator<SolutionSample> {
  const dataSource = basename(path).replace(/\.(jsonl|parquet)$/, "");
  let questionIndex = 0;
  let index = 0;
  try {
    for await (const { place, value } of rowsOf(path, signal)) {
      const bad = (reason: string): CliError => new CliError(2, `${place}: ${reason}`);
      for (const sample of samplesOf(value, bad, dataSource, questionIndex, index)) {
        index += 1;
        yield sample;
      }
      questionIndex += 1;
    }
  } catch (error) {
    if (!(error instanceof JsonlError) && !(error instanceof ParquetError)) throw error;
    throw new CliError(2, error.message, { cause: error });
  }
}

/** With where each stands, for people. */
async function* rowsOf(
  path: string,
  signal: AbortSignal,
): AsyncGenerator<{ readonly place: string; readonly value: unknown }> {
  if (path.endsWith(".parquet")) {
    for await (const { row, value } of readParquet(path, { signal })) {
      // A row has all columns, whether it says something there or not.
      const told = Object.entries(value).filter(([, part]) => part !== null);
      yield { place: `${path}, row ${row}`, value: Object.fromEntries(told) };
    }
    return;
  }
  for await (const { line, value } of readJsonl(path, { signal })) {
    yield { place: `${path}:${line}`, value };
  }
}

function samplesOf(
  value: unknown,
  bad: (reason: string) => CliError,
  dataSource: string,
  questionIndex: number,
  firstIndex: number,
): SolutionSample[] {
  if (!isRecord(value)) throw bad("the line is not an object");
  const { responses } = value;
  if ("response" in value) {
    const place = { index: firstIndex, questionIndex, solutionKey: "response" };
    return [rolloutOf(value, bad, dataSource, place)];
  }
  if (Array.isArray(responses)) {
    return responses.map((response: unknown, offset) => {
      const index = firstIndex + offset;
      const key = `responses.${offset}`;
      const place = { index, questionIndex, solutionKey: key };
      return rolloutOf({ ...value, response }, bad, dataSource, place);
    });
  }
  if (responses !== undefined && !isRecord(responses)) throw bad(`"responses" is not a list`);
  if ("prompt" in value) throw bad(`there is neither "response" nor "responses"`);
  const { question, ground_truth: groundTruth } = value;
  if (typeof question !== "string") throw bad(`"question" is not a text`);
  if (groundTruth === undefined) throw bad(`"ground_truth" is missing`);
  const solutions = Object.entries(value).filter(
    ([key, entry]) => key !== "ground_truth" && isRecord(entry) && "solution" in entry,
  );
  if (solutions.length === 0) throw bad("no key holds an object with a solution");
  return solutions.map(([solutionKey, entry], offset) => {
    const { solution, is_correct: isCorrect } = entry as Record<string, unknown>;
    if (typeof solution !== "string") throw bad(`"${solutionKey}.solution" is not a text`);
    if (isCorrect !== undefined && typeof isCorrect !== "boolean") {
      throw bad(`"${solutionKey}.is_correct" is neither true nor false`);
    }
    const place = { index: firstIndex + offset, questionIndex, solutionKey };
    return {
      dataSource,
      isSourceAssumed: true,
      response: solution,
      groundTruth,
      extraInfo: { question },
      place,
      isCorrect,
    };
  });
}

/** { response, ground_truth or reward_model.ground_truth, data_source?, extra_info?, prompt?, question?, is_correct? } */
function rolloutOf(
  value: Record<string, unknown>,
  bad: (reason: string) => CliError,
  source: string,
  place: SolutionPlace,
): SolutionSample {
  const { response, data_source: dataSource = source, extra_info: extraInfo = {} } = value;
  const { prompt, is_correct: isCorrect, reward_model: rewardModel = {} } = value;
  const {
    ground_truth: groundTruth = isRecord(rewardModel) ? rewardModel["ground_truth"] : undefined,
  } = value;
  if (typeof response !== "string") throw bad(`"${place.solutionKey}" is not a text`);
  if (groundTruth === undefined) throw bad(`"ground_truth" is missing`);
  if (typeof dataSource !== "string") throw bad(`"data_source" is not a text`);
  if (!isRecord(extraInfo)) throw bad(`"extra_info" is not an object`);
  const { question = extraInfo["question"] ?? lastOf(prompt) ?? "" } = value;
  if (typeof question !== "string") throw bad(`"question" is not a text`);
  if (prompt !== undefined && !isConversation(prompt) && typeof prompt !== "string") {
    throw bad(`"prompt" is neither a text nor a list of { role, content }`);
  }
  if (isCorrect !== undefined && typeof isCorrect !== "boolean") {
    throw bad(`"is_correct" is neither true nor false`);
  }
  return {
    dataSource,
    ...("data_source" in value ? {} : { isSourceAssumed: true }),
    response,
    groundTruth,
    extraInfo: { ...extraInfo, question },
    place,
    ...(isConversation(prompt) ? { rawPrompt: prompt } : {}),
    isCorrect,
  };
}

type Conversation = NonNullable<RewardSample["rawPrompt"]>;

function isConversation(prompt: unknown): prompt is Conversation {
  return (
    Array.isArray(prompt) &&
    prompt.every((one) => isRecord(one) && typeof one["role"] === "string" && "content" in one)
  );
}

/** What was asked last, where that is a text. */
function lastOf(prompt: unknown): string | undefined {
  if (typeof prompt === "string") return prompt;
  const content = isConversation(prompt) ? prompt.at(-1)?.content : undefined;
  return typeof content === "string" ? content : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
