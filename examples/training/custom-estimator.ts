// node examples/training/custom-estimator.ts
//
// An advantage estimator of one's own under a name: the group's median for a baseline instead of
// its mean. What is invalid is left out, as in all of verl's.

import { zeros } from "@rayling/data-proto";
import {
  arithmeticAlphabet,
  arithmeticTask,
  createAdvantageRegistry,
  PPOTrainer,
  PromptDataset,
  PromptLoader,
} from "@rayling/trainer";
import type { AdvantageBatch, Advantages } from "@rayling/trainer";
import { TinyPolicyActor } from "@rayling/trainer/tiny";
import * as ray from "rayling";

const advantageRegistry = createAdvantageRegistry();
advantageRegistry.register("median", medianBaseline);

const [steps = 10, warmSteps = 100] = process.argv.slice(2).map(Number);
await ray.init({ numCpus: 8 });
const { train } = arithmeticTask({ low: 0, high: 9 });
const policy = TinyPolicyActor.remote({ alphabet: arithmeticAlphabet, contextLength: 8 });
const pairs = train.map(({ prompt, reward_model }) => ({
  prompt,
  answer: reward_model.ground_truth,
}));
await ray.get(policy.supervise.remote({ pairs, steps: warmSteps }));
const trainer = await PPOTrainer.create({
  policy,
  prompts: new PromptLoader(await PromptDataset.fromRows(train), { batchSize: 16 }),
  algorithm: { advEstimator: "median" },
  advantageRegistry,
  schedule: "one-step-off-policy",
  reward: { reward: new URL("../rewards/exact-match.ts", import.meta.url).href, workers: 1 },
  rollout: { n: 8, maxResponseLength: 3 },
  run: { totalTrainingSteps: steps },
});
const { metrics } = await trainer.fit();
for (const one of metrics) {
  const [score = 0, most = 0] = [one["critic/score/mean"], one["critic/advantages/max"]];
  console.log(
    `step ${one["training/global_step"]}: score ${score.toFixed(3)}, largest advantage ${most.toFixed(2)}`,
  );
}
await trainer.close();
await ray.shutdown();

/** All matrices are [rows, tokens]; the score of a row is the sum of its rewards. */
function medianBaseline(batch: AdvantageBatch): Advantages {
  const { tokenLevelRewards, responseMask, groups = [], valid } = batch;
  const [rows = 0, tokens = 0] = tokenLevelRewards.shape;
  const scores = new Float64Array(rows);
  for (const [at, reward] of tokenLevelRewards.data.entries()) {
    scores[Math.floor(at / tokens)]! += reward;
  }
  const counts = (row: number): boolean => valid?.[row] ?? true;
  const advantages = zeros([rows, tokens], "float32");
  for (const [row, group] of groups.entries()) {
    if (!counts(row)) continue;
    const own = scores.filter((_, other) => groups[other] === group && counts(other)).toSorted();
    const baseline = own[Math.floor(own.length / 2)] ?? 0;
    for (let at = row * tokens; at < (row + 1) * tokens; at++) {
      advantages.data[at] = (scores[row]! - baseline) * (responseMask.data[at] ?? 0);
    }
  }
  return { advantages, returns: advantages };
}
