/** Rows of a data set, and files of them that are gone after the test. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

export const rowOf = (
  number: number,
  content = `What is ${number} + 1?`,
): Record<string, unknown> => ({
  data_source: "arithmetic",
  prompt: [{ role: "user", content }],
  ability: "math",
  reward_model: { style: "rule", ground_truth: String(number + 1) },
  extra_info: { split: "train", index: number },
});

export const rowsOf = (count: number): Record<string, unknown>[] =>
  Array.from({ length: count }, (_, number) => rowOf(number));

export async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "rayling-trainer-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

export async function jsonlFile(lines: readonly unknown[]): Promise<string> {
  const path = join(await folder(), "rows.jsonl");
  const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)));
  await writeFile(path, texts.map((text) => `${text}\n`).join(""));
  return path;
}
