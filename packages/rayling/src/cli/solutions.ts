/**
 * Reads model solutions: in the shape of GSM8K's example_model_solutions.jsonl (one question per line with its ground truth and any
 * number of solutions, each under a key of its own), or one rollout per line by verl's names. Owns what a good line is; a bad one is told with its number and reason.
 */

import { basename } from "node:path";
import { stat } from "node:fs/promises";
import { JsonlError, readJsonl } from "@rayling/data-proto";
import type { JsonlRecord } from "@rayling/data-proto";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { CliError } from "./cli-error.ts";

/** One solution of one question; a rollout's `solutionKey` is "response". */
export interface SolutionSample extends RewardSample {
  /** `index` numbers the samples of the file from 0: the simulated judge's latency hangs on it. */
  readonly extraInfo: {
    readonly index: number;
    readonly questionIndex: number;
    readonly question: string;
    readonly solutionKey: string;
    readonly [key: string]: unknown;
  };
  /** Of the data, to compare with; not told to the reward function. */
  readonly isCorrect: boolean | undefined;
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
  const dataSource = basename(path).replace(/\.jsonl$/, "");
  let questionIndex = 0;
  let index = 0;
  try {
    for await (const record of readJsonl(path, { signal })) {
      for (const sample of samplesOf(record, path, dataSource, questionIndex, index)) {
        index += 1;
        yield sample;
      }
      questionIndex += 1;
    }
  } catch (error) {
    if (!(error instanceof JsonlError)) throw error;
    throw new CliError(2, error.message, { cause: error });
  }
}

function samplesOf(
  { line, value }: JsonlRecord,
  path: string,
  dataSource: string,
  questionIndex: number,
  firstIndex: number,
): SolutionSample[] {
  const bad = (reason: string): CliError => new CliError(2, `${path}:${line}: ${reason}`);
  if (!isRecord(value)) throw bad("the line is not an object");
  if ("response" in value) return [rolloutOf(value, bad, dataSource, questionIndex, firstIndex)];
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
    const extraInfo = { index: firstIndex + offset, questionIndex, question, solutionKey };
    return { dataSource, response: solution, groundTruth, extraInfo, isCorrect };
  });
}

/** { response, ground_truth or reward_model.ground_truth, data_source?, extra_info?, question?, is_correct? } */
function rolloutOf(
  value: Record<string, unknown>,
  bad: (reason: string) => CliError,
  source: string,
  questionIndex: number,
  index: number,
): SolutionSample {
  const { response, data_source: dataSource = source, extra_info: extraInfo = {} } = value;
  const { question = "", is_correct: isCorrect, reward_model: rewardModel = {} } = value;
  const {
    ground_truth: groundTruth = isRecord(rewardModel) ? rewardModel["ground_truth"] : undefined,
  } = value;
  if (typeof response !== "string") throw bad(`"response" is not a text`);
  if (groundTruth === undefined) throw bad(`"ground_truth" is missing`);
  if (typeof dataSource !== "string") throw bad(`"data_source" is not a text`);
  if (!isRecord(extraInfo)) throw bad(`"extra_info" is not an object`);
  if (typeof question !== "string") throw bad(`"question" is not a text`);
  if (isCorrect !== undefined && typeof isCorrect !== "boolean") {
    throw bad(`"is_correct" is neither true nor false`);
  }
  return {
    dataSource,
    response,
    groundTruth,
    extraInfo: { ...extraInfo, index, questionIndex, question, solutionKey: "response" },
    isCorrect,
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
