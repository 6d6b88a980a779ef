/**
 * `reward.reward_models`: several reward models of a configuration, which function asks which, and
 * on which GPUs they are started.
 */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  loadRewardConfig,
  readRewardConfig,
  rewardLoopOptionsOf,
} from "@rayling/reward-loop/config";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { describe, expect, onTestFinished, test } from "vitest";
import { refusal } from "./refusal.ts";

const own = { custom_reward_function: { path: "mine.ts" } };
const named = { model_path: "m", servers: ["a:1"] };

function optionsOf(reward: object, others: object = {}): RewardLoopOptions {
  return rewardLoopOptionsOf(readRewardConfig({ reward, ...others }));
}

test("each has the keys of the single one, and a function the names that it asks", () => {
  const options = optionsOf(
    {
      ...own,
      policy_tokenizer: "p",
      asked_models: ["default", "judge"],
      reward_model: { enable: true, ...named },
      reward_models: {
        judge: { ...named, rollout: { name: "sglang" }, router: { attempts: 1 } },
        later: { enable: false },
      },
    },
    {},
  );
  const use = { engine: "vllm", model: "m", servers: ["a:1"], sleeps: false, policyTokenizer: "p" };
  expect(options).toMatchObject({ askedModels: ["default", "judge"] });
  expect(options.rewardModel).toEqual(use);
  expect(options.rewardModels).toEqual({
    judge: { ...use, engine: "sglang", router: { attempts: 1 } },
  });
});

test("keys of the command line are added, as those of rewards", () => {
  const config = readRewardConfig({ reward: own }, [
    "+reward.reward_models.judge.model_path=m",
    "+reward.reward_models.judge.servers=[a:1]",
    "+reward.reward_models.judge.router.deterministic=true",
  ]);
  expect(rewardLoopOptionsOf(config).rewardModels).toMatchObject({
    judge: { model: "m", servers: ["a:1"], router: { deterministic: true } },
  });
});

test("those that score by themselves have a tokenizer; SGLang serves them as embeddings", () => {
  const started = { model_path: "m", nnodes: 1, n_gpus_per_node: 2, rollout: { name: "sglang" } };
  const { rewardModels } = optionsOf({
    reward_models: { helpful: started, judge: started },
    rewards: { helpful: { asked_models: ["helpful"] }, judge: { ...own, asked_models: ["judge"] } },
  });
  expect(rewardModels?.["helpful"]).toHaveProperty("tokenizer", "m");
  expect(rewardModels?.["helpful"]?.launch?.args).toContain("--is-embedding");
  expect(rewardModels?.["judge"]).not.toHaveProperty("tokenizer");
  expect(rewardModels?.["judge"]?.launch?.args).not.toContain("--is-embedding");
});

describe("the GPUs", () => {
  const rollout = { tensor_model_parallel_size: 1, gpu_memory_utilization: 0.3 };
  const apart = (gpus: number): object => ({
    model_path: "m",
    nnodes: 1,
    n_gpus_per_node: gpus,
    rollout,
  });
  const shared = { model_path: "m", rollout };
  const firstOf = (models: object, trainer: object = {}): unknown[] => {
    const { rewardModels = {} } = optionsOf({ ...own, reward_models: models }, { trainer });
    const entries = Object.entries(rewardModels).map(([name, { launch }]) => [
      name,
      launch?.firstGpu ?? 0,
      launch?.replicas,
    ]);
    return entries.toSorted(([one], [other]) => (String(one) < String(other) ? -1 : 1));
  };

  test("of models with GPUs of their own follow each other, behind those of the policy that others share", () => {
    expect(firstOf({ a: apart(2), b: apart(1), c: apart(3) })).toEqual([
      ["a", 0, 2],
      ["b", 2, 1],
      ["c", 3, 3],
    ]);
    const both = { a: apart(2), b: shared, c: shared, d: { ...named }, e: apart(1) };
    expect(firstOf(both, { n_gpus_per_node: 4 })).toEqual([
      ["a", 4, 2],
      ["b", 0, 4],
      ["c", 0, 4],
      ["d", 0, undefined],
      ["e", 6, 1],
    ]);
  });

  test("of the policy hold the memory of all that share them", () => {
    const half = { ...shared, rollout: { ...rollout, gpu_memory_utilization: 0.6 } };
    const { key, message } = refusal(() =>
      optionsOf({ ...own, reward_models: { a: shared, b: half, c: shared } }),
    );
    expect(key).toBe("reward.reward_models.c.rollout.gpu_memory_utilization");
    expect(message).toContain("with the other reward models on these GPUs 1.2 of their memory");
  });
});

describe("what cannot be is refused by its key", () => {
  const models = { judge: named, safety: named };
  test.each<[object, string, string]>([
    [{ ...own, reward_models: { "a b": named } }, "reward_models.a b", "letters, digits"],
    [{ ...own, reward_models: { judge: {} } }, "reward_models.judge.model_path", "is needed"],
    [{ ...own, reward_models: { judge: { ...named, port: 1 } } }, "reward_models.judge.port", ""],
    [
      { ...own, reward_model: { enable: true, ...named }, reward_models: { default: named } },
      "reward_models.default",
      "stands beside reward.reward_model",
    ],
    [
      { ...own, reward_models: { "my-judge": named, my_judge: named } },
      "reward_models.my_judge",
      "another name than my-judge",
    ],
    [
      { ...own, asked_models: ["saftey"], reward_models: models },
      "asked_models",
      "some of judge, safety",
    ],
    [
      { rewards: { a: { ...own, asked_models: ["other"] } }, reward_models: models },
      "rewards.a.asked_models",
      "some of judge, safety",
    ],
    [
      { ...own, asked_models: ["judge"], reward_models: models },
      "reward_models.safety",
      "one that a function asks (asked_models)",
    ],
    [{ ...own, asked_models: ["judge"] }, "asked_models", "left out without reward_models"],
    [
      { reward_models: models },
      "asked_models",
      "the name of the model that scores, judge or safety, as there is no custom_reward_function.path",
    ],
    [
      { ...own, reward_models: { judge: { ...named, router: { timeout_ms: -1 } } } },
      "reward_models.judge.router.timeout_ms",
      "",
    ],
    [
      { ...own, reward_models: { judge: { ...named, router: { health_path: "x" } } } },
      "reward_models.judge.router.health_path",
      "a path like",
    ],
    [
      { ...own, reward_models: { judge: { ...named, rollout: { max_model_len: 9 } } } },
      "reward_models.judge.rollout.max_model_len",
      "run already: start them with it",
    ],
    [
      { ...own, reward_models: { judge: { model_path: "m", nnodes: 2 } } },
      "reward_models.judge.nnodes",
      "on this machine only",
    ],
  ])("%j", (reward, key, message) => {
    const error = refusal(() => optionsOf(reward));
    expect(error.key).toBe(`reward.${key}`);
    expect(error.message).toContain(message);
  });

  test("two of one name in a file, with the line", async () => {
    const folder = await mkdtemp(join(tmpdir(), "rayling-models-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const path = join(folder, "rewards.yaml");
    await writeFile(path, "reward:\n  reward_models:\n    judge: {}\n    judge: {}\n");
    await expect(loadRewardConfig(path)).rejects.toThrow(/unique.*line 4/s);
  });
});
