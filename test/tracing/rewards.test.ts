/** Spans of rewards, of a judge's chats and of training steps, received by OTLP. */

import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as otel from "@opentelemetry/api";
import { afterAll, beforeAll, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { SampleOutcome } from "@rayling/reward-loop";
import { Tracking } from "@rayling/trainer";
import {
  type OtlpReceiver,
  otlpReceiver,
  pathsOf,
  type ReceivedSpan,
} from "../fixtures/otlp-receiver.ts";
import type * as Traced from "../fixtures/traced.ts";

let receiver: OtlpReceiver;
let traced: typeof Traced;
let judge: Server;
let loop: RewardLoopManager;

/** Answers with the length of the question; fails for an empty one. */
async function startJudge(): Promise<void> {
  judge = createServer(async (request, response) => {
    let text = "";
    for await (const part of request.setEncoding("utf8")) text += String(part);
    const { messages } = JSON.parse(text) as { messages: [{ content: string }] };
    const { length } = messages[0].content;
    response.writeHead(length === 0 ? 400 : 200, { "content-type": "application/json" });
    const choices = [{ message: { content: String(length) }, finish_reason: "stop" }];
    const usage = { prompt_tokens: 7, completion_tokens: 1, total_tokens: 8 };
    response.end(JSON.stringify({ id: "chat-1", model: "judge-1b", choices, usage }));
  });
  await new Promise<void>((listening) => judge.listen(0, "127.0.0.1", listening));
  const { port } = judge.address() as AddressInfo;
  process.env["RAYLING_TEST_JUDGE"] = `http://127.0.0.1:${port}/v1`;
}

beforeAll(async () => {
  receiver = await otlpReceiver();
  process.env["RAYLING_TEST_OTLP"] = receiver.url;
  await startJudge();
  traced = await import("../fixtures/traced.ts");
  await ray.init({ prewarm: 0 });
  loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward: { path: join(import.meta.dirname, "../fixtures/traced-reward.ts"), name: "judge" },
  });
});

afterAll(async () => {
  await loop.close();
  await ray.shutdown();
  await traced.provider?.shutdown();
  await receiver.close();
  await new Promise((closed) => judge.close(closed));
});

/** Spans of the trace of `work`, when there are so many of these names. */
async function spansOf(
  names: RegExp,
  count: number,
  work: () => Promise<unknown>,
): Promise<ReceivedSpan[]> {
  const traceId = await otel.trace.getTracer("driver").startActiveSpan("request", async (span) => {
    await work().finally(() => span.end());
    return span.spanContext().traceId;
  });
  const own = (): ReceivedSpan[] =>
    receiver.spans.filter((span) => span.traceId === traceId && names.test(span.name));
  await expect.poll(() => own().length).toBe(count);
  return own();
}

const attributesOf = ({ attributes }: ReceivedSpan): Record<string, unknown> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

const sampleOf = (response: string): Parameters<RewardLoopManager["computeScore"]>[0] => ({
  dataSource: "maths",
  response,
  groundTruth: "",
});

test("each sample has its own judge's chat below it, though samples travel together", async () => {
  const responses = ["a", "bb", "ccc"];
  const spans = await spansOf(/^(?:request|reward|score|chat)/, 10, () =>
    Promise.all(responses.map((response) => loop.computeScore(sampleOf(response)))),
  );
  const reward = "request > reward";
  const chat = `${reward} > score > chat judge-1 (client)`;
  expect(pathsOf(spans)).toEqual(
    ["request", ...responses.flatMap(() => [reward, `${reward} > score`, chat])].toSorted(),
  );
  const rewards = spans.filter(({ name }) => name === "reward").map(attributesOf);
  expect(new Set(rewards.map((one) => one["rayling.reward.score"]))).toEqual(new Set([1, 2, 3]));
  const [asked] = spans.filter(({ name }) => name.startsWith("chat")).map(attributesOf);
  expect(asked).toMatchObject({
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "judge-1",
    "gen_ai.request.max_tokens": 8,
    "gen_ai.response.model": "judge-1b",
    "gen_ai.response.id": "chat-1",
    "gen_ai.usage.input_tokens": 7,
    "gen_ai.usage.output_tokens": 1,
    "server.address": "127.0.0.1",
  });
  expect(asked).not.toHaveProperty("gen_ai.input.messages");
});

test("a sample without a score has its failure in all three spans", async () => {
  const spans = await spansOf(/^(?:reward|score|chat)/, 3, () => loop.computeScore(sampleOf("")));
  expect(spans.map(({ status }) => status.code)).toEqual([2, 2, 2]);
  const types = spans.map((span) => attributesOf(span)["error.type"]);
  expect(types).toContain("HTTP_STATUS");
  expect(types).toContain("SCORE_THREW");
});

test.each(["no url", "no json"])(
  "a chat that cannot be sent costs its own sample only: %s",
  async (odd) => {
    const texts = ["a", odd, "bb", "ccc"];
    const outcomes: SampleOutcome[] = [];
    const spans = await spansOf(/^chat/, texts.length, async () => {
      outcomes.push(...(await Promise.all(texts.map((text) => loop.computeScore(sampleOf(text))))));
    });
    expect(outcomes.map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1]);
    expect(outcomes.map(({ valid }) => valid)).toEqual([true, false, true, true]);
    expect(outcomes[1]).toMatchObject({ error: { code: "SCORE_THREW" } });
    expect(spans.filter(({ status }) => status.code === 2)).toHaveLength(1);
  },
);

test("training steps are spans with their phases", async () => {
  const directory = await mkdtemp(join(tmpdir(), "rayling-spans-"));
  try {
    const spans = await spansOf(/^(?:training step|gen|reward|testing)$/, 7, async () => {
      const run = { projectName: "maths", experimentName: "grpo", directory, logger: [] };
      const tracking = await Tracking.open(run);
      for (const step of [1, 2, 3]) {
        tracking.phase({ step, name: "gen", startMs: 1000 * step, endMs: 1000 * step + 400 });
        tracking.log({ "critic/score/mean": step / 4 }, step);
      }
      tracking.phase({ step: 2, name: "testing", startMs: 2500, endMs: 2900 });
      await tracking.close();
    });
    const step = "? > training step";
    expect(pathsOf(spans)).toEqual(
      [
        step,
        step,
        step,
        ...Array.from({ length: 3 }, () => `${step} > gen`),
        `${step} > testing`,
      ].toSorted(),
    );
    const steps = spans.filter(({ name }) => name === "training step").map(attributesOf);
    const scores = new Set(steps.map((one) => one["rayling.training.score"]));
    expect(scores).toEqual(new Set([0.25, 0.5, 0.75]));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
