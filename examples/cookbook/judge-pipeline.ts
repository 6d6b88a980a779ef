// node examples/cookbook/judge-pipeline.ts http://127.0.0.1:8000/v1 rewards.jsonl
//
// A rule scores what it can, a judge the rest, and each outcome is in the log before it counts.
// Stopped or killed at any moment, the same command goes on: what is in the log is not asked, and
// not paid for, again.

import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { rewardReport, RewardLoopManager } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import * as ray from "rayling";

const [judgeUrl = "http://127.0.0.1:8000/v1", record = "rewards.jsonl"] = process.argv.slice(2);
process.env["JUDGE_URL"] = judgeUrl;

/** Every solution of a problem; memory is taken for one line at a time. */
async function* samplesOf(path: URL, problems: number): AsyncGenerator<RewardSample> {
  let read = 0;
  for await (const line of createInterface({ input: createReadStream(path) })) {
    if (read === problems) return;
    read += 1;
    const { question, ground_truth: groundTruth, ...solvers } = JSON.parse(line);
    for (const { solution } of Object.values<{ readonly solution: string }>(solvers)) {
      const rawPrompt = [{ role: "user", content: question }];
      yield { dataSource: "arithmetic", rawPrompt, response: solution, groundTruth };
    }
  }
}

await ray.init();
const at = (path: string): string => new URL(path, import.meta.url).href;
const loop = await RewardLoopManager.create({
  cascade: {
    rule: { reward: at("../rewards/rule-first.ts") },
    judge: {
      reward: at("../judges/plain-http.ts"),
      limits: { endpoint: "judge", concurrency: { max: 16 }, breaker: true },
      retry: { attempts: 8 },
    },
  },
  workers: 2,
  timeoutMs: 10_000,
  record,
  resume: true,
});
process.once("SIGINT", () => void ray.shutdown());
try {
  const samples = samplesOf(new URL("../data/arithmetic-solutions.jsonl", import.meta.url), 100);
  let done = 0;
  for await (const _ of loop.scoreStream(samples)) {
    done += 1;
    if (done % 100 === 0) console.log(`${done} samples are scored`);
  }
} catch (error) {
  if (!(error instanceof ray.SessionEndedError)) throw error;
  console.log("stopped; the same command goes on");
}
await loop.close();
await ray.shutdown();
const { valid, invalid, meanScore, answeredBy } = await rewardReport(record);
console.log(`${valid} scores with a mean of ${meanScore?.toFixed(3)}, ${invalid} without one`);
for (const { name, samples } of answeredBy) console.log(`${samples} by ${name}`);
