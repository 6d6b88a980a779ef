// node examples/training/llm-judge-training.ts http://127.0.0.1:8000/v1
//
// Rewards from an LLM judge behind an OpenAI-compatible endpoint: slow, limited, failing now and
// then. What it cannot score is left out of its group; nothing waits for it longer than it must.

import {
  arithmeticAlphabet,
  arithmeticTask,
  PPOTrainer,
  PromptDataset,
  PromptLoader,
  Tracking,
} from "@rayling/trainer";
import { TinyPolicyActor } from "@rayling/trainer/tiny";
import * as ray from "rayling";

process.env["JUDGE_URL"] = process.argv[2] ?? "http://127.0.0.1:8000/v1";
await ray.init({ numCpus: 8 });

const { train } = arithmeticTask({ low: 0, high: 9 });
const tracking = await Tracking.open({
  logger: ["file", "report"],
  projectName: "llm-judge",
  experimentName: "training",
  ...(process.argv[3] === undefined ? {} : { directory: process.argv[3] }),
});
const trainer = await PPOTrainer.create({
  policy: TinyPolicyActor.remote({ alphabet: arithmeticAlphabet, contextLength: 8 }),
  prompts: new PromptLoader(await PromptDataset.fromRows(train), { batchSize: 8 }),
  // Groups are trained as their judgements come, while those of the next batch are on their way.
  schedule: "one-step-pipeline",
  actor: { ppoMiniBatchSize: 4 },
  reward: {
    reward: new URL("../judges/plain-http.ts", import.meta.url).href,
    workers: 2,
    limits: { endpoint: "judge", concurrency: "auto", breaker: true },
    retry: { attempts: 5, baseMs: 50 },
    hedge: true,
    timeoutMs: 20_000,
  },
  rollout: { n: 4, maxResponseLength: 3 },
  run: { totalTrainingSteps: 5 },
  tracking,
});
const { metrics } = await trainer.fit();
for (const one of metrics) {
  const figure = (name: string): string => (one[name] ?? 0).toFixed(3);
  console.log(
    `step ${one["training/global_step"]}: score ${figure("critic/score/mean")}, tried again ${figure("reward/retry_rate")}, invalid ${figure("reward/invalid_rate")}, waited ${figure("reward/exposed_wait_s")} s`,
  );
}
await trainer.close();
await tracking.close();
console.log(`where the time went: ${tracking.run.directory}/report.html`);
await ray.shutdown();
