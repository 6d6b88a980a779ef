/** docs/verl-reward-functions.md: every module that it shows is loaded as it stands there, and tells right answers from wrong ones. What verl's documents have that cannot work here is refused, and says why. */

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { DataProto } from "@rayling/data-proto";
import { RewardLoopManager, RewardRequest } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import { readRewardConfig, rewardLoopOptionsOf } from "@rayling/reward-loop/config";
import { loadScorer, scoreSample } from "@rayling/reward-manager-registry";
import type { RewardSample, RewardSpec } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sized } from "../../../test/fixtures/suite.ts";
import { closeLoops, loopOf } from "./loop.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const page = readFileSync(join(root, "docs/verl-reward-functions.md"), "utf8");
const folder = mkdtempSync(join(tmpdir(), "rayling-snippets-"));
symlinkSync(join(root, "examples/node_modules"), join(folder, "node_modules"));

/** What stands in a block of TypeScript, by the name in its first line. */
const snippets = new Map(
  [...page.matchAll(/^```ts\n\/\/ ([\w-]+)(?:, reward_kwargs: (.*))?\n([\s\S]*?)^```$/gm)].map(
    ([, name = "", kwargs, text = ""]) => {
      const path = join(folder, `${name}.ts`);
      writeFileSync(path, text);
      const rewardKwargs = JSON.parse(kwargs ?? "{}") as Record<string, unknown>;
      return [name, { path, rewardKwargs }] as const;
    },
  ),
);

const judge = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks).toString();
    const { messages } = JSON.parse(body) as { messages: { content: string }[] };
    const [, answer, right] = /^.*\n(.*)\nRight is (.*)\.$/.exec(messages[0]?.content ?? "") ?? [];
    const content = answer === "" ? "who knows?" : answer?.trim() === right ? "1" : "0";
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ choices: [{ message: { content } }] }));
  });
});

