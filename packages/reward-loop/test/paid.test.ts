/** Answers that are of no use are paid for, and no cap is passed by them, as counted by the server. */

import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { RewardLoopManager, rewardReport, RewardRequest } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { fixture, sampleOf } from "./loop.ts";
import { sized } from "../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const usage = { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 };
const silent = (finish: string, content: unknown = null): object => ({
  choices: [{ message: { role: "assistant", content }, finish_reason: finish }],
  usage,
});

/** What the server says to each text. */
const answers: Readonly<Record<string, { readonly status?: number; readonly body: unknown }>> = {
  right: { body: silent("stop", "1") },
  parts: {
    body: silent("stop", [
      { type: "reasoning", text: "0" },
      { type: "text", text: "1" },
      { type: "text", text: "2" },
    ]),
  },
  words: { body: silent("stop", "I like it.") },
  nothing: { body: silent("stop") },
  length: { body: silent("length") },
  "length, empty": { body: silent("length", "") },
  filtered: { body: silent("content_filter") },
  refused: {
    body: { choices: [{ message: { content: null, refusal: "I will not" } }], usage },
  },
  "refused in parts": { body: silent("stop", [{ type: "refusal", refusal: "I will not" }]) },
  "error 429 inside": {
    body: { choices: [{ error: { code: 429, message: "busy" }, message: { content: "" } }], usage },
  },
  "error 502 inside, with text": {
    body: {
      choices: [{ error: { code: 502, message: "broke" }, message: { content: "1" } }],
      usage,
    },
  },
  "error inside": { body: { error: { message: "something", type: "oops" }, usage } },
  "wrong inside": { body: { error: { message: "no", type: "invalid_request_error" }, usage } },
  "error without words": { body: silent("error", "") },
  "500 that used": { status: 500, body: { error: { message: "broke" }, usage } },
  "400 that used": { status: 400, body: { error: { message: "no" }, usage } },
};

interface Endpoint extends AsyncDisposable {
  readonly url: string;
  /** Answered so far. */
  readonly calls: () => number;
  /** Requests that their client ended before they were answered. */
  readonly ended: () => number;
}

