/** How many rewards the training has at a time, and in what order it asks for them. */

import * as ray from "@rayling/core";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { PPOTrainer, PromptDataset, PromptLoader } from "@rayling/trainer";
import type { PPOTrainerOptions, PromptRow } from "@rayling/trainer";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GroupPool } from "../../src/groups/group-pool.ts";
import type { RewardArrangement } from "../../src/settings/program-options.ts";
import { RewardRequests } from "../../src/rollouts/reward-requests.ts";
import type { RewardLane } from "../../src/rollouts/reward-requests.ts";
import type { RolloutBatch } from "../../src/samples/rollout-batch.ts";
import type { TrainingSample } from "../../src/samples/training-sample.ts";
import { silentTracker } from "../../src/tracking/step-tracker.ts";
import { rewardsPath } from "../fixtures/scored-training.ts";
import { ScriptedPolicyActor } from "../fixtures/scripted.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

test.for<[string, Partial<RewardLoopOptions>, number]>([
  ["the slots of its workers", {}, 6],
  ["no more than its limits let through", { limits: { concurrency: 4 } }, 4],
  ["not more than its slots for a limit that is wider", { limits: { concurrency: 40 } }, 6],
  ["as an adaptive limit may grow", { limits: { concurrency: { max: 5 } } }, 5],
  ["one with the manager rate_limited", { manager: "rate_limited" }, 1],
  [
    "as the manager rate_limited says",
    { manager: "rate_limited", managerOptions: { maxConcurrent: 2 } },
    2,
  ],
])("%s", async ([, more, slots]) => {
  const reward = { path: rewardsPath, name: "halves" };
  await using rewards = await RewardRequests.open(
    { reward, workers: 2, executors: 1, concurrency: 3, ...more },
    {},
  );
  expect(rewards.slots).toBe(slots);
});

describe("requests that are asked in another order than they were opened in", () => {
  test("are scored as they are asked", async () => {
    await using rewards = await openedRewards({});
    const [first, second] = await asked(rewards, ["training", "training"]);
    expect(await second.ask()).toBe(1);
    expect(await first.ask()).toBe(0);
  });

  test("with a barrier: batch by batch, validation beside them", async () => {
    await using rewards = await openedRewards({ batchBarrier: true });
    const [first, validation, second] = await asked(rewards, [
      "training",
      "validation",
      "training",
    ]);
    const late = second.ask();
    expect(await validation.ask()).toBe(1);
    expect(await inOrder([late, first.ask()])).toEqual([0, 2]);
  });

  test("with validation in line: behind the batch before it", async () => {
    await using rewards = await openedRewards({ batchBarrier: true, validationInLine: true });
    const lanes = ["training", "validation", "training"] as const;
    const [first, validation, second] = await asked(rewards, lanes);
    expect(await inOrder([second.ask(), validation.ask(), first.ask()])).toEqual([0, 1, 2]);
  });
});

describe("a request whose rows stop coming", () => {
  const gone = new Error("the engine is gone");

  test("fails, and the one behind it has its turn", async () => {
    await using rewards = await openedRewards({ batchBarrier: true });
    const prompt = await onePrompt();
    const broken = rewards.open(["0", "0"], 2, "training");
    const filled = broken.fill(async () => {
      broken.submit(0, sampleOf(prompt, "0/0", 0));
      await Promise.reject(gone);
    });
    const [next] = await asked(rewards, ["training"]);
    await expect(filled).rejects.toBe(gone);
    await expect(broken.request.take(2)).rejects.toBe(gone);
    expect(await next.ask()).toBe(0);
    expect(rewards.inFlight).toBe(0);
  });

  test("asks for none of those that still stand in line", async () => {
    await using rewards = await openedRewards({ batchBarrier: true });
    const prompt = await onePrompt();
    const [first] = await asked(rewards, ["training"]);
    const broken = rewards.open(["b", "b"], 2, "training");
    const filled = broken.fill(async () => {
      broken.submit(0, sampleOf(prompt, "b/0", 0));
      await Promise.reject(gone);
    });
    await expect(filled).rejects.toBe(gone);
    const [last] = await asked(rewards, ["training"]);
    await first.ask();
    await last.ask();
    // One slot: had it been asked for, it would have been scored before the last ones.
    expect(broken.request.outcomeOf(0)).toBeUndefined();
  });

  test.for<[string, Partial<PPOTrainerOptions>]>([
    ["sync", { schedule: "sync" }],
    ["one-step-off-policy", { schedule: "one-step-off-policy" }],
    ["streaming", { schedule: "streaming" }],
    ["greedy answers of remax", { algorithm: { advEstimator: "remax" } }],
    ["a validation", { run: { testFreq: 1, valBeforeTrain: true } }],
  ])("holds up no second fit: %s", async ([, more]) => {
    const seen: number[] = [];
    const reward = { path: rewardsPath, name: "halves" };
    await using trainer = await PPOTrainer.create({
      policy: ScriptedPolicyActor.remote({ breaksAt: 1 }),
      prompts: new PromptLoader(await dataset(4), { batchSize: 2, shuffle: false }),
      validationPrompts: await dataset(2),
      reward: { reward, workers: 1, executors: 1 },
      rewardArrangement: { batchBarrier: true, validationInLine: true },
      tracking: { ...silentTracker, progress: ({ inFlight = 0 }) => void seen.push(inFlight) },
      ...more,
      rollout: { n: 2, maxResponseLength: 4 },
      run: { totalTrainingSteps: 2, valBeforeTrain: false, ...more.run },
    });
    await expect(trainer.fit()).rejects.toThrow("the engine is gone");
    seen.length = 0;
    expect((await trainer.fit()).steps).toBe(2);
    expect(seen).toContain(0);
  });
});

