// node examples/training/grpo-arithmetic.ts
//
// A policy that really learns: a tiny transformer adds two numbers, by heart at first and then by
// GRPO with a rule for its reward. After 40 steps a run got 87 % of new sums right, after 300
// another one 98 %: node examples/training/grpo-arithmetic.ts 300

import {
  arithmeticAlphabet,
  arithmeticTask,
  PPOTrainer,
  PromptDataset,
  PromptLoader,
} from "@rayling/trainer";
import { TinyPolicyActor } from "@rayling/trainer/tiny";
import * as ray from "rayling";

const [steps = 40, warmSteps = 450] = process.argv.slice(2).map(Number);
await ray.init({ numCpus: 8 });

const task = arithmeticTask();
const policy = TinyPolicyActor.remote({
  alphabet: arithmeticAlphabet,
  contextLength: 12,
  optim: {
    lr: 2e-3,
    // Adam's first steps are as long as they may be: without this, much of the warm start is lost
    // in them.
    lrWarmupStepsRatio: 0.07,
    lrSchedulerType: "linear",
    totalTrainingSteps: steps,
    minLrRatio: 0.1,
  },
});
const pairs = task.train.map(({ prompt, reward_model }) => ({
  prompt,
  answer: reward_model.ground_truth,
}));
for (let done = 0; done < warmSteps; done += 50) {
  await ray.get(policy.supervise.remote({ pairs, steps: 50 }));
}

const trainer = await PPOTrainer.create({
  policy,
  prompts: new PromptLoader(await PromptDataset.fromRows(task.train), { batchSize: 32 }),
  validationPrompts: await PromptDataset.fromRows(task.test.slice(0, 256)),
  schedule: "one-step-off-policy",
  reward: { reward: new URL("../rewards/exact-match.ts", import.meta.url).href, workers: 1 },
  rollout: { n: 8, maxResponseLength: 4 },
  // The loss compares with the policy that made the rollout, which is one step old: else what is
  // learned collapses.
  algorithm: { rolloutCorrection: { bypassMode: true } },
  run: { totalTrainingSteps: steps, testFreq: 20 },
});
const { metrics } = await trainer.fit();

const text = (value: number | undefined): string => value?.toFixed(3) ?? "";
console.table(
  metrics
    .filter((one) => "val-core/arithmetic/acc/mean@1" in one)
    .map((one) => ({
      step: one["training/global_step"],
      score: text(one["critic/score/mean"]),
      "accuracy, greedy": text(one["val-core/arithmetic/acc/mean@1"]),
      "s a step": text(one["timing_s/step"]),
    })),
);
await trainer.close();
await ray.shutdown();
