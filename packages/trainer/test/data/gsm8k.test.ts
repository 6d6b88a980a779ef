/** GSM8K's own lines become verl's rows, which the scorer of that data source reads. */

import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readJsonl } from "@rayling/data-proto";
import { scoreGsm8k } from "@rayling/reward-manager-registry";
import { expect, test } from "vitest";
import { DatasetError, gsm8kRow, prepareGsm8k, PromptDataset } from "../../src/index.ts";
import { folder, jsonlFile } from "./rows.ts";
import { dataFile } from "../../../../test/fixtures/data-file.ts";

const line = { question: "How many?", answer: "It is 1,200 <<1200=1200>>.\n#### 1,200" };

test("a line becomes verl's row", () => {
  expect(gsm8kRow(line, 4, { split: "test", instruction: "Think." })).toEqual({
    data_source: "openai/gsm8k",
    prompt: [{ role: "user", content: "How many? Think." }],
    ability: "math",
    reward_model: { style: "rule", ground_truth: "1200" },
    extra_info: { split: "test", index: 4, question: line.question, answer: line.answer },
  });
});

test("a file becomes a file that a data set is loaded from, and its answers score 1", async () => {
  const input = await jsonlFile([line, { question: "And?", answer: "#### -3" }]);
  const output = join(await folder(), "made/for/it/train.jsonl");
  expect(await prepareGsm8k({ input, output })).toBe(2);
  const { rows } = await PromptDataset.load(output);
  expect(rows.map(({ groundTruth }) => groundTruth)).toEqual(["1200", "-3"]);
  for (const { extraInfo, groundTruth } of rows) {
    expect(scoreGsm8k(extraInfo["answer"] as string, groundTruth as string)).toBe(1);
  }
});

test("a bad line is named, and what stood there before stays", async () => {
  const out = await folder();
  const output = join(out, "train.jsonl");
  await writeFile(output, "before");
  const input = await jsonlFile([line, { question: "And?", answer: "no number" }]);
  await expect(prepareGsm8k({ input, output })).rejects.toThrow(DatasetError);
  await expect(prepareGsm8k({ input, output })).rejects.toThrow(
    `${input}:2: the answer has no "#### number"`,
  );
  await expect(prepareGsm8k({ input: await jsonlFile([3]), output })).rejects.toThrow(
    "must have the texts question and answer",
  );
  await expect(prepareGsm8k({ input, output: "train.parquet" })).rejects.toThrow(
    "train.parquet: what is written is JSON Lines",
  );
  expect(await readFile(output, "utf8")).toBe("before");
  expect(await readdir(out)).toEqual(["train.jsonl"]);
});

const original = dataFile("gsm8k/train.jsonl");

test.skipIf(original.isMissing)("all of GSM8K is read, and each answer scores 1", async () => {
  let count = 0;
  for await (const { value } of readJsonl(original.path)) {
    const { extra_info: extraInfo, reward_model: rewardModel } = gsm8kRow(value, count++);
    expect(scoreGsm8k(extraInfo.answer, rewardModel.ground_truth)).toBe(1);
  }
  expect(count).toBe(7473);
});
