/** A policy behind a server is trained by the user's updater: one that cannot work log-probs out learns from those of the rollout, in every update of a step. */

import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { OpenAIPolicyActor, PPOTrainer, PromptDataset, PromptLoader } from "@rayling/trainer";
import type { PolicyHandle, PPOTrainerOptions } from "@rayling/trainer";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startJudge } from "../../../../test/servers/judge.ts";
import { sized } from "../../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

type More = Pick<PPOTrainerOptions, "schedule" | "actor" | "algorithm">;

describe("an updater without logProbs", () => {
  const inBypass = { rolloutCorrection: { bypassMode: true } };
  // Further updates of a step, by all and as they come.
  const cases: [string, number, More][] = [
    ["in the bypass", 4, { actor: { ppoMiniBatchSize: 2 }, algorithm: inBypass }],
    ["as rewards come", 4, { schedule: "one-step-pipeline", actor: { ppoMiniBatchSize: 2 } }],
    ["one update a step", 2, {}],
    ["several mini-batches", 4, { actor: { ppoMiniBatchSize: 2 } }],
    ["several passes", 4, { actor: { ppoEpochs: 2 } }],
  ];
  test.for(sized({ gate: cases.slice(0, 2), full: cases }))("%s", async ([, updates, more]) => {
    await using judge = await startJudge();
    const updater = { path: pathOf("../policy/recording-updater.ts"), name: "createBlindUpdater" };
    const policy: PolicyHandle = OpenAIPolicyActor.remote({
      baseUrl: judge.address,
      model: "judge",
      updater,
    });
    const rows = Array.from({ length: 8 }, (_, row) => ({
      prompt: [{ role: "user", content: JSON.stringify({ solution: `${row}`, groundTruth: "1" }) }],
      data_source: "judge",
      reward_model: { ground_truth: "" },
    }));
    const dataset = await PromptDataset.fromRows(rows);
    await using trainer = await PPOTrainer.create({
      policy,
      prompts: new PromptLoader(dataset, { batchSize: 4 }),
      reward: {
        reward: { path: pathOf("../fixtures/alternating-reward.ts") },
        workers: 1,
        executors: 1,
      },
      run: { totalEpochs: 1 },
      rollout: { n: 2, maxResponseLength: 9 },
      ...more,
    });
    const { metrics } = await trainer.fit();
    expect((await ray.get(policy.state.remote())).version).toBe(updates);
    // The rollout's own log-probs on both sides: the policy is where the rollout was, and the gradient is there.
    expect(metrics.map((one) => one["actor/ppo_kl"])).toEqual([0, 0]);
    for (const one of metrics) expect(one["actor/grad_norm"]).toBeGreaterThan(0);
    await ray.kill(policy);
  });
});