beforeAll(async () => {
  await ray.init({ isolation: "shared", prewarm: 0 });
  await new Promise<void>((resolve) => void judge.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  await closeLoops();
  await ray.shutdown();
  await new Promise((resolve) => judge.close(resolve));
  rmSync(folder, { recursive: true });
});

/** Two answers to each of two prompts: one is right, of the second both are wrong. */
const batch = DataProto.fromDict({
  nonTensors: {
    uid: ["a", "a", "b", "b"],
    response: [" 18", "17", "2", "3"],
    data_source: ["toy", "toy", "toy", "toy"],
    reward_model: ["18", "18", "4", "4"].map((ground_truth) => ({ ground_truth })),
    extra_info: [1, 2, 3, 4].map((row) => ({ question: `question ${row}` })),
  },
});

async function scoresBy(options: RewardLoopOptions): Promise<unknown> {
  const loop = await loopOf(options);
  const { batch: scored, nonTensorBatch } = await loop.computeRmScore(batch);
  expect(nonTensorBatch["rewardError"]).toEqual([null, null, null, null]);
  return [...(scored?.["rmScores"]?.data ?? [])];
}

function snippet(name: string): RewardSpec {
  const reward = snippets.get(name);
  if (reward === undefined) throw new Error(`the page has no module called ${name}`);
  return reward;
}

/** The same in this thread. */
async function scoresByLoader(name: string): Promise<unknown> {
  const { computeScore } = await loadScorer(snippet(name));
  const { response = [], reward_model: truths = [], extra_info: infos = [] } = batch.nonTensorBatch;
  const results = response.map(async (text, row) => {
    const { ground_truth: groundTruth } = truths[row] as { ground_truth: string };
    const extraInfo = infos[row] as RewardSample["extraInfo"];
    const sample = { dataSource: "toy", response: text as string, groundTruth, extraInfo };
    return (await scoreSample(sample, computeScore)).rewardScore;
  });
  return Promise.all(results);
}

function optionsFor(name: string): RewardLoopOptions {
  const reward = snippet(name);
  const { port } = judge.address() as AddressInfo;
  if (name === "reward-model") {
    const rewardRouterAddress = `127.0.0.1:${port}`;
    return { reward: { ...reward, name: "compute_score_gsm8k" }, rewardRouterAddress };
  }
  return { reward: name === "class" ? { ...reward, name: "RewardAgent" } : reward };
}

const expected: Readonly<Record<string, readonly number[]>> = { keywords: [2, -1, -1, -1] };

describe("a module of the page tells right from wrong", () => {
  test("and there are some", () => {
    expect([...snippets.keys()]).toEqual([
      "positional",
      "object",
      "object-snake-case",
      "tuple",
      "keywords",
      "reward-model",
      "class",
      "lists",
      "group",
    ]);
  });

  /** They differ in how they are called, which the loader knows: a loop has the first of them in the gate, and those that are of more than a sample. */
  const byLoader = sized({ gate: ["object", "object-snake-case", "tuple", "keywords"], full: [] });

  test.each([...snippets.keys()])("%s", async (name) => {
    const scores = byLoader.includes(name) ? scoresByLoader(name) : scoresBy(optionsFor(name));
    expect(await scores).toEqual(expected[name] ?? [1, 0, 0, 0]);
  });

  const lines: readonly (readonly [string, string])[] = [
    ["batch", "class"],
    ["batch", "lists"],
    ["prime", "positional"],
  ];
  // Their modules are called above, and what such lines come to is in config.test.ts.
  test.each(sized({ gate: lines.slice(0, 1), full: lines }))(
    "by the documents' command lines: reward_model.reward_manager=%s, %s",
    async (manager, name) => {
      const { path = "" } = snippets.get(name) ?? {};
      const config = readRewardConfig({}, [
        `custom_reward_function.path=${path}`,
        ...(name === "class" ? ["custom_reward_function.name=RewardAgent"] : []),
        `reward_model.reward_manager=${manager}`,
        "reward_model.launch_reward_fn_async=True",
      ]);
      const options = { ...rewardLoopOptionsOf(config), workers: 1, executors: 1 };
      expect(await scoresBy(options)).toEqual([1, 0, 0, 0]);
    },
  );
});

test("what the page's class says of a group that has failures stands in its rows", async () => {
  const loop = await loopOf(optionsFor("class"));
  const request = new RewardRequest(loop, { uids: ["a", "a", "a"], groupSize: 3 });
  for (const [row, response] of ["1", "", "2"].entries()) {
    request.submit(row, { dataSource: "toy", response, groundTruth: "1" });
  }
  await request.take(3);
  const outcomes = [0, 1, 2].map((row) => request.outcomeOf(row) as SampleOutcome);
  expect(outcomes).toMatchObject([
    { rewardScore: 1, rewardExtraInfo: { query: "1" } },
    { rewardScore: 0.5, rewardExtraInfo: { fallback: true, error: "SCORE_THREW" } },
    { rewardScore: 0 },
  ]);
});

test("what no number is comes back as invalid where the documents return 0", async () => {
  const loop = await loopOf(optionsFor("reward-model"));
  const sample = {
    dataSource: "toy",
    response: "",
    groundTruth: "1",
    extraInfo: { question: "?" },
  };
  expect(await loop.computeScore(sample)).toMatchObject({
    valid: false,
    error: { code: "INVALID_SCORE", message: expect.stringContaining("NaN") as string },
  });
});

describe("what verl's documents have and cannot be called is refused when the loop is made", () => {
  const cases: readonly [string, string, object][] = [
    [
      "self, as they print it for a function",
      "export function compute_score(self, data_source, solution_str, ground_truth, extra_info = null) { return [1, solution_str, 'score']; }",
      { code: "REWARD_FUNCTION_SIGNATURE", problem: expect.stringContaining("self") as string },
    ],
    [
      "a dictionary of keywords",
      "export function compute_score(...kwargs) { return kwargs.solution_str === kwargs.ground_truth ? 1 : 0; }",
      { code: "REWARD_FUNCTION_SIGNATURE" },
    ],
    [
      "a method that is misspelt",
      "export class Agent { compute_score(solution_str, ground_truth) { return 1; } post_process_score(rewards) { return rewards; } }",
      { code: "REWARD_HOOK_NAME", meant: "postProcessScores" },
    ],
  ];
  const refused = (reward: string): Promise<unknown> =>
    RewardLoopManager.create({ workers: 1, executors: 1, reward });
  test.each(cases)("%s", async (_name, text, refusal) => {
    const at = cases.findIndex(([, one]) => one === text);
    const path = join(folder, `refused-${at}.js`);
    writeFileSync(path, text);
    const reward = text.includes("class Agent") ? `${path}:Agent` : path;
    // What the loader says is the loop's error, as the first of them and the manager below show.
    const created = at === 0 ? refused(reward) : loadScorer(reward);
    await expect(created).rejects.toMatchObject(refusal);
  });

  test("a manager with run_single", async () => {
    const path = join(folder, "manager.js");
    writeFileSync(path, "export default class Naive { async run_single(data) { return {}; } }");
    const created = RewardLoopManager.create({ workers: 1, executors: 1, manager: { path } });
    await expect(created).rejects.toMatchObject({ code: "REWARD_HOOK_NAME", meant: "runSingle" });
  });

  test("a file of Python", async () => {
    await expect(loadScorer("reward.py")).rejects.toMatchObject({
      code: "REWARD_MODULE_LANGUAGE",
    });
  });
});
