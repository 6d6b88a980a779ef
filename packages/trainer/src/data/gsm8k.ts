/**
 * GSM8K (Cobbe et al. 2021, arXiv:2110.14168) as verl trains on it: converts the original {
 * question, answer } lines to verl's rows. The number of the answer is after "#### "; its
 * thousands' commas are removed, because the scorer removes them from the policy's answer.
 */

import { mkdir } from "node:fs/promises";
import { dirname, extname } from "node:path";
import { openJsonlWriter } from "@rayling/data-proto";
import { isRecord } from "@rayling/reward-manager-registry/values";
import { DatasetError } from "../errors.ts";
import type { RowPlace } from "../errors.ts";
import { readRowFiles } from "./row-files.ts";
import { replaceFile } from "../values/replace-file.ts";

/** Files and settings of the preparation of GSM8K. */
export interface Gsm8kOptions {
  /** The original JSON Lines: { question, answer }. */
  readonly input: string;
  /** File for verl's rows, as JSON Lines; its folder is created. */
  readonly output: string;
  /** Split in each row's extra_info; GSM8K has "train" and "test". Default "train". */
  readonly split?: string;
  /**
   * Instruction after each question. Default: to work step by step, and to end with "####" and the
   * number.
   */
  readonly instruction?: string;
}

/** verl's row. */
export interface Gsm8kRow {
  /** The data source, which chooses the scorer. */
  readonly data_source: "openai/gsm8k";
  /** The question with the instruction, as a conversation. */
  readonly prompt: readonly [{ readonly role: "user"; readonly content: string }];
  /** verl's name of the subject. */
  readonly ability: "math";
  /** The final number, which the scorer compares with the answer. */
  readonly reward_model: { readonly style: "rule"; readonly ground_truth: string };
  /** Split, place in the split from 0, and the original question and answer. */
  readonly extra_info: {
    readonly split: string;
    readonly index: number;
    readonly question: string;
    readonly answer: string;
  };
}

const INSTRUCTION = 'Work it out step by step, and end with "####", a space and the final number.';

/**
 * Resolves to the number of rows. Rejects with DatasetError, and leaves the old file at `output`
 * then.
 */
export async function prepareGsm8k(options: Gsm8kOptions): Promise<number> {
  const { input, output } = options;
  if (extname(output) !== ".jsonl") {
    throw new DatasetError("what is written is JSON Lines, and its name must end in .jsonl", {
      path: output,
    });
  }
  await mkdir(dirname(output), { recursive: true });
  let count = 0;
  await replaceFile(output, async (unfinished) => {
    const writer = await openJsonlWriter(unfinished);
    try {
      for await (const { value, place } of readRowFiles([input])) {
        await writer.write(gsm8kRow(value, count, options, place));
        count += 1;
      }
    } finally {
      await writer.close();
    }
  });
  return count;
}

/**
 * Returns verl's row of one question.
 *
 * @param place place of the question, for errors. Throws DatasetError.
 */
export function gsm8kRow(
  value: unknown,
  index: number,
  { split = "train", instruction = INSTRUCTION }: Pick<Gsm8kOptions, "split" | "instruction"> = {},
  place: RowPlace = { row: index },
): Gsm8kRow {
  const { question, answer } = isRecord(value) ? value : {};
  if (typeof question !== "string" || typeof answer !== "string") {
    throw new DatasetError("a line must have the texts question and answer", place);
  }
  // The scorer's pattern: at least one character of a number.
  const [, number] = /#### (-?[0-9.,]+)/.exec(answer) ?? [];
  if (number === undefined) throw new DatasetError('the answer has no "#### number"', place);
  return {
    data_source: "openai/gsm8k",
    prompt: [{ role: "user", content: `${question} ${instruction}` }],
    ability: "math",
    reward_model: { style: "rule", ground_truth: number.replaceAll(",", "") },
    extra_info: { split, index, question, answer },
  };
}
