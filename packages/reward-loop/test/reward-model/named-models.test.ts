/**
 * Several reward models in one loop: each has servers, a router and sleep of its own, and what
 * fails of one costs nobody who asks another.
 */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions, RewardModelUse, RewardProgress } from "@rayling/reward-loop";
import { readRewardConfig, rewardLoopOptionsOf } from "@rayling/reward-loop/config";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { JudgeServer } from "../../../../test/servers/judge-server.ts";
import type { JudgeOptions, JudgeStats } from "../../../../test/servers/judge-server.ts";
import { fixture, sampleOf } from "../loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const model = fileURLToPath(new URL("../../../../test/fixtures/tiny-model", import.meta.url));
const serverProgram = fileURLToPath(
  new URL("../../../../test/servers/judge-server.ts", import.meta.url),
);
const reward = fixture("by-name.ts");
const few = { workers: 1, executors: 1 } as const;
const right = { ...sampleOf("18"), groundTruth: "18" };
const asked = { ...right, rawPrompt: [{ role: "user", content: "18" }] };

interface Judge extends AsyncDisposable {
  /** host:port */
  readonly address: string;
  readonly stats: () => JudgeStats;
}

async function startJudge(options: JudgeOptions = {}): Promise<Judge> {
  const server = await JudgeServer.start(options);
  return {
    address: server.address,
    stats: () => server.stats(),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

function useOf({ address }: Pick<Judge, "address">, more: Partial<RewardModelUse> = {}) {
  return { engine: "vllm", model: "judge", servers: [address], ...more } as const;
}

const asking = (name: string) => ({ path: reward, rewardKwargs: { asks: [name] } });

const requestsOf = (...judges: readonly Judge[]): number[] =>
  judges.map((judge) => judge.stats().requests);

describe("a function", () => {
  test("asks each by its name, with the token of its router", async () => {
    await using judge = await startJudge();
    await using safety = await startJudge();
    await using loop = await RewardLoopManager.create({
      ...few,
      reward,
      rewardModels: { judge: useOf(judge, { tokenizer: model }), safety: useOf(safety) },
    });
    const outcome = await loop.computeScore(right);
    expect(outcome).toMatchObject({ valid: true, rewardScore: 2 });
    const { rewardModels } = loop;
    expect(outcome).toMatchObject({
      rewardExtraInfo: {
        names: ["judge", "safety"],
        tokens: ["judge", "safety"].map((name) => rewardModels.of(name).routerToken),
        decoded: ["function", "undefined"],
        rewardRouterAddress: null,
      },
    });
    expect(rewardModels.of("judge").routerToken).not.toBe(rewardModels.of("safety").routerToken);
    expect(requestsOf(judge, safety)).toEqual([1, 1]);
    expect(loop.rewardModel).toBeUndefined();
    expect(() => rewardModels.of("saftey")).toThrow("asked for one of judge, safety");
    const served = (address: string): object[] => [{ url: `http://${address}`, served: 1 }];
    expect(await rewardModels.states()).toMatchObject({
      judge: { engine: "vllm", state: "awake", servers: served(judge.address) },
      safety: { engine: "vllm", state: "awake", servers: served(safety.address) },
    });
  });

  test("has verl's address of the default one, or of the only one that it asks", async () => {
    await using judge = await startJudge();
    await using safety = await startJudge();
    await using loop = await RewardLoopManager.create({
      ...few,
      rewardModel: useOf(judge),
      rewardModels: { safety: useOf(safety) },
      rewards: { both: { reward }, one: { reward, askedModels: ["safety"] } },
    });
    const outcome = await loop.computeScore(right);
    const { rewardModels } = loop;
    expect(loop.rewardModel).toBe(rewardModels.of("default"));
    expect(outcome).toMatchObject({
      valid: true,
      rewardScore: 3,
      rewardExtraInfo: {
        "both/names": ["default", "safety"],
        "both/rewardRouterAddress": rewardModels.of("default").routerAddress,
        "both/rewardRouterToken": rewardModels.of("default").routerToken,
        "one/names": ["safety"],
        "one/rewardRouterAddress": rewardModels.of("safety").routerAddress,
        "one/rewardRouterToken": rewardModels.of("safety").routerToken,
      },
    });
  });
});

test("several discriminative models score beside each other, of either engine, and beside a function that asks none", async () => {
  await using helpful = await startJudge();
  await using safe = await startJudge();
  await using loop = await RewardLoopManager.create({
    ...few,
    rewardModels: {
      helpful: useOf(helpful, { tokenizer: model }),
      safe: useOf(safe, { engine: "sglang", tokenizer: model }),
    },
    rewards: {
      helpful: { askedModels: ["helpful"], weight: 2 },
      safe: { askedModels: ["safe"], weight: 3 },
      rule: { reward, askedModels: [], weight: 5 },
    },
  });
  expect(await loop.computeScore(asked)).toMatchObject({
    valid: true,
    rewardScore: 5,
    rewardExtraInfo: { helpful: 1, safe: 1, rule: 0, "rule/names": [] },
  });
  expect(requestsOf(helpful, safe)).toEqual([1, 1]);
});

test("they sleep and wake together for what is scored, and by name", async () => {
  await using judge = await startJudge();
  await using safety = await startJudge();
  await using loop = await RewardLoopManager.create({
    ...few,
    reward,
    rewardModels: {
      judge: useOf(judge, { sleeps: true }),
      safety: useOf(safety, { engine: "sglang", sleeps: true }),
    },
  });
  const now = (): unknown[] =>
    [judge, safety].map((one) => {
      const { isAsleep, wakeUps } = one.stats();
      return [isAsleep, wakeUps];
    });
  const stateNames = async (): Promise<string[]> =>
    Object.values(await loop.rewardModels.states()).map(({ state }) => state);
  expect(now()).toEqual([
    [true, 0],
    [true, 0],
  ]);
  for await (const { outcome } of loop.scoreStream([right, right])) {
    expect(outcome).toMatchObject({ valid: true, rewardScore: 2 });
    expect(await stateNames()).toEqual(["awake", "awake"]);
  }
  expect(now()).toEqual([
    [true, 1],
    [true, 1],
  ]);
  await loop.rewardModels.wakeUp("safety");
  expect(await stateNames()).toEqual(["asleep", "awake"]);
  expect(now()).toEqual([
    [true, 1],
    [false, 2],
  ]);
  await loop.rewardModels.sleep();
  expect(now()).toEqual([
    [true, 1],
    [true, 2],
  ]);
  await expect(loop.rewardModels.wakeUp("other")).rejects.toMatchObject({
    name: "RewardLoopOptionError",
  });
});

describe("one that fails costs only those who ask it", () => {
  test("when it does not wake up: its router refuses requests until it is awake", async () => {
    await using judge = await startJudge();
    const first = await startJudge();
    onTestFinished(() => first[Symbol.asyncDispose]());
    await using loop = await RewardLoopManager.create({
      ...few,
      rewardModels: {
        judge: useOf(judge, { sleeps: true }),
        safety: useOf(first, { sleeps: true }),
      },
      rewards: {
        good: { reward: asking("judge") },
        safe: { reward: asking("safety"), onInvalid: "leaveOut" },
      },
    });
    expect(await loop.computeScore(right)).toMatchObject({ valid: true, rewardScore: 2 });
    await first[Symbol.asyncDispose]();
    const warned = new Promise<string>((resolve) => {
      process.once("warning", ({ message }) => resolve(message));
    });
    const without = await loop.computeScore(right);
    expect(without).toMatchObject({ valid: true, rewardScore: 1 });
    expect(without).toMatchObject({
      components: { safe: { valid: false, error: { message: expect.stringContaining("503") } } },
    });
    expect(await warned).toContain("the reward model safety did not wake up");
    expect(await loop.rewardModels.states()).toMatchObject({
      judge: { state: "asleep" },
      safety: { state: "failed" },
    });
    expect(judge.stats()).toMatchObject({ isAsleep: true, wakeUps: 2 });
    const port = Number(first.address.split(":").at(-1));
    await using again = await startJudge({ port });
    expect(await loop.computeScore(right)).toMatchObject({ valid: true, rewardScore: 2 });
    expect(again.stats()).toMatchObject({ isAsleep: true, wakeUps: 1, answered: 1 });
    expect(await loop.rewardModels.states()).toMatchObject({ safety: { state: "asleep" } });
  });

  test("when none wakes up the call fails, as with a single one", async () => {
    const [judge, safety] = await Promise.all([startJudge(), startJudge()]);
    onTestFinished(() => judge[Symbol.asyncDispose]());
    onTestFinished(() => safety[Symbol.asyncDispose]());
    const rewardModels = {
      judge: useOf(judge, { sleeps: true }),
      safety: useOf(safety, { sleeps: true }),
    };
    await using loop = await RewardLoopManager.create({ ...few, reward, rewardModels });
    await Promise.all([judge[Symbol.asyncDispose](), safety[Symbol.asyncDispose]()]);
    await expect(loop.computeScore(right)).rejects.toMatchObject({ name: "EndpointError" });
  });

  test("when its server ends meanwhile; progress says so by its name", async () => {
    await using judge = await startJudge();
    const safety = await startJudge();
    onTestFinished(() => safety[Symbol.asyncDispose]());
    await using loop = await RewardLoopManager.create({
      ...few,
      rewardModels: { judge: useOf(judge), safety: useOf(safety, { router: { failures: 1 } }) },
      rewards: {
        good: { reward: asking("judge") },
        safe: { reward: asking("safety"), onInvalid: "leaveOut" },
      },
    });
    await safety[Symbol.asyncDispose]();
    const isOut = Promise.withResolvers<void>();
    async function* samples() {
      yield right;
      await isOut.promise;
      yield right;
    }
    const onProgress = ({ rewardModels }: RewardProgress): void => {
      if (rewardModels["safety"]?.servers.some((one) => one.isOut) !== true) return;
      expect(rewardModels["judge"]?.servers).toMatchObject([{ isOut: false, failed: 0 }]);
      isOut.resolve();
    };
    const scores: unknown[] = [];
    for await (const { outcome } of loop.scoreStream(samples(), { onProgress })) {
      scores.push(outcome.valid && outcome.rewardScore);
    }
    expect(scores).toEqual([1, 1]);
  });
});

test("one that does not start is named, and the servers of the others end", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-models-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const started = join(folder, "started");
  const script = `echo "$1" > ${started}; exec ${process.execPath} ${serverProgram} "{\\"port\\": $1}"`;
  const judge = {
    engine: "vllm",
    model: "judge",
    launch: { command: "sh", args: ["-c", script, "sh", "{port}"] },
  } as const;
  // It ends when the other one is there.
  const waits = `until [ -s ${started} ]; do sleep 0.05; done; exit 3`;
  const broken = { ...judge, launch: { command: "sh", args: ["-c", waits] } } as const;
  const creating = RewardLoopManager.create({ ...few, reward, rewardModels: { judge, broken } });
  await expect(creating).rejects.toMatchObject({
    name: "RewardModelStartError",
    model: "broken",
    message: expect.stringContaining("server of the reward model broken") as string,
  });
  const port = (await readFile(started, "utf8")).trim();
  await expect(fetch(`http://127.0.0.1:${port}/health`)).rejects.toThrow("fetch failed");
});

test("each has secrets of its own, from the environment by its name", async () => {
  const token = "t".repeat(32);
  vi.stubEnv("RAYLING_ROUTER_TOKEN", "d".repeat(32));
  vi.stubEnv("RAYLING_ROUTER_TOKEN_MY_JUDGE", token);
  vi.stubEnv("RAYLING_REWARD_MODEL_API_KEY_MY_JUDGE", "the-key");
  onTestFinished(() => void vi.unstubAllEnvs());
  await using judge = await startJudge();
  await using safety = await startJudge();
  const program = `require("node:http").createServer((_, response) => response.end(JSON.stringify(process.env))).listen(Number(process.argv[1]), "127.0.0.1")`;
  const launch = { command: process.execPath, args: ["-e", program, "{port}"] };
  await using loop = await RewardLoopManager.create({
    ...few,
    reward,
    rewardModel: useOf(judge),
    rewardModels: {
      "my-judge": { engine: "vllm", model: "m", launch },
      safety: useOf(safety),
    },
  });
  const { rewardModels } = loop;
  const tokens = rewardModels.names.map((name) => rewardModels.of(name).routerToken);
  expect(tokens.slice(0, 2)).toEqual(["d".repeat(32), token]);
  expect(tokens[2]).toMatch(/^[\w-]{43}$/);
  const { routerAddress } = rewardModels.of("my-judge");
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`http://${routerAddress}/health`, { headers });
  const env: object = JSON.parse(await answer.text());
  expect(Object.keys(env).filter((name) => /^RAYLING_.*(?:TOKEN|KEY)/.test(name))).toEqual([]);
  expect(env).toHaveProperty("VLLM_API_KEY", "the-key");
});