/** @param turn awaited before a call is answered, with how many there are by now, and its text */
async function startEndpoint(
  turn: (calls: number, content: string) => Promise<void> = async () => undefined,
): Promise<Endpoint> {
  let calls = 0;
  let ended = 0;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      calls += 1;
      const { messages } = JSON.parse(Buffer.concat(parts).toString()) as {
        messages: [{ content: string }];
      };
      const { content } = messages[0];
      const [text = ""] = content.split(" #");
      const { status = 200, body } = answers[text] ?? { body: {} };
      response.on("close", () => {
        if (!response.writableFinished) ended += 1;
      });
      void turn(calls, content).then(() => {
        response.writeHead(status, { "content-type": "application/json" });
        response.end(JSON.stringify(body));
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    calls: () => calls,
    ended: () => ended,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** 1 for each answer. */
const prices = { perMillionInputTokens: 5000, perMillionOutputTokens: 10_000 };
const mostPerCall = { inputTokens: 100, outputTokens: 50 };

async function scored(
  endpoint: Endpoint,
  name: string,
  texts: readonly string[],
  options: RewardLoopOptions,
): Promise<{ readonly outcomes: readonly SampleOutcome[]; readonly spent: number }> {
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward: { path: fixture("asks.ts"), name, rewardKwargs: { judgeUrl: endpoint.url } },
    ...options,
  });
  const outcomes = await Promise.all(texts.map((text) => loop.computeScore(sampleOf(text))));
  return { outcomes, spent: loop.spent };
}

const codesOf = (outcomes: readonly SampleOutcome[]): unknown[] =>
  outcomes.map((one) => (one.valid ? one.rewardScore : one.error.code));

describe("what a judge says, or does not", () => {
  let judge: Endpoint;
  let asking: RewardLoopManager;
  beforeAll(async () => {
    judge = await startEndpoint();
    asking = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      spend: { prices },
      retry: { attempts: 2, baseMs: 0, budget: Infinity },
      reward: {
        path: fixture("asks.ts"),
        name: "byClient",
        rewardKwargs: { judgeUrl: judge.url },
      },
    });
  });
  afterAll(async () => {
    await asking.close();
    await judge[Symbol.asyncDispose]();
  });

  test.each([
    ["right", 1, 1],
    ["parts", 12, 1],
    // A JSON.parse of the function's own is its own matter.
    ["words", "SCORE_THREW", 1],
    ["nothing", "SCORE_THREW", 2],
    ["length", "TRUNCATED", 1],
    ["length, empty", "TRUNCATED", 1],
    ["filtered", "REFUSED", 1],
    ["refused", "REFUSED", 1],
    ["refused in parts", "REFUSED", 1],
    ["error 429 inside", "SCORE_THREW", 2],
    ["error 502 inside, with text", "SCORE_THREW", 2],
    ["error inside", "SCORE_THREW", 2],
    ["wrong inside", "SCORE_THREW", 1],
    ["error without words", "SCORE_THREW", 2],
    ["500 that used", "SCORE_THREW", 2],
    ["400 that used", "SCORE_THREW", 1],
  ])("%s: %s after %i attempts, and all are paid for", async (text, wanted, attempts) => {
    const [spent, calls] = [asking.spent, judge.calls()];
    const outcome = await asking.computeScore(sampleOf(text));
    expect(codesOf([outcome])).toEqual([wanted]);
    expect(outcome).toMatchObject({ attempts, cost: attempts });
    expect(asking.spent - spent).toBeCloseTo(attempts, 9);
    expect(judge.calls() - calls).toBe(attempts);
  });

  test("is asked again where the function says so", async () => {
    await using endpoint = await startEndpoint();
    const options = { spend: { prices }, retry: { attempts: 3, baseMs: 0 } };
    const texts = ["length", "refused"];
    const { outcomes, spent } = await scored(endpoint, "asksAgain", texts, options);
    expect(outcomes).toMatchObject([
      { attempts: 3, error: { errorCode: "MALFORMED_ANSWER" } },
      { attempts: 3, error: { errorCode: "MALFORMED_ANSWER" } },
    ]);
    expect([spent, endpoint.calls()]).toEqual([6, 6]);
  });

  // One for each of the two clocks; each waits for it.
  const limited = [
    { timeoutMs: 2000 },
    { totalTimeoutMs: 2000, hedge: { quantile: 0.5, budget: 1 } },
    { totalTimeoutMs: 2000 },
    { totalTimeoutMs: 2000, timeoutMs: 1e6 },
    { totalTimeoutMs: 2000, retry: { attempts: 2 } },
  ];
  test.each(sized({ gate: limited.slice(0, 2), full: limited }))(
    "is paid for if its function does not end: %j",
    async (limits) => {
      await using endpoint = await startEndpoint();
      const options = { spend: { prices }, ...limits };
      const { outcomes, spent } = await scored(endpoint, "thenHangs", ["right"], options);
      expect(codesOf(outcomes)).toEqual(["SCORE_TIMEOUT"]);
      expect(outcomes).toMatchObject([{ attempts: 1, cost: 1 }]);
      expect([spent, endpoint.calls()]).toEqual([1, 1]);
    },
  );

  test.each(sized({ gate: [mostPerCall], full: [undefined, mostPerCall] }))(
    "is paid for where the total time ends the next question, and counts for the cap: %j",
    async (most) => {
      // The second question of each function has no answer.
      await using endpoint = await startEndpoint((calls) =>
        calls === 1 ? Promise.resolve() : new Promise(() => undefined),
      );
      const spend = { prices, cap: 1, ...(most === undefined ? {} : { mostPerCall: most }) };
      await using loop = await RewardLoopManager.create({
        workers: 1,
        executors: 1,
        totalTimeoutMs: 2000,
        spend,
        reward: {
          path: fixture("asks.ts"),
          name: "asksTwice",
          rewardKwargs: { judgeUrl: endpoint.url },
        },
      });
      const first = await loop.computeScore(sampleOf("right"));
      expect(first).toMatchObject({ error: { code: "SCORE_TIMEOUT" }, attempts: 1, cost: 1 });
      const next = await loop.computeScore(sampleOf("right"));
      expect(next).toMatchObject({ error: { code: "SPEND_CAP" }, attempts: 0, cost: 0 });
      expect([loop.spent, endpoint.calls()]).toEqual([1, 2]);
    },
  );
});

