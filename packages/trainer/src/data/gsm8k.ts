/**
 * GSM8K (Cobbe et al. 2021, arXiv:2110.14168) as verl trains on it: from the original { question, answer } lines to verl's rows. The answer's number stands behind "#### ";
 * its thousands' commas go, because the scorer takes them out of what the policy writes.
 */

import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, extname } from "node:path";
import { openJsonlWriter } from "@rayling/data-proto";
import { DatasetError } from "../errors.ts";
import type { RowPlace } from "../errors.ts";
import { readRowFiles } from "./row-files.ts";

export interface Gsm8kOptions {
  /** The original JSON Lines: { question, answer }. */
  readonly input: string;
  /** Where verl's rows go, as JSON Lines; its folder is made. */
  readonly output: string;
  /** Noted in each row's extra_info; "train" and "test" are GSM8K's own. Default "train". */
  readonly split?: string;
  /** What is said behind each question. Default: to think in steps, and to end with "####" and the number. */
  readonly instruction?: string;
}

/** verl's row. */
export interface Gsm8kRow {
  readonly data_source: "openai/gsm8k";
  readonly prompt: readonly [{ readonly role: "user"; readonly content: string }];
  readonly ability: "math";
  readonly reward_model: { readonly style: "rule"; readonly ground_truth: string };
  readonly extra_info: {
    readonly split: string;
    readonly index: number;
    readonly question: string;
    readonly answer: string;
  };
}

const INSTRUCTION = 'Work it out step by step, and end with "####", a space and the final number.';

/** Resolves to how many rows there are. Rejects with DatasetError, and then leaves what stood at `output`. */
export async function prepareGsm8k(options: Gsm8kOptions): Promise<number> {
  const { input, output } = options;
  if (extname(output) !== ".jsonl") {
    throw new DatasetError("what is written is JSON Lines, and its name must end in .jsonl", {
      path: output,
    });
  }
  await mkdir(dirname(output), { recursive: true });
  const unfinished = `${output}.${process.pid}.unfinished`;
  let count = 0;
  try {
    const writer = await openJsonlWriter(unfinished);
    try {
      for await (const { value, place } of readRowFiles([input])) {
        await writer.write(gsm8kRow(value, count, options, place));
        count += 1;
      }
    } finally {
      await writer.close();
    }
    await rename(unfinished, output);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
  return count;
}

/**
 * One of them.
 *
 * @param place told where it is wrong. Throws DatasetError.
 */
export function gsm8kRow(
  value: unknown,
  index: number,
  { split = "train", instruction = INSTRUCTION }: Pick<Gsm8kOptions, "split" | "instruction"> = {},
  place: RowPlace = { row: index },
): Gsm8kRow {
  const { question, answer } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof question !== "string" || typeof answer !== "string") {
    throw new DatasetError("a line must have the texts question and answer", place);
  }
  // As the scorer reads it: at least one character of a number.
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