/** A program by the name of vLLM's, which answers as vLLM does. */
test("those of a configuration start on GPUs of their own, score, sleep, and end with the loop", async () => {
  const folder = await mkdtemp(join(tmpdir(), "vllm-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const started = join(folder, "started");
  const script = `#!/bin/sh
echo "$CUDA_VISIBLE_DEVICES $*" >> ${started}
while [ "$1" != --port ]; do shift; done
exec ${process.execPath} ${serverProgram} "{\\"port\\": $2}"
`;
  await writeFile(join(folder, "vllm"), script, { mode: 0o755 });
  vi.stubEnv("PATH", `${folder}:${process.env["PATH"]}`);
  vi.stubEnv("CUDA_VISIBLE_DEVICES", "4,5,6,7");
  onTestFinished(() => void vi.unstubAllEnvs());
  const own = {
    model_path: model,
    nnodes: 1,
    rollout: { tensor_model_parallel_size: 1, seed: 1 },
    router: { strategy: "round-robin" },
  };
  const config = readRewardConfig({
    reward: {
      num_workers: 1,
      executors: 1,
      reward_models: {
        helpful: { ...own, n_gpus_per_node: 2 },
        safe: { ...own, n_gpus_per_node: 1, rollout: { ...own.rollout, seed: 2 } },
      },
      rewards: {
        helpful: { asked_models: ["helpful"] },
        safe: { asked_models: ["safe"], weight: 2 },
      },
    },
  });
  await using loop = await RewardLoopManager.create(rewardLoopOptionsOf(config));
  const lines = (await readFile(started, "utf8")).trim().split("\n");
  const gpusBySeed = lines.map((line) => `${/--seed \d/.exec(line)?.[0]}: ${line.split(" ")[0]}`);
  expect(gpusBySeed.toSorted()).toEqual(["--seed 1: 4", "--seed 1: 5", "--seed 2: 6"]);
  expect(await loop.computeScore(asked)).toMatchObject({ valid: true, rewardScore: 3 });
  const states = Object.values(await loop.rewardModels.states());
  expect(states.map(({ state, servers }) => [state, servers.length])).toEqual([
    ["asleep", 2],
    ["asleep", 1],
  ]);
});

const one = useOf({ address: "a:1" });
const two = useOf({ address: "b:1" });

test.each<[string, RewardLoopOptions, string, string]>([
  ["none", { rewardModels: {} }, "rewardModels", "at least one"],
  ["a bad name", { rewardModels: { "a.b": one } }, "rewardModels.a.b", "letters, digits"],
  [
    "two that are the default",
    { rewardModel: one, rewardModels: { default: two } },
    "rewardModels.default",
    "left out with rewardModel",
  ],
  [
    "two names that are the same in the environment",
    { rewardModels: { "my-judge": one, My_judge: two } },
    "rewardModels.My_judge",
    "another name than my-judge",
  ],
  [
    "a name that there is not",
    { askedModels: ["saftey"], rewardModels: { safety: one } },
    "askedModels",
    "some of safety; it is saftey",
  ],
  [
    "a name that there is not, of a part",
    {
      rewardModels: { safety: one },
      rewards: { a: { cascade: { b: { reward, askedModels: ["judge"] } } } },
    },
    "rewards.a.cascade.b.askedModels",
    "some of safety; it is judge",
  ],
  [
    "a name of which there is none",
    { askedModels: ["judge"] },
    "askedModels",
    "left out without rewardModels",
  ],
  [
    "a name twice",
    { askedModels: ["judge", "judge"], rewardModels: { judge: one } },
    "askedModels",
    "each name once",
  ],
  [
    "one that nobody asks",
    { askedModels: ["judge"], rewardModels: { judge: one, safety: two } },
    "rewardModels.safety",
    "one that a function asks",
  ],
  [
    "two where there is no function that asks them",
    { reward: undefined, rewardModels: { judge: one, safety: two } },
    "askedModels",
    "the name of the model that scores, judge or safety",
  ],
  [
    "two of which one is to score",
    {
      reward: undefined,
      askedModels: ["judge", "safety"],
      rewardModels: { judge: one, safety: two },
    },
    "askedModels",
    "one name, where there is no",
  ],
  [
    "one that scores without its tokenizer",
    { reward: undefined, rewardModels: { judge: one } },
    "rewardModels.judge.tokenizer",
    "the folder",
  ],
  [
    "an option that there is not",
    { rewardModels: { judge: { ...one, port: 1 } as never } },
    "rewardModels.judge.port",
    "one of engine",
  ],
  [
    "a model without a name",
    { rewardModels: { judge: { ...one, model: "" } } },
    "rewardModels.judge.model",
    "the name under which",
  ],
  [
    "two routers at one port",
    {
      rewardModels: {
        judge: { ...one, router: { port: 9009 } },
        safety: { ...two, router: { port: 9009 } },
      },
    },
    "rewardModels.safety.router.port",
    "another one than that of judge",
  ],
  [
    "a server of two, which one of them puts to sleep",
    { rewardModels: { judge: one, safety: { ...one, sleeps: true } } },
    "rewardModels.safety.servers",
    "servers of its own",
  ],
])("%s: refused by the option", async (_, options, option, message) => {
  const given = { ...few, ...(options.rewards === undefined ? { reward } : {}), ...options };
  await expect(RewardLoopManager.create(given)).rejects.toMatchObject({
    name: "RewardLoopOptionError",
    option,
    message: expect.stringContaining(message) as string,
  });
});
