// node examples/training/resume.ts
//
// A training that stops after two steps and goes on from its checkpoint: with the schedule sync it
// ends with the very weights of one that was never stopped.

import { createHash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  arithmeticAlphabet,
  arithmeticTask,
  PPOTrainer,
  PromptDataset,
  PromptLoader,
} from "@rayling/trainer";
import { TinyPolicyActor } from "@rayling/trainer/tiny";
import * as ray from "rayling";

await ray.init({ numCpus: 8 });
const folder = await mkdtemp(join(tmpdir(), "rayling-resume-example-"));
const dataset = await PromptDataset.fromRows(arithmeticTask({ low: 0, high: 9 }).train);

/** Trains to that step, from the last checkpoint in the folder; returns what the weights are. */
async function trainTo(step: number, name: string): Promise<string> {
  const policy = TinyPolicyActor.remote({ alphabet: arithmeticAlphabet, contextLength: 8 });
  const trainer = await PPOTrainer.create({
    policy,
    prompts: new PromptLoader(dataset, { batchSize: 8 }),
    reward: { reward: new URL("../rewards/exact-match.ts", import.meta.url).href, workers: 1 },
    rollout: { n: 4, maxResponseLength: 3 },
    run: { totalTrainingSteps: step, saveFreq: 1 },
    checkpoints: { folder: join(folder, name), keep: 2 },
  });
  const { metrics } = await trainer.fit();
  await trainer.close();
  const { weights, version } = await ray.get(policy.state.remote());
  await ray.kill(policy);
  const hash = createHash("sha256");
  for (const key of Object.keys(weights).toSorted()) hash.update(weights[key] ?? "");
  const trained = metrics.map((one) => one["training/global_step"]).join(", ");
  console.log(`${name}: steps ${trained}; ${version} updates so far`);
  return hash.digest("hex").slice(0, 16);
}

const straight = await trainTo(4, "straight");
await trainTo(2, "stopped");
const resumed = await trainTo(4, "stopped");
const isSame = straight === resumed;
console.log(`weights: ${straight} and ${resumed}: ${isSame ? "the same" : "not the same"}`);
if (!isSame) process.exitCode = 1;

await rm(folder, { recursive: true });
await ray.shutdown();