describe("tokens of the log are those that the endpoint counted", () => {
  const partOf = (endpoint: Endpoint, name: string) => ({
    reward: { path: fixture("asks.ts"), name, rewardKwargs: { judgeUrl: endpoint.url } },
  });

  /** Groups that come one after the other, with how many calls they cost. */
  type Groups = readonly (readonly [texts: readonly string[], sold: number])[];
  type Case = [string, Groups, (endpoint: Endpoint) => RewardLoopOptions];
  /** Several rewards have one, and a cascade, below. */
  const ofCache: Case = [
    "a cache",
    [
      [["right", "right"], 1],
      [["right", "right"], 0],
    ],
    (endpoint) => ({ ...partOf(endpoint, "says"), concurrency: 1, cache: ":memory:" }),
  ];
  test.each<Case>([
    ...sized({ gate: [], full: [ofCache] }),
    [
      "groups: one that says it",
      [[["a", "b"], 2]],
      (endpoint) => partOf(endpoint, "TogetherAndSays"),
    ],
    [
      "groups: a new one, one that is known, and one that fails",
      [
        [["a", "b", "c"], 1],
        [["a", "b", "c"], 0],
        [["a", "throws"], 1],
      ],
      (endpoint) => ({ ...partOf(endpoint, "Together"), cache: ":memory:" }),
    ],
    [
      "samples that are joined",
      [[["right", "right", "right"], 1]],
      (endpoint) => ({ ...partOf(endpoint, "byClient"), joinSame: true }),
    ],
    [
      "a cascade, also where it cannot tell",
      [
        [["right", "right #2"], 4],
        [["right #none"], 2],
      ],
      (endpoint) => ({
        cascade: { rule: partOf(endpoint, "cannotTell"), judge: partOf(endpoint, "byClient") },
      }),
    ],
    [
      "a cascade whose last stage is known",
      [
        [["right"], 2],
        [["right"], 1],
      ],
      (endpoint) => ({
        cascade: {
          rule: partOf(endpoint, "cannotTell"),
          judge: { ...partOf(endpoint, "says"), cache: ":memory:" },
        },
      }),
    ],
    [
      "several rewards",
      [
        [["right"], 2],
        [["right"], 1],
      ],
      (endpoint) => ({
        rewards: {
          one: { ...partOf(endpoint, "says"), cache: ":memory:" },
          other: partOf(endpoint, "byClient"),
        },
      }),
    ],
  ])("of %s", async (_, groups, optionsOf) => {
    await using endpoint = await startEndpoint();
    const folder = await mkdtemp(join(tmpdir(), "rayling-paid-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const record = join(folder, "rewards.jsonl");
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      record,
      ...optionsOf(endpoint),
    });
    let sold = 0;
    for (const [texts, calls] of groups) {
      const uids = texts.map(() => "g");
      const request = new RewardRequest(loop, { uids, groupSize: texts.length });
      for (const [row, text] of texts.entries()) request.submit(row, sampleOf(text));
      await request.take(texts.length);
      sold += calls;
      expect(endpoint.calls()).toBe(sold);
    }
    await loop.close();
    const { tokens } = await rewardReport(record);
    expect(tokens).toEqual({ input: 100 * sold, output: 50 * sold });
  });
});

