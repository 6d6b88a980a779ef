/** Rollouts that bring a score of their own (verl: an agent loop or a tool may set `reward_score`): they are not scored again, and trained on as all others. */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { PPOTrainer, PromptDataset, PromptLoader } from "@rayling/trainer";
import type { ScheduleName, TrainingReport } from "@rayling/trainer";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { SelfScoringPolicyActor } from "../fixtures/self-scoring.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const path = fileURLToPath(new URL("../fixtures/scripted.ts", import.meta.url));

async function trained(
  schedule: ScheduleName,
  score: number,
  log?: string,
): Promise<TrainingReport> {
  const rows = [0, 1].map((index) => ({
    prompt: [{ role: "user", content: `prompt ${index}` }],
    data_source: "test",
    reward_model: { ground_truth: "" },
  }));
  await using trainer = await PPOTrainer.create({
    policy: SelfScoringPolicyActor.remote(score),
    prompts: new PromptLoader(await PromptDataset.fromRows(rows), { batchSize: 2 }),
    schedule,
    reward: {
      reward: { path, name: "bySample", rewardKwargs: log === undefined ? {} : { log } },
      workers: 1,
      executors: 1,
    },
    rollout: { n: 2, maxResponseLength: 4 },
    run: { totalTrainingSteps: 1 },
  });
  return await trainer.fit();
}

test.for<ScheduleName>(["sync", "streaming"])("%s", async (schedule) => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-own-scores-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const log = join(folder, "scored");
  const { metrics } = await trained(schedule, 7, log);
  const scored = (await readFile(log, "utf8")).trimEnd().split("\n");
  expect(scored.toSorted()).toEqual(["prompt 0 #1", "prompt 1 #1"]);
  expect(metrics[0]).toMatchObject({ "critic/score/mean": 4, "critic/score/max": 7 });
});

test("one that is no number is the policy's error", async () => {
  await expect(trained("sync", Number.NaN)).rejects.toMatchObject({
    code: "BAD_ROLLOUTS",
    message: expect.stringContaining("sample 0 of prompt 0 with a rewardScore that is") as string,
  });
});
