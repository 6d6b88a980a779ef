// node examples/cookbook/own-task.ts
//
// An own task for the tiny policy: three letters are to be answered with the same letters in their
// order. A few examples teach the form, and GRPO with an own reward function teaches the rest.

import { PPOTrainer, PromptDataset, PromptLoader } from "@rayling/trainer";
import { TinyPolicyActor } from "@rayling/trainer/tiny";
import * as ray from "rayling";

const letters = ["a", "b", "c", "d", "e", "f"];
const words = letters.flatMap((a) => letters.flatMap((b) => letters.map((c) => a + b + c)));

/** verl's columns of a prompt. One token is one character, and "=" ends a question. */
const rows = words.map((word) => ({
  data_source: "sorting",
  prompt: [{ role: "user", content: `${word}=` }],
  reward_model: { style: "rule", ground_truth: word.split("").toSorted().join("") },
}));
const test = rows.filter((_, index) => index % 9 === 4);
const train = rows.filter((row) => !test.includes(row));

const [steps = 30, warmSteps = 30] = process.argv.slice(2).map(Number);
await ray.init({ numCpus: 8 });
const policy = TinyPolicyActor.remote({
  alphabet: `${letters.join("")}=`,
  contextLength: 8,
  seed: 1,
  optim: { lr: 1e-3 },
});

async function accuracy(): Promise<number> {
  let right = 0;
  const prompts = test.map(({ prompt }) => prompt);
  for await (const ref of policy.generate.remote({
    prompts,
    maxResponseLength: 4,
    doSample: false,
  })) {
    for (const { prompt, response } of await ray.get(ref)) {
      if (response === test[prompt]?.reward_model.ground_truth) right += 1;
    }
  }
  return right / test.length;
}

const pairs = train.map(({ prompt, reward_model }) => ({
  prompt,
  answer: reward_model.ground_truth,
}));
await ray.get(policy.supervise.remote({ pairs, steps: warmSteps }), { stuckWarningMs: 600_000 });
console.log(
  `after a warm-up of ${warmSteps} steps: ${(100 * (await accuracy())).toFixed(0)} % right`,
);

const trainer = await PPOTrainer.create({
  policy,
  prompts: new PromptLoader(await PromptDataset.fromRows(train), { batchSize: 32 }),
  schedule: "one-step-off-policy",
  reward: { reward: new URL("../rewards/exact-match.ts", import.meta.url).href, workers: 1 },
  rollout: { n: 8, maxResponseLength: 4 },
  run: { totalTrainingSteps: steps },
});
const { metrics } = await trainer.fit();
const scores = metrics.map((one) => one["critic/score/mean"] ?? 0);
console.log(
  `GRPO: scores went from ${scores.at(0)?.toFixed(2)} to ${scores.at(-1)?.toFixed(2)} in ${steps} steps`,
);
console.log(
  `after it: ${(100 * (await accuracy())).toFixed(0)} % right of prompts that it never saw`,
);
await trainer.close();
await ray.shutdown();