describe("a pool of groups", () => {
  test("takes the oldest of those that are scored in one turn, in whatever order", async () => {
    await using rewards = await openedRewards({});
    const pool = new GroupPool({ limit: 2, strategy: "drop", keeps: () => true });
    const older = await pooled(rewards, 3);
    const younger = await pooled(rewards, 2);
    pool.add({ ...older, number: 0, generatedAt: 0 });
    pool.add({ ...younger, number: 1, generatedAt: 1 });
    const taken = pool.take({ least: 1, most: 1 }, 1, () => 1);
    know(younger, [0, 1]);
    know(older, [0, 1, 2, 3, 4, 5]);
    expect((await taken)?.map(({ batch }) => batch.number)).toEqual([0, 0]);
  });
});

interface Asked {
  /** Submits its two rows; resolves to its place when both are scored. */
  readonly ask: () => Promise<number>;
}

/** One slot: what is asked first is scored first. */
async function openedRewards(arrangement: RewardArrangement): Promise<RewardRequests> {
  const reward = { path: rewardsPath, name: "halves" };
  return await RewardRequests.open(
    { reward, workers: 1, executors: 1, concurrency: 1 },
    arrangement,
  );
}

async function asked<const Lanes extends readonly RewardLane[]>(
  rewards: RewardRequests,
  lanes: Lanes,
): Promise<{ readonly [Place in keyof Lanes]: Asked }> {
  const prompt = await onePrompt();
  const open = (lane: RewardLane, place: number): Asked => {
    const ticket = rewards.open([`${place}`, `${place}`], 2, lane);
    return {
      ask: async () => {
        for (const row of [0, 1]) ticket.submit(row, sampleOf(prompt, `${place}/${row}`, row));
        await ticket.request.take(2);
        return place;
      },
    };
  };
  return lanes.map(open) as { readonly [Place in keyof Lanes]: Asked };
}

type Pooled = Omit<RolloutBatch, "number" | "generatedAt">;

/** A batch of groups of two, of which nothing is submitted. */
async function pooled(rewards: RewardRequests, groups: number): Promise<Pooled> {
  const prompt = await onePrompt();
  const places = Array.from({ length: 2 * groups }, (_, row) => row);
  const uids = places.map((row) => `${Math.floor(row / 2)}`);
  const { request } = rewards.open(uids, 2, "training");
  return {
    samples: places.map((row) => sampleOf(prompt, `${row}`, row)),
    n: 2,
    epoch: 0,
    rewards: request,
    generatedMs: places.map(() => 0),
    isUsed: new Uint8Array(places.length),
  };
}

/** Gives rows a score. */
function know({ rewards }: Pooled, rows: readonly number[]): void {
  for (const row of rows) {
    rewards.know(row, {
      valid: true,
      rewardScore: row,
      rewardExtraInfo: {},
      attempts: 1,
      latencyMs: 1,
      waitedMs: 0,
    });
  }
}

async function onePrompt(): Promise<PromptRow> {
  const { rows } = await dataset(1);
  return (rows as [PromptRow])[0];
}

async function dataset(prompts: number): Promise<PromptDataset> {
  return await PromptDataset.fromRows(
    Array.from({ length: prompts }, (_, row) => ({
      prompt: [{ role: "user", content: `${row}` }],
      data_source: "rewards",
      reward_model: { ground_truth: "" },
    })),
  );
}

/** What they resolve to, as they do. */
async function inOrder<Value>(promises: readonly Promise<Value>[]): Promise<Value[]> {
  const values: Value[] = [];
  await Promise.all(promises.map(async (one) => void values.push(await one)));
  return values;
}

function sampleOf(prompt: PromptRow, id: string, sample: number): TrainingSample {
  const rollout = {
    prompt: 0,
    sample,
    promptIds: Int32Array.of(1),
    responseIds: Int32Array.of(1),
    response: `0 #${sample}`,
    finishReason: "stop" as const,
    version: 0,
  };
  return { id, uid: id, prompt, rollout, generatedAt: 0 };
}
