/** The ground truth of a row, found by the key of its response or prompt. */

import { firstOf, missing } from "./named-values.ts";
import { isRow, valueAt } from "./value-at.ts";
import type { Row } from "./value-at.ts";
import type { RowWords } from "./row-errors.ts";

export interface FoundTruth {
  /** Name or path. */
  readonly path: string;
  readonly value: unknown;
}

const struct = "reward_model";
const verlsPath = `${struct}.ground_truth`;

/**
 * Returns the first ground truth that is there under one of these names. A ground truth of null
 * counts within `reward_model` alone: a column that is null says nothing.
 *
 * @param given the one name that is looked at
 */
export function groundTruthOf(
  row: Row,
  names: readonly string[],
  given: string | undefined,
  words: RowWords,
): FoundTruth {
  const tried = given === undefined ? names : [given];
  const found = firstOf(row, tried);
  if (found !== undefined) return found;
  const parent = valueAt(row, struct);
  const isNull = isRow(parent) && parent["ground_truth"] === null;
  if (isNull && tried.includes(verlsPath)) return { path: verlsPath, value: null };
  throw words.bad(missing(row, "ground truth", tried, words.truthOption));
}

const ofAll = ["ground_truth", verlsPath];

/** Further names, by the key of the response: verl's dumps, TRL, chats, lm-evaluation-harness. */
const ofShape: Readonly<Record<string, readonly string[]>> = {
  output: ["gts"],
  completion: ["solution", "answer"],
  messages: ["solution", "answer"],
  resps: ["target"],
};

/** @param responseKey the name or path that has the response */
export function truthNames(responseKey: string): readonly string[] {
  return [...ofAll, ...(ofShape[responseKey] ?? [])];
}

/** Names in rows that have no response: verl's own first, which its trainer reads. */
export const truthNamesOfPrompts: readonly string[] = [
  ...ofAll.toReversed(),
  ...new Set(Object.values(ofShape).flat()),
];
