/** verl's configuration of rewards: its keys of today and of yesterday, its overrides, and what is said of those that are wrong. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  loadRewardConfig,
  readRewardConfig,
  rewardLoopOptionsOf,
  rewardPathsOf,
} from "../../src/config/reward-config.ts";
import { defaultRewardConfig } from "../../src/config/reward-keys.ts";
import { refusal } from "./refusal.ts";

const tinyModel = fileURLToPath(new URL("../../../../test/fixtures/tiny-model", import.meta.url));

function modelAt(place: string): string {
  return place === "reward_model" ? "reward_model.model.path=m" : `${place}.model_path=m`;
}

describe("a configuration", () => {
  test("is changed at its old places as at its new ones, whatever its defaults are", () => {
    const old = ["custom_reward_function.path=a.ts", "custom_reward_function.name=mine"];
    const limits = ["+reward.max_rpm=60", "+reward.timeout=5", "reward.max_concurrent=2"];
    const config = readRewardConfig({ reward_model: { reward_manager: "rate_limited" } }, [
      ...old,
      ...limits,
      "reward.num_workers=3",
    ]);
    expect(config).toMatchObject({
      num_workers: 3,
      custom_reward_function: { path: "a.ts", name: "mine" },
      reward_manager: { name: "rate_limited" },
      max_rpm: 60,
      timeout: 5,
      max_concurrent: 2,
    });
    const both = ["custom_reward_function.path=a.ts", "reward.custom_reward_function.path=b.ts"];
    expect(readRewardConfig({}, both).custom_reward_function.path).toBe("a.ts");
  });

  test("has verl's defaults", () => {
    expect(readRewardConfig({})).toEqual(defaultRewardConfig);
    expect(defaultRewardConfig).toMatchObject({
      num_workers: 8,
      custom_reward_function: { path: null, name: "compute_score" },
      reward_manager: { source: "register", name: "naive" },
      sandbox_fusion: { url: null, max_concurrent: 64, memory_limit_mb: 1024 },
      max_concurrent: 1,
      timeout: 300,
    });
  });

  test("is changed on the command line, as in verl's examples", () => {
    const config = readRewardConfig({ trainer: { total_epochs: 1 } }, [
      "reward.custom_reward_function.path=./reward.ts",
      "+reward.custom_reward_function.reward_kwargs.weight=0.5",
      "reward.reward_manager.name=dapo",
      "+reward.reward_kwargs.overlong_buffer_cfg={enable: True, len: 512, penalty_factor: 1.0, log: False}",
      "+reward.reward_kwargs.max_resp_len=4096",
    ]);
    expect(rewardLoopOptionsOf(config)).toEqual({
      workers: 8,
      reward: { path: "./reward.ts", rewardKwargs: { weight: 0.5 } },
      manager: "dapo",
      managerOptions: {
        maxRespLen: 4096,
        overlongBuffer: { enable: true, len: 512, penaltyFactor: 1, log: false },
      },
    });
  });

  test.each(["reward.reward_model", "reward_model"])(
    "is changed in its rollout below %s, where no file is: verl's has all of its keys",
    (at) => {
      const changed = {
        name: "vllm",
        dtype: "float16",
        gpu_memory_utilization: 0.8,
        cudagraph_capture_sizes: null,
        expert_parallel_size: 1,
        max_model_len: 4096,
        full_determinism: false,
        skip_tokenizer_init: false,
        prompt_length: 1024,
        response_length: 3072,
        limit_images: null,
        scheduling_policy: "fcfs",
        mtp: null,
      };
      const overrides = Object.entries(changed).map(
        ([key, value]) => `${at}.rollout.${key}=${String(value)}`,
      );
      const { rollout } = readRewardConfig({}, [
        `${at}.enable=True`,
        ...overrides,
        modelAt(at),
      ]).reward_model;
      const said = Object.entries(changed).filter(([, value]) => value !== null);
      expect(rollout).toMatchObject(Object.fromEntries(said));
      expect(() => readRewardConfig({}, [`${at}.rollout.nam=vllm`])).toThrow(`${at}.rollout.name`);
    },
  );

  test("has seconds that a timer can take", () => {
    const seconds = ["reward.reward_manager.name=rate_limited", "reward.timeout=2147483"];
    expect(rewardLoopOptionsOf(readRewardConfig({}, seconds)).timeoutMs).toBe(2_147_483_000);
    expect(() => readRewardConfig({}, ["reward.timeout=2147484"])).toThrow("reward.timeout");
  });

  test("has the service of programs at its oldest place, too", () => {
    const { sandbox_fusion: service } = readRewardConfig({}, [
      "reward_model.sandbox_fusion.url=http://s/run_code",
      "reward_model.sandbox_fusion.max_concurrent=3",
    ]);
    expect(service).toMatchObject({ url: "http://s/run_code", max_concurrent: 3 });
  });

  test("of verl 0.7 means the same", () => {
    const config = readRewardConfig(
      {
        reward_model: {
          use_reward_loop: true,
          launch_reward_fn_async: false,
          num_workers: 4,
          reward_manager: "rate_limited",
          reward_loop_source: "register",
          reward_loop_module_path: null,
          enable_resource_pool: false,
          max_rpm: 120,
          timeout: 60,
          model: { path: null },
          sandbox_fusion: { url: null, max_concurrent: 64 },
        },
        custom_reward_function: { path: "judge.ts", name: "score" },
      },
      ["reward_model.num_workers=2"],
    );
    expect(config).toMatchObject({
      num_workers: 2,
      max_rpm: 120,
      sandbox_fusion: { url: null, max_concurrent: 64 },
    });
    expect(rewardLoopOptionsOf(config)).toEqual({
      workers: 2,
      reward: { path: "judge.ts", name: "score", rewardKwargs: {} },
      manager: "rate_limited",
      managerOptions: { maxRpm: 120 },
      timeoutMs: 60_000,
    });
  });

  test("of verl 0.7 has a class by importlib, whatever its reward_manager says", () => {
    const importlib = {
      reward_manager: "naive",
      reward_loop_source: "importlib",
      reward_loop_module_path: "./mine.ts",
      reward_loop_class_name: "MyRewardManager",
    };
    const config = readRewardConfig({ reward_model: importlib });
    const manager = { path: "./mine.ts", name: "MyRewardManager" };
    expect(rewardLoopOptionsOf(config).manager).toEqual(manager);
    const { reward_loop_source: source, ...others } = importlib;
    const mixed = { reward: { reward_manager: { source } }, reward_model: others };
    expect(rewardLoopOptionsOf(readRewardConfig(mixed)).manager).toEqual(manager);
    const reward = { reward_manager: { name: "Another" } };
    const both = readRewardConfig({ reward, reward_model: importlib });
    expect(rewardLoopOptionsOf(both).manager).toEqual(manager);
  });

  test("gives each worker of the manager remote as many processes as there are workers", () => {
    const config = readRewardConfig({
      reward: { num_workers: 3, reward_manager: { name: "remote" } },
    });
    expect(rewardLoopOptionsOf(config)).toEqual({
      workers: 3,
      executors: 3,
      manager: "remote",
      managerOptions: {},
    });
  });

  test("names the service in which programs are tested, if the scorers that ask it are asked", () => {
    const sandbox = { url: "http://sandbox/run_code", max_concurrent: 8, memory_limit_mb: 512 };
    const config = readRewardConfig({ reward: { sandbox_fusion: sandbox } });
    const sandboxFusion = { url: sandbox.url, maxConcurrent: 8, memoryLimitMb: 512 };
    expect(rewardLoopOptionsOf(config)).toMatchObject({ sandboxFusion });
    const old = readRewardConfig({ reward_model: { sandbox_fusion: sandbox } });
    expect(rewardLoopOptionsOf(old)).toMatchObject({ sandboxFusion });
    const stages = { rule: { custom_reward_function: { path: "mine.ts" } }, by_source: {} };
    const cascade = readRewardConfig({ reward: { sandbox_fusion: sandbox, cascade: stages } });
    expect(rewardLoopOptionsOf(cascade)).toMatchObject({ sandboxFusion });
    const own = { sandbox_fusion: sandbox, custom_reward_function: { path: "mine.ts" } };
    expect(refusal(() => readRewardConfig({ reward: own })).key).toBe("reward.sandbox_fusion.url");
  });

  test("tells gdpo the experiment's name, and whoever decodes the policy's tokenizer", () => {
    const model = { path: "somebody/on-the-hub", tokenizer_path: tinyModel };
    const tree = {
      data: { train_files: "x" },
      trainer: { experiment_name: "first", nnodes: 1 },
      actor_rollout_ref: { model: { ...model, lora_rank: 8 }, actor: {} },
      reward: { reward_manager: { name: "gdpo" } },
    };
    const own = { manager: "gdpo", managerOptions: { experimentName: "first" } };
    expect(rewardLoopOptionsOf(readRewardConfig(tree))).toEqual({
      ...own,
      workers: 8,
      tokenizer: tinyModel,
    });
    const changed = readRewardConfig(tree, [
      "trainer.experiment_name=second",
      "actor_rollout_ref.model.tokenizer_path=null",
      `actor_rollout_ref.model.path=${tinyModel}`,
      "reward.reward_manager.name=naive",
      "reward.reward_model.enable=true",
      `reward.reward_model.model_path=${tinyModel}`,
      "reward.reward_model.servers=[a:1]",
      "reward.reward_model.allowed_paths=[/my_score,/v1/audio/*]",
      "reward.reward_model.rollout.name=vllm",
    ]);
    expect(changed.experiment_name).toBe("second");
    expect(rewardLoopOptionsOf(changed)).toMatchObject({
      managerOptions: {},
      tokenizer: tinyModel,
      rewardModel: {
        tokenizer: tinyModel,
        policyTokenizer: tinyModel,
        router: { allowedPaths: ["/my_score", "/v1/audio/*"] },
      },
    });
    // One that is not here may still be one of texts.
    const elsewhere = readRewardConfig(tree, ["actor_rollout_ref.model.tokenizer_path=null"]);
    expect(rewardLoopOptionsOf(elsewhere)).not.toHaveProperty("tokenizer");
    const { reward } = tree;
    const said = { ...reward, experiment_name: "mine", policy_tokenizer: "./mine" };
    expect(readRewardConfig({ ...tree, reward: said })).toMatchObject(said);
  });

  test("says what is done about limits, failures, slow answers and costs; nothing where it says nothing", () => {
    const { limits, retry, hedge, spend, ...others } = rewardLoopOptionsOf(
      readRewardConfig({}, [
        "reward.limits.max_rpm=60",
        "reward.limits.max_tpm=9000",
        "reward.limits.estimated_tokens_per_request=100",
        "reward.limits.endpoint=judge",
        "reward.limits.max_concurrent=auto",
        "reward.limits.adaptive={max: 9, latency_tolerance: 3}",
        "+reward.limits.shares.validation=2",
        "reward.limits.breaker={enable: true, open_ms: 100}",
        "reward.limits.minute_ms=600",
        "reward.retry={enable: true, attempts: 5, base_ms: 0, max_retry_after_ms: 10, classes: [data]}",
        "reward.hedge={enable: true, quantile: 0.9}",
        "reward.on_failure={fallback: 0, again: true, fail_above: 0.5}",
        "reward.spend={prices: {per_million_input_tokens: 1, per_call: 0}, cap: 5, warn_at: 0.5}",
        "reward.spend.when_reached={path: b.ts, name: cheap, prices: {per_call: 0.1}}",
        "reward.cache=scores.db",
        "reward.join_same=false",
        "reward.executors=3",
        "reward.executor_isolation=process",
        "reward.attempt_timeout_ms=1",
        "reward.total_timeout_ms=2",
        "reward.start_timeout_ms=3",
        "reward.record=log.jsonl",
        "reward.spent_before=before.jsonl",
      ]),
    );
    expect(limits).toEqual({
      endpoint: "judge",
      requestsPerMinute: 60,
      tokensPerMinute: 9000,
      tokensPerRequest: 100,
      minuteMs: 600,
      concurrency: { max: 9, latencyTolerance: 3 },
      shares: { validation: 2 },
      breaker: { openMs: 100 },
    });
    expect(retry).toEqual({ attempts: 5, baseMs: 0, maxRetryAfterMs: 10, classes: ["data"] });
    expect(hedge).toEqual({ quantile: 0.9 });
    expect(spend).toEqual({
      prices: { perMillionInputTokens: 1, perCall: 0 },
      cap: 5,
      warnAt: 0.5,
      whenReached: {
        reward: { path: "b.ts", name: "cheap", rewardKwargs: {} },
        spend: { prices: { perCall: 0.1 } },
      },
    });
    expect(others).toEqual({
      workers: 8,
      manager: "naive",
      managerOptions: {},
      onFailure: { fallback: 0, again: true, failAbove: 0.5 },
      cache: "scores.db",
      joinSame: false,
      executors: 3,
      executorIsolation: "process",
      timeoutMs: 1,
      totalTimeoutMs: 2,
      startTimeoutMs: 3,
      record: "log.jsonl",
      spentBefore: "before.jsonl",
    });
    const none = rewardLoopOptionsOf(readRewardConfig({}));
    expect(none).toEqual({ workers: 8, manager: "naive", managerOptions: {} });
  });

  const judge = {
    custom_reward_function: { path: "judge.ts", name: "judge", reward_kwargs: { worth: 1 } },
    limits: { max_rpm: 60 },
    retry: { enable: true },
    spend: {
      prices: { per_call: 1 },
      cap: 5,
      when_reached: { path: "cheap.ts", name: "cheap" },
    },
  };
  const rule = { custom_reward_function: { path: "rule.ts" } };

  test("may have several rewards, with weights and policies of their own, and cascades among them", () => {
    const config = readRewardConfig(
      {
        reward: {
          combine: "mean",
          on_failure: { fail_above: 0.5 },
          rewards: {
            correct: { cascade: { rule: { ...rule, pass_on: "invalid" }, judge }, weight: 2 },
            style: { ...judge, on_invalid: "leave_out" },
            length: { ...rule, num_workers: 5, on_invalid: 0 },
          },
        },
      },
      ["reward.rewards.correct.weight=3"],
    );
    const judged = {
      reward: { path: "judge.ts", name: "judge", rewardKwargs: { worth: 1 } },
      limits: { requestsPerMinute: 60 },
      retry: {},
      spend: {
        prices: { perCall: 1 },
        cap: 5,
        whenReached: { reward: { path: "cheap.ts", name: "cheap", rewardKwargs: {} } },
      },
    };
    const ruled = { reward: { path: "rule.ts", rewardKwargs: {} } };
    expect(rewardLoopOptionsOf(config)).toEqual({
      // Eight, of four functions.
      workers: 2,
      manager: "naive",
      managerOptions: {},
      onFailure: { failAbove: 0.5 },
      combine: "mean",
      rewards: {
        correct: {
          cascade: {
            rule: { ...ruled, passOn: "invalid" },
            judge: judged,
          },
          weight: 3,
        },
        style: { ...judged, onInvalid: "leaveOut" },
        length: { ...ruled, workers: 5, onInvalid: { score: 0 } },
      },
    });
    expect(rewardPathsOf(config).toSorted()).toEqual(["cheap.ts", "judge.ts", "rule.ts"]);
  });

  test("may have a cascade", () => {
    const config = readRewardConfig({ reward: { num_workers: 2, cascade: { rule, judge } } });
    const { workers, cascade, reward } = rewardLoopOptionsOf(config);
    expect({ workers, stages: Object.keys(cascade ?? {}), reward }).toEqual({
      workers: 1,
      stages: ["rule", "judge"],
      reward: undefined,
    });
  });

  test("may name the class of a manager", () => {
    const config = readRewardConfig({
      reward: {
        reward_manager: { source: "importlib", name: "Mine", module: { path: "./mine.ts" } },
      },
    });
    expect(rewardLoopOptionsOf(config).manager).toEqual({ path: "./mine.ts", name: "Mine" });
  });

  test.each([
    [{ reward: { num_worker: 4 } }, "reward.num_worker", "reward.num_workers"],
    [
      { reward: { reward_manager: { nmae: "x" } } },
      "reward.reward_manager.nmae",
      "reward.reward_manager.name",
    ],
    [{ reward: { path: "x.ts" } }, "reward.path", "reward.custom_reward_function.path"],
    [{ reward: { num_workers: 0 } }, "reward.num_workers", undefined],
    [{ reward: { num_workers: "4" } }, "reward.num_workers", undefined],
    [
      { reward: { reward_manager: { source: "import" } } },
      "reward.reward_manager.source",
      undefined,
    ],
    [
      { reward: { reward_manager: { source: "importlib" } } },
      "reward.reward_manager.module.path",
      undefined,
    ],
    [{ reward: { reward_model: { enable: true } } }, "reward.reward_model.model_path", undefined],
    [{ reward: { combine: "mean" } }, "reward.combine", undefined],
    [{ reward: { rewards: { "a.b": rule } } }, "reward.rewards.a.b", undefined],
    [{ reward: { rewards: { a: { wieght: 2 } } } }, "reward.rewards.a.wieght", undefined],
    [{ reward: { rewards: { a: rule }, cascade: { b: rule } } }, "reward.cascade.b", undefined],
    [
      { reward: { rewards: { a: rule }, ...rule } },
      "reward.custom_reward_function.path",
      undefined,
    ],
    [{ reward: { cascade: { a: rule }, limits: { max_rpm: 1 } } }, "reward.limits", undefined],
    [
      { reward: { rewards: { a: { ...rule, cascade: { b: rule } } } } },
      "reward.rewards.a.custom_reward_function.path",
      undefined,
    ],
    [
      { reward: { rewards: { a: { cascade: { b: { retry: { attempts: 2 } } } } } } },
      "reward.rewards.a.cascade.b.retry.attempts",
      "reward.rewards.a.cascade.b.retry.enable=true",
    ],
    [{ reward: 5 }, "reward", undefined],
    [
      { reward_model: { reward_manger: "dapo" } },
      "reward_model.reward_manger",
      "reward_model.reward_manager",
    ],
    [{ reward_model: 5 }, "reward_model", undefined],
  ])("%j names %s", (tree, key, nearest) => {
    const error = refusal(() => readRewardConfig(tree));
    expect({ key: error.key, nearest: error.nearest, code: error.code }).toEqual({
      key,
      nearest,
      code: "REWARD_CONFIG",
    });
    expect(error.message.startsWith(`${key}: `)).toBe(true);
  });
});

describe("a file", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "rayling-config-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("is YAML, with the rest of verl's configuration around it", async () => {
    const path = join(folder, "ppo.yaml");
    await writeFile(
      path,
      "data:\n  train_files: x\nreward:\n  num_workers: 3 # few\n  max_rpm: null\n",
    );
    const limited = ["reward.max_rpm=60", "reward.reward_manager.name=rate_limited"];
    expect((await loadRewardConfig(path, limited)).max_rpm).toBe(60);
    expect((await loadRewardConfig(path)).num_workers).toBe(3);
  });

  test("stands on the files of its folder, with choices of the command line and references", async () => {
    const base = join(folder, "stacked");
    await mkdir(join(base, "judge"), { recursive: true });
    const files = {
      "main.yaml": "defaults: [base, {judge: fast}, _self_]\ntrainer: {total_epochs: 1}\n",
      "base.yaml":
        "reward: { num_workers: 3, custom_reward_function: { path: '${paths.rewards}/r.ts' } }\npaths: { rewards: ./mine }\n",
      "judge/fast.yaml": "# @package reward\nlimits: { max_concurrent: 9 }\n",
      "judge/slow.yaml": "# @package reward\nlimits: { max_concurrent: '${reward.num_workers}' }\n",
      "lost.yaml": "defaults: [nothing, _self_]\n",
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(base, name), text);
    const path = join(base, "main.yaml");
    expect(await loadRewardConfig(path)).toMatchObject({
      num_workers: 3,
      custom_reward_function: { path: "./mine/r.ts" },
      limits: { max_concurrent: 9 },
    });
    expect(await loadRewardConfig(path, ["judge=slow", "reward.num_workers=4"])).toMatchObject({
      num_workers: 4,
      limits: { max_concurrent: 4 },
    });
    const lost = loadRewardConfig(join(base, "lost.yaml"));
    await expect(lost).rejects.toMatchObject({ code: "REWARD_CONFIG", key: "nothing" });
  });

  test("takes overrides of every key that it has, because references lead to it", async () => {
    const path = join(folder, "whole.yaml");
    await writeFile(
      path,
      `data: { judge: ./judge.ts, train_batch_size: 32, more: { _target_: x } }
trainer: { experiment_name: one, project_name: p }
reward: { custom_reward_function: { path: "\${data.judge}", name: "\${trainer.project_name}" } }
`,
    );
    const values = [
      "data.train_batch_size=64",
      "data.judge=./rule.ts",
      "trainer.experiment_name=two",
      "trainer.project_name=scored",
      "+data.new=1",
      "~data.more",
    ];
    expect(await loadRewardConfig(path, values)).toMatchObject({
      custom_reward_function: { path: "./rule.ts", name: "scored" },
      experiment_name: "two",
    });
    await expect(loadRewardConfig(path, ["data.train_batch=64"])).rejects.toMatchObject({
      key: "data.train_batch",
      nearest: "data.train_batch_size",
    });
    await expect(loadRewardConfig(path, ["+reward.num_worker=64"])).rejects.toMatchObject({
      key: "reward.num_worker",
      nearest: "reward.num_workers",
    });
  });

  test("has its cascade in order, whatever is changed in a stage", async () => {
    const path = join(folder, "cascade.yaml");
    const stage = (name: string) => `{ custom_reward_function: { path: ./${name}.ts } }`;
    await writeFile(
      path,
      `reward: { cascade: { rule: ${stage("rule")}, judge: ${stage("judge")} } }\n`,
    );
    const values = [
      "reward.cascade.rule.custom_reward_function.path=./other.ts",
      "+reward.cascade.rule.attempt_timeout_ms=5000",
    ];
    const { cascade } = await loadRewardConfig(path, values);
    expect(Object.keys(cascade)).toEqual(["rule", "judge"]);
    expect(cascade["rule"]).toMatchObject({ custom_reward_function: { path: "./other.ts" } });
  });

  test("of the walkthrough of verl 0.7 is read as it stands: a class is not looked at without importlib", async () => {
    const path = join(folder, "walkthrough.yaml");
    await writeFile(path, walkthrough);
    const config = await loadRewardConfig(path);
    expect(config.reward_manager).toMatchObject({
      source: "register",
      name: "naive",
      module: { path: "my_module.reward" },
    });
    expect(rewardLoopOptionsOf(config).manager).toBe("naive");
    const own = await loadRewardConfig(path, ["reward_model.reward_loop_source=importlib"]);
    expect(rewardLoopOptionsOf(own)).toMatchObject({
      manager: { path: "my_module.reward", name: "MyRewardManager" },
      reward: { path: "path/to/reward.py", name: "my_reward_fn" },
    });
  });

  test.each([
    ["a: [1\n", /is no YAML: .*line 2/],
    ["- 1\n", /must hold keys/],
  ])("%j is refused by its name", async (text, message) => {
    const path = join(folder, "bad.yaml");
    await writeFile(path, text);
    await expect(loadRewardConfig(path)).rejects.toThrow(message);
    await expect(loadRewardConfig(path)).rejects.toMatchObject({ key: path });
    await expect(loadRewardConfig(join(folder, "none.yaml"))).rejects.toThrow("cannot be read");
  });
});

/** Section 7.1 of the walkthrough (seed document 003), its comments left out. */
const walkthrough = `
reward_model:
  enable: true
  use_reward_loop: true

  num_workers: 4

  reward_manager: naive
  reward_loop_source: register

  reward_loop_module_path: "my_module.reward"
  reward_loop_class_name: "MyRewardManager"

  enable_resource_pool: false
  n_gpus_per_node: 4
  nnodes: 1

  model:
    path: "path/to/reward/model"

  rollout:
    name: vllm

custom_reward_function:
  path: "path/to/reward.py"
  name: "my_reward_fn"
  reward_kwargs:
    param1: value1
`;
