// node main.ts
//
// Scores the samples with the rule, in parallel, and counts the scores in an actor.

import { readFile } from "node:fs/promises";
import * as ray from "rayling";
import { RewardLoopManager } from "@rayling/reward-loop";
import { Tally } from "./tally.ts";

interface Row {
  readonly data_source: string;
  readonly response: string;
  readonly ground_truth: string;
}

const text = await readFile(new URL("data/samples.jsonl", import.meta.url), "utf8");
const rows: Row[] = text
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line));

await ray.init();
const tally = Tally.remote();
const loop = await RewardLoopManager.create({
  reward: "./rule.ts",
  baseDirectory: import.meta.dirname,
  workers: 1,
});
const samples = rows.map((row) => ({
  dataSource: row.data_source,
  response: row.response,
  groundTruth: row.ground_truth,
}));
for await (const { index, sample, outcome } of loop.scoreStream(samples)) {
  if (outcome.valid) await ray.get(tally.add.remote(sample.dataSource, outcome.rewardScore));
  else console.log(`sample ${index} has no score: ${outcome.error.code}`);
}
console.log("mean scores:", await ray.get(tally.means.remote()));
await loop.close();
await ray.shutdown();
