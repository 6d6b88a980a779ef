/**
 * What `grade.py` does, in TypeScript. A response is words `w7`, and extra info says how it
 * behaves.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { ScoreInput } from "@rayling/reward-manager-registry";

export async function computeScore({ solutionStr, groundTruth, extraInfo }: ScoreInput) {
  const { ms, does } = extraInfo as { readonly ms?: number; readonly does?: string };
  if (ms !== undefined && ms > 0) await sleep(ms);
  if (does === "throw") throw new RangeError("this one throws");
  if (does === "hang") return new Promise<never>(() => {});
  if (does === "garbage") return "garbage" as never;
  if (does === "say") console.log(`it was said: ${solutionStr}`);
  if (does === "exit") process.exit(3);
  let sum = 0;
  for (const word of solutionStr.split(" ")) sum += Number(word.slice(1)) * 0.1;
  return { score: sum / (Number(groundTruth) + 0.3), words: solutionStr.split(" ").length };
}

/** A number alone. */
export function half(): number {
  return 0.5;
}

/** Two whole numbers: Python reads the first, and not the second. */
export function long() {
  return { score: 1, big: 2n ** 60n, digits: 10n ** 4300n };
}

/** What came with the sample. */
export function echo({ dataSource, groundTruth, extraInfo }: ScoreInput) {
  return { score: 1, dataSource, groundTruth: JSON.stringify(groundTruth, text), extraInfo };
}

function text(_: string, value: unknown): unknown {
  return typeof value === "bigint" || value !== value ? String(value) : value;
}
