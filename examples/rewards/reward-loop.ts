// node examples/rewards/reward-loop.ts
//
// A batch of rollouts through the reward loop: verl's compute_rm_score, with a reward function that
// fails in three ways.

import { DataProto } from "@rayling/data-proto";
import { RewardLoopManager } from "@rayling/reward-loop";
import * as ray from "rayling";

const responses = ["A: 7", "A: 8", "no answer", "A: 13", "A: 42", "so it is\nA: 7"];
const batch = DataProto.fromDict({
  nonTensors: {
    data_source: responses.map(() => "example"),
    reward_model: responses.map(() => ({ ground_truth: "A: 7" })),
    response: responses,
  },
});

const loop = await RewardLoopManager.create({
  reward: new URL("./troubled-reward.ts", import.meta.url).href,
  workers: 2,
  timeoutMs: 500,
});
const scored = await loop.computeRmScore(batch);

const column = (name: string): readonly unknown[] => scored.nonTensorBatch[name] ?? [];
console.table(
  responses.map((response, row) => {
    const error = column("rewardError")[row];
    const reason = typeof error === "object" && error !== null && "code" in error ? error.code : "";
    const valid = scored.batch?.["rewardValid"]?.data[row] === 1;
    const score = scored.batch?.["rmScores"]?.data[row];
    return { response, score: valid ? score : "invalid", reason };
  }),
);
await loop.close();
await ray.shutdown();
