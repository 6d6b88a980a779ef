/** What scores do to a step when some are missing, are of several parts, or depend on more than the text: in whole trainings. */

import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { PPOTrainer, PromptDataset, PromptLoader } from "@rayling/trainer";
import type { PPOTrainerOptions, TrainingReport } from "@rayling/trainer";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ScriptedPolicyActor } from "../fixtures/scripted.ts";

let dataset: PromptDataset;

beforeAll(async () => {
  dataset = await PromptDataset.fromRows(
    Array.from({ length: 4 }, (_, row) => ({
      prompt: [{ role: "user", content: String(row) }],
      data_source: "scripted",
      reward_model: { ground_truth: "" },
    })),
  );
});

afterAll(() => ray.shutdown());

/** @param name of the score function, among the fixtures */
async function trained(
  name: string,
  more: Partial<PPOTrainerOptions> = {},
): Promise<TrainingReport> {
  const path = fileURLToPath(new URL("../fixtures/partial-rewards.ts", import.meta.url));
  await using trainer = await PPOTrainer.create({
    policy: ScriptedPolicyActor.remote(),
    prompts: new PromptLoader(dataset, { batchSize: 4 }),
    reward: { reward: { path, name }, workers: 1, executors: 1 },
    ...more,
    rollout: { n: 2, maxResponseLength: 1, ...more.rollout },
    run: { totalTrainingSteps: 1, ...more.run },
  });
  return await trainer.fit();
}

test("valid answers that tell different things beside their score are validated, each variable by those that tell it", async () => {
  const { validation } = await trained("tellsSome", {
    validationPrompts: dataset,
    rollout: { maxResponseLength: 1, validation: { n: 2, doSample: true } },
  });
  // Of both answers to each of the questions that tell it, and of the one answer that does.
  expect(validation?.["val-aux/scripted/half/mean@2"]).toBe(0.25);
  expect(validation?.["val-aux/scripted/first/mean@1"]).toBe(1);
  expect(validation?.["val-core/scripted/reward/mean@2"]).toBe(0.5);
});
