/** Where rows have their prompts and ground truths, in words, for a dry run. Knows no files. */

import type { CountedShape } from "../data/prompt-dataset.ts";

/** The rows that a dry run has read; undefined where there is no validation. */
export interface PromptShapes {
  readonly train: readonly CountedShape[];
  readonly validation: readonly CountedShape[] | undefined;
}

/** Returns a line for each shape, by the name that stands before it. */
export function promptLines({ train, validation = [] }: PromptShapes): [string, string][] {
  return [
    ...train.map((shape): [string, string] => ["prompts", shapeText(shape)]),
    ...validation.map((shape): [string, string] => ["to validate", shapeText(shape)]),
  ];
}

function shapeText({ rows, prompt, groundTruth, assumedSource }: CountedShape): string {
  const source =
    assumedSource === undefined ? "" : `, data source ${assumedSource} (the file's name)`;
  const counted = `${rows} ${rows === 1 ? "row" : "rows"}`;
  return `${counted}: prompt in ${prompt}, ground truth in ${groundTruth}${source}`;
}
