/** verl's `reward.reward_model` as servers: which flags they get, what cannot be said to them, and that they are started, score, sleep and end. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardModelUse } from "@rayling/reward-loop";
import { readRewardConfig, rewardLoopOptionsOf } from "@rayling/reward-loop/config";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startJudge } from "../judge.ts";
import { routerOptions } from "../../src/options/defaults/reward-model.ts";
import { camel } from "../../src/options/describe-options.ts";
import { fixture, sampleOf } from "../loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const model = fileURLToPath(new URL("../../../../test/fixtures/tiny-model", import.meta.url));
const serverProgram = fileURLToPath(
  new URL("../../../../test/servers/judge-server.ts", import.meta.url),
);

function useOf(
  rewardModel: object,
  rollout: object = {},
  others: object = {},
): RewardModelUse | undefined {
  const own = { enable: true, model_path: "m", nnodes: 1, n_gpus_per_node: 4, ...rewardModel };
  const reward = { ...others, reward_model: { ...own, rollout: { name: "vllm", ...rollout } } };
  return rewardLoopOptionsOf(readRewardConfig({ reward })).rewardModel;
}

describe("a reward model of verl's configuration", () => {
  test("is not there unless it is enabled", () => {
    expect(useOf({ enable: false })).toBeUndefined();
  });

  test("of vLLM is started with verl's settings, as many as there are GPUs", () => {
    expect(useOf({}, { engine_kwargs: { vllm: { max_logprobs: 5, swap_space: null } } })).toEqual({
      engine: "vllm",
      model: "m",
      tokenizer: "m",
      sleeps: true,
      launch: {
        command: "vllm",
        args: [
          "serve",
          "m",
          "--host",
          "127.0.0.1",
          "--port",
          "{port}",
          "--dtype",
          "bfloat16",
          "--gpu-memory-utilization",
          "0.5",
          "--enforce-eager",
          "--enable-sleep-mode",
          "--tensor-parallel-size",
          "2",
          "--data-parallel-size",
          "1",
          "--pipeline-parallel-size",
          "1",
          "--max-num-batched-tokens",
          "8192",
          "--max-num-seqs",
          "1024",
          "--load-format",
          "auto",
          "--seed",
          "42",
          "--max-logprobs",
          "5",
        ],
        replicas: 2,
        gpusPerReplica: 2,
        env: { VLLM_SERVER_DEV_MODE: "1" },
      },
    });
  });

  test("of SGLang has its own flags; one that only a function asks is not an embedding", () => {
    const rollout = {
      name: "sglang",
      tensor_model_parallel_size: 1,
      free_cache_engine: false,
      enable_prefix_caching: false,
      max_model_len: 4096,
    };
    const use = useOf({}, rollout);
    expect(use).toMatchObject({ sleeps: false, launch: { command: "python3", replicas: 4 } });
    const text = use?.launch?.args.join(" ");
    expect(text).toMatch(/^-m sglang.launch_server --model-path m .*--is-embedding/);
    expect(text).toContain("--tp-size 1 --dp-size 1 --pp-size 1 --max-running-requests 1024");
    expect(text).toContain("--random-seed 42 --disable-radix-cache --context-length 4096");
    const asked = useOf({}, rollout, { custom_reward_function: { path: "mine.ts" } });
    expect(asked?.launch?.args).not.toContain("--is-embedding");
    expect(asked).not.toHaveProperty("tokenizer");
  });

  test("whose servers run already is taken as it is; with GPUs of its own it does not sleep", () => {
    expect(useOf({ servers: ["a:1", "b:2"], nnodes: 0, enable_resource_pool: true })).toEqual({
      engine: "vllm",
      model: "m",
      tokenizer: "m",
      servers: ["a:1", "b:2"],
      sleeps: false,
    });
  });

  test("whose servers run already sleeps only where that is asked for", () => {
    const named = { servers: ["a:1"], nnodes: 0 };
    expect(useOf(named)?.sleeps).toBe(false);
    expect(useOf(named, { free_cache_engine: true })?.sleeps).toBe(true);
    const reward = { reward_model: { enable: true, model_path: "m", servers: ["a:1"] } };
    expect(rewardLoopOptionsOf(readRewardConfig({ reward })).rewardModel?.sleeps).toBe(false);
    expect(useOf({})?.sleeps).toBe(true);
  });

  test("has the keys of verl's own file, which say what a server is not told", async () => {
    const file = {
      _target_: "verl.workers.config.RolloutConfig",
      cudagraph_capture_sizes: null,
      expert_parallel_size: 1,
      layered_summon: false,
      scheduling_policy: "fcfs",
      full_determinism: false,
      multi_stage_wake_up: false,
      limit_images: null,
      enable_chunked_prefill: true,
      disable_log_stats: true,
      skip_tokenizer_init: false,
      ignore_eos: false,
      temperature: 1,
      top_k: -1,
      top_p: 1,
      do_sample: true,
      n: 1,
      prompt_length: 2048,
      response_length: 2048,
      quantization: null,
      quantization_config_file: null,
      mtp: null,
      disaggregation: { enabled: false, prefill_replicas: 1, ib_device: null },
    };
    const { launch } = useOf({}, file) ?? {};
    expect(launch?.args.slice(-3)).toEqual(["--scheduling-policy", "fcfs", "--disable-log-stats"]);
  });

  test("without GPUs of its own shares those of the policy, and without the name of an engine it is vLLM's", () => {
    const read = (tree: object) => rewardLoopOptionsOf(readRewardConfig({ ...tree })).rewardModel;
    const old = { reward_model: { enable: true, model: { path: "m" } } };
    expect(read(old)).toMatchObject({ engine: "vllm", launch: { command: "vllm", replicas: 4 } });
    const shared = (trainer: object) => read({ ...old, trainer })?.launch?.replicas;
    expect([
      shared({ n_gpus_per_node: 2 }),
      shared({ n_gpus_per_node: 2, nnodes: 2 }),
      shared({ nnodes: 1 }),
    ]).toEqual([1, 2, 4]);
    const own = { enable: true, model_path: "m", shared_gpus: 6 };
    expect(read({ reward: { reward_model: own }, trainer: { n_gpus_per_node: 2 } })).toMatchObject({
      launch: { replicas: 3 },
    });
  });

  test.each([
    [{}, { name: "trtllm" }, "reward.reward_model.rollout.name", "must be vllm or sglang"],
    [{ nnodes: 0, shared_gpus: 3 }, {}, "reward.reward_model.shared_gpus", "no multiple of the 2"],
    [{ nnodes: 2 }, {}, "reward.reward_model.nnodes", "on this machine only"],
    [{ n_gpus_per_node: 3 }, {}, "reward.reward_model.n_gpus_per_node", "no multiple of the 2"],
    [
      {},
      { tensor_model_parallel_size: 0 },
      "reward.reward_model.rollout.tensor_model_parallel_size",
      "a whole number above 0",
    ],
    [{}, { full_determinism: true }, "reward.reward_model.rollout.full_determinism", "cannot be"],
    [{}, { dtpye: "half" }, "reward.reward_model.rollout.dtpye", "did you mean dtype?"],
    [{}, { disaggregation: { enabled: true } }, "reward.reward_model.rollout.disaggregation", ""],
    [
      {},
      { engine_kwargs: { vllm: 3 } },
      "reward.reward_model.rollout.engine_kwargs.vllm",
      "must hold keys",
    ],
    [{ model_path: null }, {}, "reward.reward_model.model_path", "is needed"],
  ])("%j %j is an error that names the key", (own, rollout, key, message) => {
    expect(() => useOf(own, rollout)).toThrow(
      expect.objectContaining({
        code: "REWARD_CONFIG",
        key,
        message: expect.stringContaining(message) as string,
      }),
    );
  });
});

describe("the router of a configuration", () => {
  const said = {
    host: "::1",
    port: 8008,
    allowed_hosts: ["rewards.local"],
    strategy: "round-robin",
    attempts: 2,
    timeout_ms: 1000,
    connect_timeout_ms: 1001,
    connections: 8,
    max_connections: 9,
    max_requests: 10,
    max_body_bytes: 11,
    max_buffered_bytes: 12,
    headers_timeout_ms: 1002,
    request_timeout_ms: 1003,
    health_path: "/v1/models",
    health_every_ms: 1004,
    health_timeout_ms: 1005,
    failures: 4,
    deterministic: true,
  };

  test("has every option of its table but the secrets, each by its key", () => {
    const servers = ["a:1"];
    const use = useOf({ servers, allowed_paths: ["/a"], router: said });
    const { router = {} } = use ?? {};
    expect(router).toEqual(
      Object.fromEntries([
        ...Object.entries(said).map(([key, value]) => [camel(key), value]),
        ["allowedPaths", ["/a"]],
      ]),
    );
    const secrets = ["token", "apiKey"];
    expect([...Object.keys(router), ...secrets].toSorted()).toEqual(
      Object.keys(routerOptions).toSorted(),
    );
    expect(useOf({ servers })).not.toHaveProperty("router");
    expect(useOf({ servers, router: { attempts: 3, deterministic: false } })).not.toHaveProperty(
      "router",
    );
  });

  test.each([
    [{ router: { strategy: "random" } }, "router.strategy", "round-robin"],
    [{ router: { timeout_ms: 0 } }, "router.timeout_ms", ""],
    [{ router: { token: "t".repeat(32) } }, "router.token", "there is no such key"],
    [{ router: { allowed_hosts: ["node:80"] } }, "router.allowed_hosts", "without a port"],
    [{ router: { health_path: "health" } }, "router.health_path", "a path like"],
    [
      { router: { max_body_bytes: 2, max_buffered_bytes: 1 } },
      "router.max_buffered_bytes",
      "at least maxBodyBytes, 2",
    ],
    [{ allowed_paths: ["a"] }, "allowed_paths", "paths like"],
  ])("%j is refused by its key", (own, key, message) => {
    expect(() => useOf({ servers: ["a:1"], ...own })).toThrow(
      expect.objectContaining({
        code: "REWARD_CONFIG",
        key: `reward.reward_model.${key}`,
        message: expect.stringContaining(message) as string,
      }),
    );
  });

  test("sends what says the same to one server where it is deterministic", async () => {
    await using one = await startJudge();
    await using other = await startJudge();
    const config = readRewardConfig({}, [
      "reward.num_workers=1",
      "reward.executors=1",
      `reward.custom_reward_function.path=${fixture("by-router.ts")}`,
      "reward.reward_model.enable=true",
      "reward.reward_model.model_path=judge",
      `reward.reward_model.servers=[${one.address},${other.address}]`,
      "reward.reward_model.router.deterministic=true",
    ]);
    await using loop = await RewardLoopManager.create(rewardLoopOptionsOf(config));
    const score = async (response: string): Promise<number[]> => {
      expect(await loop.computeScore(sampleOf(response))).toMatchObject({ valid: true });
      return await Promise.all([one, other].map(async (judge) => (await judge.stats()).requests));
    };
    const [first = 0] = await score("18");
    for (const _ of Array(5)) await score("18");
    expect(await score("18")).toEqual(first === 1 ? [7, 0] : [0, 7]);
  });
});

test("settings of verl's own scorers are an error, where these would be asked and where a function is", () => {
  const reward = { compute_score_kwargs: { method: "flexible" } };
  expect(() => rewardLoopOptionsOf(readRewardConfig({ reward }))).toThrow(
    expect.objectContaining({ key: "reward.compute_score_kwargs.method" }),
  );
  const own = { ...reward, custom_reward_function: { path: "mine.ts" } };
  expect(() => readRewardConfig({ reward: own })).toThrow(
    expect.objectContaining({
      key: "reward.compute_score_kwargs.method",
      nearest: "reward.custom_reward_function.reward_kwargs.method",
    }),
  );
});

test("lenient is the setting of the scorers by data source that there is", () => {
  const reward = { compute_score_kwargs: { lenient: true } };
  expect(rewardLoopOptionsOf(readRewardConfig({ reward }))).toMatchObject({
    computeScoreKwargs: { lenient: true },
  });
  expect(rewardLoopOptionsOf(readRewardConfig({}))).not.toHaveProperty("computeScoreKwargs");
  const key = "reward.compute_score_kwargs.lenient";
  const own = { ...reward, custom_reward_function: { path: "mine.ts" } };
  expect(() => readRewardConfig({ reward: own })).toThrow(expect.objectContaining({ key }));
  const odd = { compute_score_kwargs: { lenient: "yes" } };
  expect(() => readRewardConfig({ reward: odd })).toThrow(expect.objectContaining({ key }));
});

/** A program by the name of vLLM's, which answers as vLLM does. */
test("the servers of a configuration start, score, sleep, and end with the loop", async () => {
  const folder = await mkdtemp(join(tmpdir(), "vllm-"));
  const started = join(folder, "started");
  const script = `#!/bin/sh
echo "$CUDA_VISIBLE_DEVICES $VLLM_SERVER_DEV_MODE $*" >> ${started}
while [ "$1" != --port ]; do shift; done
exec ${process.execPath} ${serverProgram} "{\\"port\\": $2}"
`;
  await writeFile(join(folder, "vllm"), script, { mode: 0o755 });
  vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
  vi.stubEnv("CUDA_VISIBLE_DEVICES", "4,5,6,7");
  const config = readRewardConfig({}, [
    "reward.num_workers=1",
    "reward.reward_model.enable=true",
    `reward.reward_model.model_path=${model}`,
    "reward.reward_model.nnodes=1",
    "reward.reward_model.n_gpus_per_node=4",
    "reward.reward_model.rollout.name=vllm",
  ]);
  const loop = await RewardLoopManager.create(rewardLoopOptionsOf(config));
  const lines = (await readFile(started, "utf8")).trim().split("\n").toSorted();
  expect(lines.map((line) => line.split(" ").slice(0, 4))).toEqual([
    ["4,5", "1", "serve", model],
    ["6,7", "1", "serve", model],
  ]);
  const addresses = lines.map((line) => `127.0.0.1:${/--port (\d+)/.exec(line)?.[1]}`);
  const score = async (): Promise<unknown> => {
    const rawPrompt = [{ role: "user", content: "18" }];
    return loop.computeScore({ ...sampleOf("18"), rawPrompt });
  };
  const outcome = await loop.rewardModel?.awake(score);
  expect(outcome).toMatchObject({ valid: true, rewardScore: 1 });
  const stats = await Promise.all(
    addresses.map(async (address) => (await fetch(`http://${address}/stats`)).json()),
  );
  expect(stats).toMatchObject([{ isAsleep: true }, { isAsleep: true }]);
  await loop.close();
  await expect(fetch(`http://${addresses[0]}/stats`)).rejects.toThrow();
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

test("the servers that a configuration names are asked, and never put to sleep", async () => {
  await using judge = await startJudge();
  const config = readRewardConfig({
    reward: {
      num_workers: 1,
      executors: 1,
      reward_model: {
        enable: true,
        model_path: model,
        servers: [judge.address],
        rollout: { name: "sglang" },
      },
    },
  });
  {
    await using loop = await RewardLoopManager.create(rewardLoopOptionsOf(config));
    const rawPrompt = [{ role: "user", content: "18" }];
    const outcome = await loop.computeScore({ ...sampleOf("18"), rawPrompt });
    expect(outcome).toMatchObject({ valid: true, rewardScore: 1 });
  }
  // Whoever else uses them finds them as they were.
  expect(await judge.stats()).toMatchObject({ isAsleep: false, wakeUps: 0 });
});
