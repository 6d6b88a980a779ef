/**
 * `rayling rewards show`: samples of a reward log with prompt, answer and score, from the log, or
 * from its input if it keeps no texts.
 */

import { JsonlError } from "@rayling/data-proto";
import {
  countedRecords,
  keysOfRecord,
  olderSampleKeys,
  RewardLogError,
  sampleKey,
  textsOf,
} from "@rayling/reward-loop";
import type { RewardRecord, SampleTexts } from "@rayling/reward-loop";
import { refusalOf } from "../cli-error.ts";
import { print } from "../output/formats.ts";
import { grouped } from "../output/numbers.ts";
import { plain, say, tell } from "../output/output.ts";
import type { RewardsShowOptions } from "./rewards-options.ts";
import { openSolutions } from "../inputs/solutions.ts";

/** The table cuts a text off after about a page. */
const SHOWN_CHARACTERS = 2000;

type Shown = RewardRecord & Partial<Record<"question" | "solution" | "input", unknown>>;

export async function runRewardsShow(options: RewardsShowOptions): Promise<void> {
  const { log, limit, format } = options;
  const records: Shown[] = [];
  let found = 0;
  let input: unknown;
  try {
    for await (const record of countedRecords(log)) {
      input = ("input" in record ? record.input : undefined) ?? input;
      if (!isWanted(record, options)) continue;
      found += 1;
      if (records.length < limit) records.push(record);
    }
  } catch (error) {
    throw refusalOf(error, [JsonlError, RewardLogError]);
  }
  const shown = await withTexts(records, options.input ?? input);
  if (format === "table") say(shown.map(blockOf).join("\n"));
  else await print({ found, samples: shown }, format, () => []);
  const more = found > shown.length ? `, --limit ${found} shows all` : "";
  tell(`${grouped(shown.length)} of ${grouped(found)} samples${more}\n`);
}

function isWanted(
  { valid, score }: RewardRecord,
  { failed, score: wanted, above, below }: RewardsShowOptions,
): boolean {
  const hasScore = wanted !== undefined || above !== undefined || below !== undefined;
  if (!valid || score === null) return failed || !hasScore;
  if (failed && !hasScore) return false;
  return (
    (wanted === undefined || score === wanted) &&
    (above === undefined || score > above) &&
    (below === undefined || score < below)
  );
}

/**
 * Adds texts from the input for records without texts. Rejects with CliError 2 when the input
 * cannot be read.
 */
async function withTexts(records: readonly Shown[], input: unknown): Promise<Shown[]> {
  const missing = new Set(
    records.filter(({ response }) => response === undefined).flatMap(keysOfRecord),
  );
  if (missing.size === 0) return [...records];
  if (typeof input !== "string") {
    tell("the log has no prompts and responses: name its input behind it\n");
    return [...records];
  }
  const known = new Map<string, SampleTexts>();
  const { read } = await openSolutions(input, new AbortController().signal);
  for await (const sample of read()) {
    for (const key of [sampleKey(sample), ...olderSampleKeys(sample)]) {
      if (missing.has(key)) known.set(key, textsOf(sample));
    }
  }
  return records.map((record) => {
    const key = keysOfRecord(record).find((one) => known.has(one));
    return { ...(key === undefined ? {} : known.get(key)), ...record };
  });
}

function blockOf(record: Shown): string {
  const { index, question, solution, valid, score, error, extra } = record;
  const place = question === undefined ? "" : ` (${textOf(question)}, ${textOf(solution)})`;
  const what = valid ? `score ${score}` : `no score: ${error?.code ?? ""} ${error?.message ?? ""}`;
  const texts = [
    ["prompt", promptText(record.prompt)],
    ["response", textOf(record.response)],
    ["ground truth", textOf(record.groundTruth)],
    ["extra", Object.keys(extra).length === 0 ? undefined : JSON.stringify(extra)],
  ] as const;
  const lines = texts.flatMap(([name, text]) =>
    text === undefined || text === "" ? [] : [`  ${name}:`, indented(text)],
  );
  return `${[`sample ${index}${plain(place)}: ${plain(what)}`, ...lines].join("\n")}\n`;
}

function promptText(prompt: SampleTexts["prompt"] | undefined): string | undefined {
  if (typeof prompt === "string") return prompt;
  return prompt?.map(({ role, content }) => `${role}: ${content}`).join("\n");
}

function textOf(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function indented(text: string): string {
  const rest = text.length - SHOWN_CHARACTERS;
  const shown =
    rest > 0
      ? `${text.slice(0, SHOWN_CHARACTERS)} ... and ${grouped(rest)} more characters (--format json has all)`
      : text;
  return shown.replaceAll(/^/gm, "    ");
}
