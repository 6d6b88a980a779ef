/** What a new executor loads for its first calls is nobody's fault; a function that blocks it for good is found out all the same. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { fixture, numbers, scoreTexts } from "./loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const path = fixture("cold.ts");

test.each([
  ["atOnce", 600],
  ["later", 600],
  // Longer than it may: what came first is tried once more, in another thread.
  ["firstOfAll", 3000],
])("%s, for %i ms of a deadline of 200", async (name, loadMs) => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-cold-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const marks = name === "firstOfAll" ? { marks: join(folder, "loaded") } : {};
  const reward = { path, name, rewardKwargs: { loadMs, ...marks } };
  const outcomes = await scoreTexts({ reward, timeoutMs: 200, concurrency: 4 }, numbers(20));
  expect(outcomes.map((one) => (one.valid ? one.rewardScore : one.error.message))).toEqual(
    Array.from({ length: 20 }, (_, index) => index),
  );
});

test("a thread that has just loaded, and has not said so yet, is not taken for one that is blocked by unknown code", async () => {
  const reward = { path, name: "thenOther", rewardKwargs: { loadMs: 900 } };
  const outcomes = await scoreTexts({ reward, timeoutMs: 500, concurrency: 4 }, numbers(1));
  expect(outcomes).toMatchObject([{ valid: true, rewardScore: 0 }]);
});

test("one that blocks for good is tried once more, and costs nobody else a score", async () => {
  const texts = numbers(12, { 0: "block" });
  const reward = { path, name: "forEver" };
  const outcomes = await scoreTexts({ reward, timeoutMs: 500, concurrency: 4 }, texts);
  const [first, ...others] = outcomes;
  expect(first).toMatchObject({ valid: false, error: { code: "SCORE_TIMEOUT", blocked: true } });
  expect(others.map((one) => one.valid && one.rewardScore)).toEqual(
    Array.from({ length: 11 }, (_, index) => index + 1),
  );
});