describe("a cap holds with answers of no use", () => {
  const texts = Array.from({ length: 60 }, (_, n) => `nothing #${n}`);
  const retry = { attempts: 6, baseMs: 0, budget: Infinity };
  const concurrency = 8;

  test("but for the calls that are under way when it is reached", async () => {
    await using endpoint = await startEndpoint();
    const options = { concurrency, retry, spend: { prices, cap: 20 } };
    const { outcomes, spent } = await scored(endpoint, "byClient", texts, options);
    expect(endpoint.calls()).toBeGreaterThanOrEqual(20);
    expect(endpoint.calls()).toBeLessThan(20 + concurrency);
    expect(spent).toBeCloseTo(endpoint.calls(), 9);
    const costs = outcomes.reduce((sum, { cost = 0 }) => sum + cost, 0);
    expect(costs).toBeCloseTo(spent, 9);
    // Those that had failed say of what.
    const capped = outcomes.filter((one) => !one.valid && one.error.code === "SPEND_CAP");
    const tried = capped.filter(({ attempts }) => attempts > 0);
    expect(tried.length).toBeGreaterThan(0);
    for (const one of tried) {
      expect(!one.valid && one.error.message).toContain("choices[0].message.content");
    }
  });

  // What a client tells is counted above, and its reservations are given back below.
  test.each(sized({ gate: ["byFetch"], full: ["byClient", "byFetch"] }))(
    "and without those where the most that a call may use is known (%s)",
    async (name) => {
      await using endpoint = await startEndpoint();
      const options = { concurrency, retry, spend: { prices, cap: 20.5, mostPerCall } };
      const { spent } = await scored(endpoint, name, texts, options);
      expect(endpoint.calls()).toBe(20);
      expect(spent).toBeCloseTo(20, 9);
    },
  );

  test("also if calls turn out to cost less than they may: nobody is turned away too early", async () => {
    await using endpoint = await startEndpoint();
    const spend = { prices, cap: 20, mostPerCall: { inputTokens: 1000, outputTokens: 500 } };
    const right = texts.map((_, n) => `right #${n}`);
    const { spent } = await scored(endpoint, "byClient", right, { concurrency, retry, spend });
    // Ten is the price that one may have.
    expect(endpoint.calls()).toBe(11);
    expect(spent).toBeCloseTo(11, 9);
  });
});

test("requests that are under way when their function ends end with it, and cost no thread", async () => {
  const never = new Promise<void>(() => undefined);
  const released = Promise.withResolvers<void>();
  let arrived = Promise.withResolvers<void>();
  await using endpoint = await startEndpoint((_, content) => {
    if (content === "right #released") return released.promise;
    if (content !== "held") return arrived.promise;
    arrived.resolve();
    return never;
  });
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    spend: { prices },
    reward: {
      path: fixture("asks.ts"),
      name: "sideBySide",
      rewardKwargs: { judgeUrl: endpoint.url },
    },
  });
  // Another sample is at work in their thread all the time.
  const other = loop.computeScore(sampleOf("other"));
  for (const [at, text] of ["all", "any", "floating"].entries()) {
    arrived = Promise.withResolvers();
    const outcome = await loop.computeScore(sampleOf(text));
    expect([text, ...codesOf([outcome])]).toEqual([text, text === "all" ? "SCORE_THREW" : 1]);
    expect(outcome).toMatchObject({ attempts: 1, cost: 1 });
    await expect.poll(endpoint.ended).toBe(at + 1);
  }
  released.resolve();
  expect(await other).toMatchObject({ valid: true, attempts: 1 });
  expect([loop.spent, endpoint.calls()]).toEqual([4, 7]);
});

test("a call whose executor ended is paid for, and asks whether it may begin again", async () => {
  // The first waits until the second has ended its executor; the rest is answered at once.
  const second = Promise.withResolvers<void>();
  await using endpoint = await startEndpoint(async (calls) => {
    if (calls === 1) return new Promise(() => undefined);
    if (calls === 2) second.resolve();
  });
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    spend: { prices, cap: 20, mostPerCall },
    reward: {
      path: fixture("asks.ts"),
      name: "thenExits",
      rewardKwargs: { judgeUrl: endpoint.url },
    },
  });
  const lost = loop.computeScore(sampleOf("right"));
  await expect.poll(() => endpoint.calls()).toBe(1);
  const exits = loop.computeScore(sampleOf("exit"));
  await second.promise;
  expect(codesOf(await Promise.all([lost, exits]))).toEqual([1, "EXECUTOR_DIED"]);
  expect(endpoint.calls()).toBeGreaterThan(2);
  expect(loop.spent).toBeCloseTo(endpoint.calls(), 9);
});

