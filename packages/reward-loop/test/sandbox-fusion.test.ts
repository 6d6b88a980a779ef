/** Data sources of programs in a loop: tested by a service within its limit, or on this machine, among samples of other kinds. */

import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import type { ProgramEnd, RewardSample } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SandboxServer } from "../../../test/servers/sandbox-server.ts";
import { withSandboxLimits } from "../src/settings/sandbox-fusion.ts";
import { fixture } from "./loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

/** A program that doubles, and is right of so many of two tests. */
function doubling(right: 0 | 1 | 2): RewardSample {
  return {
    dataSource: "codecontests",
    response: `\`\`\`python\nn = int(input())\nprint(n * 2 if n <= ${right} else 0)\n\`\`\``,
    groundTruth: { inputs: ["1", "2"], outputs: ["2", "4"] },
  };
}

async function scoreAll(
  options: RewardLoopOptions,
  samples: readonly RewardSample[],
): Promise<SampleOutcome[]> {
  await using loop = await RewardLoopManager.create({ workers: 1, executors: 1, ...options });
  return await Promise.all(samples.map((sample) => loop.computeScore(sample)));
}

const scoresOf = (outcomes: readonly SampleOutcome[]): unknown[] =>
  outcomes.map((one) => (one.valid ? one.rewardScore : one.error.code));

test("all workers together ask the service for no more at once than it takes", async () => {
  // What the programs come to is known here. The first one is not done before there is another.
  const second = Promise.withResolvers<void>();
  let count = 0;
  await using server = await SandboxServer.start(() => undefined, {
    async run({ code, stdin }): Promise<ProgramEnd> {
      count += 1;
      if (count === 1) await second.promise;
      else second.resolve();
      await setTimeout(1);
      const right = Number(/n <= (\d)/.exec(code)?.[1]);
      const stdout = `${Number(stdin) <= right ? 2 * Number(stdin) : 0}\n`;
      const ended = { status: "finished", exitCode: 0, signal: null } as const;
      return { ...ended, stdout, stderr: "", value: undefined, durationMs: 0 };
    },
  });
  const samples = Array.from({ length: 24 }, (_, index) => doubling((index % 3) as 0 | 1 | 2));
  const outcomes = await scoreAll(
    { workers: 2, sandboxFusion: { url: server.url, maxConcurrent: 2, memoryLimitMb: 256 } },
    samples,
  );
  expect(scoresOf(outcomes)).toEqual(samples.map((_, index) => (index % 3) / 2));
  expect(server.requests.length).toBe(48);
  expect(server.mostInFlight).toBe(2);
  expect(new Set(server.requests.map((one) => one.memory_limit_MB))).toEqual(new Set([256]));
});

test.each([
  [undefined, 7],
  [3, 3],
  [200, 7],
  ["auto", { max: 7 }],
  [{}, { max: 7 }],
  [
    { min: 10, max: 50, initial: 20 },
    { min: 7, max: 7, initial: 20 },
  ],
  [
    { min: 1, max: 5 },
    { min: 1, max: 5 },
  ],
] as const)("the service's maxConcurrent holds beside a concurrency of %j", (concurrency, both) => {
  const sandboxFusion = { url: "http://sandbox/run_code", maxConcurrent: 7 };
  const { limits } = withSandboxLimits({ sandboxFusion, limits: { concurrency } });
  expect(limits).toEqual({ endpoint: sandboxFusion.url, concurrency: both });
});

test("what the service fails at is no score of 0, and is tried again where the loop does so", async () => {
  // Each request is sent three times in an attempt: these are the first attempts of both samples.
  const faults = [503, 429, "malformed", "sandbox-error", 500, 503] as const;
  await using server = await SandboxServer.start((count) => faults[count]);
  const outcomes = await scoreAll(
    {
      sandboxFusion: { url: server.url },
      retry: { attempts: 8, baseMs: 1, budget: Infinity },
    },
    [doubling(2), doubling(1)],
  );
  expect(scoresOf(outcomes)).toEqual([1, 0.5]);
  expect(outcomes.map(({ attempts }) => attempts)).toEqual([2, 2]);
  expect(server.requests.length).toBe(faults.length + 4);
});

test("each request for a sample counts in the minute, and a pause holds for all of them", async () => {
  const refused = { status: 429, headers: { "retry-after": "0.2" } };
  const good = { status: "Finished", return_code: 0, stdout: "2" };
  const askedAt: number[] = [];
  await using server = await SandboxServer.start((count) => {
    askedAt.push(performance.now());
    return count === 1 ? refused : { status: "Success", run_result: good };
  });
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    sandboxFusion: { url: server.url, maxConcurrent: 1 },
    // A port may come again, with the limiter of an earlier server.
    limits: { endpoint: randomUUID(), requestsPerMinute: 6_000_000, minuteMs: 36_000_000 },
  });
  const outcomes = await Promise.all(
    [doubling(2), doubling(1)].map((one) => loop.computeScore(one)),
  );
  expect(scoresOf(outcomes)).toEqual([0.5, 0.5]);
  expect(askedAt.length).toBe(5);
  expect((askedAt[2] ?? 0) - (askedAt[1] ?? 0)).toBeGreaterThanOrEqual(199);
  const [state] = await loop.endpoints();
  expect(state).toMatchObject({ granted: 2, requests: { used: 5 } });
});

test("a service that is not there makes samples invalid, and says why", async () => {
  const [outcome] = await scoreAll({ sandboxFusion: { url: "http://127.0.0.1:1/run_code" } }, [
    doubling(2),
  ]);
  expect(outcome).toMatchObject({ valid: false, error: { code: "SCORE_THREW" } });
});

test("without a service programs run here, among samples of other kinds", async () => {
  const answer: RewardSample = {
    dataSource: "openai/gsm8k",
    response: "#### 18",
    groundTruth: "18",
  };
  const broken = { ...doubling(2), groundTruth: "no tests" };
  const outcomes = await scoreAll({}, [
    doubling(2),
    answer,
    broken,
    doubling(1),
    { ...answer, groundTruth: "1" },
  ]);
  expect(scoresOf(outcomes)).toEqual([1, 1, "INVALID_SAMPLE", 0.5, 0]);
});

test("of several rewards those without a function of their own test programs by the service", async () => {
  await using server = await SandboxServer.start();
  const [outcome] = await scoreAll(
    {
      sandboxFusion: { url: server.url },
      rewards: { tests: {}, length: { reward: `${fixture("rewards.ts")}:one` } },
    },
    [doubling(1)],
  );
  expect(outcome).toMatchObject({ rewardScore: 1.5, rewardExtraInfo: { tests: 0.5, length: 1 } });
  expect(server.requests.length).toBe(2);
});

test("a program that never ends is ended when its sample is given up", async () => {
  const endless = { ...doubling(2), response: "```python\nwhile True: pass\n```" };
  const outcomes = await scoreAll({ timeoutMs: 300 }, [endless]);
  expect(scoresOf(outcomes)).toEqual(["SCORE_TIMEOUT"]);
});
