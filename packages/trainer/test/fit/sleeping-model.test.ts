/** A training whose reward model sleeps beside the policy: it is awake while rewards are asked for, and asleep when they are there. */

import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { PPOTrainer, PromptDataset, PromptLoader } from "@rayling/trainer";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startJudge } from "../../../../test/servers/judge.ts";
import { ScriptedPolicyActor } from "../fixtures/scripted.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const reward = fileURLToPath(
  new URL("../../../reward-loop/test/fixtures/by-router.ts", import.meta.url),
);

test("a training wakes a reward model for each step's rewards, and lets it sleep", async () => {
  await using judge = await startJudge();
  const rows = ["first", "second"].map((content) => ({
    prompt: [{ role: "user", content }],
    data_source: "test",
    reward_model: { ground_truth: "1" },
  }));
  const rewardModel = { engine: "vllm", model: "judge", servers: [judge.address], sleeps: true };
  await using trainer = await PPOTrainer.create({
    policy: ScriptedPolicyActor.remote(),
    prompts: new PromptLoader(await PromptDataset.fromRows(rows), { batchSize: 2 }),
    reward: { reward, rewardModel: { ...rewardModel, engine: "vllm" }, workers: 1, executors: 1 },
    rollout: { n: 2, maxResponseLength: 4 },
    run: { totalTrainingSteps: 2 },
  });
  const report = await trainer.fit();
  expect(report.metrics.map((one) => one["critic/score/mean"])).toEqual([0.5, 0.5]);
  await expect.poll(() => judge.stats()).toMatchObject({ isAsleep: true, wakeUps: 2, answered: 8 });
});