test("cached input and reasoning have prices of their own", async () => {
  const { Budget } = await import("../src/spend/cost-budget.ts");
  const budget = new Budget({
    prices: {
      perMillionInputTokens: 10,
      perMillionOutputTokens: 100,
      perMillionCachedInputTokens: 1,
      perMillionReasoningTokens: 50,
    },
  });
  const costOf = (said: object): number =>
    budget.pay({
      valid: true,
      rewardScore: 1,
      rewardExtraInfo: { usage: said },
      latencyMs: 1,
      waitedMs: 0,
      attempts: 1,
    }) * 1e6;
  const openai = {
    prompt_tokens: 1000,
    completion_tokens: 100,
    prompt_tokens_details: { cached_tokens: 800 },
    completion_tokens_details: { reasoning_tokens: 40 },
  };
  expect(costOf(openai)).toBeCloseTo(200 * 10 + 800 + 60 * 100 + 40 * 50, 6);
  const sdk = {
    inputTokens: 1000,
    outputTokens: 100,
    totalTokens: 1100,
    inputTokenDetails: { cacheReadTokens: 800 },
    outputTokenDetails: { reasoningTokens: 40 },
  };
  expect(costOf(sdk)).toBeCloseTo(200 * 10 + 800 + 60 * 100 + 40 * 50, 6);
  // The SDK read nothing of what the endpoint said.
  const unread = { inputTokens: 0, outputTokens: 0, totalTokens: 0, raw: openai };
  expect(costOf(unread)).toBeCloseTo(200 * 10 + 800 + 60 * 100 + 40 * 50, 6);
  const ofSteps = { ...sdk, raw: { ...openai, prompt_tokens: 10, completion_tokens: 0 } };
  expect(costOf(ofSteps)).toBeCloseTo(200 * 10 + 800 + 60 * 100 + 40 * 50, 6);
  const anthropic = { input_tokens: 200, output_tokens: 100, cache_read_input_tokens: 800 };
  expect(costOf(anthropic)).toBeCloseTo(200 * 10 + 800 + 100 * 100, 6);
  const written = { ...anthropic, cache_creation_input_tokens: 50 };
  expect(costOf(written)).toBeCloseTo(250 * 10 + 800 + 100 * 100, 6);
  // Reasoning beside the output, as the total says.
  const apart = {
    prompt_tokens: 1000,
    completion_tokens: 60,
    total_tokens: 1100,
    completion_tokens_details: { reasoning_tokens: 40 },
  };
  expect(costOf(apart)).toBeCloseTo(1000 * 10 + 60 * 100 + 40 * 50, 6);
});

test.each([
  [{ prompt_tokens: 1100 }],
  [{ prompt_tokens: 1100, total_tokens: 1110 }],
  [{ prompt_tokens: 1100, prompt_tokens_details: { cached_tokens: 1000 } }],
  // A proxy may give both names.
  [{ prompt_tokens: 1100, input_tokens: 1100 }],
])("LiteLLM's prompt tokens include what its cache read and wrote: %j", async (prompt) => {
  const { usageOf } = await import("../src/spend/usage.ts");
  const said = {
    completion_tokens: 10,
    cache_read_input_tokens: 1000,
    cache_creation_input_tokens: 20,
    ...prompt,
  };
  expect(usageOf({ usage: said })).toEqual({
    inputTokens: 1100,
    outputTokens: 10,
    totalTokens: 1110,
    cachedInputTokens: 1000,
  });
});

test.each([
  [{ perMillionInputTokens: 1, perMillionOutputTokens: 4 }, 100 + 50 * 4],
  [{ perMillionOutputTokens: 4, perMillionReasoningTokens: 8 }, 50 * 8],
  [{ perMillionOutputTokens: 4, perMillionReasoningTokens: 2 }, 50 * 4],
  [{ perMillionInputTokens: 1, perMillionCachedInputTokens: 2 }, 100 * 2],
])("a call of which nobody knows the use costs the most that it may: %j", async (own, most) => {
  const { Budget } = await import("../src/spend/cost-budget.ts");
  const budget = new Budget({ prices: own, mostPerCall: { inputTokens: 100, outputTokens: 50 } });
  const cost = budget.costOf({ attempts: 1, usage: undefined, unknown: 1 });
  expect(cost * 1e6).toBeCloseTo(most, 6);
});
