/** The metrics of a big validation leave turns to the rewards that arrive meanwhile. */

import type { SampleOutcome } from "@rayling/reward-loop";
import { present } from "@rayling/reward-manager-registry/values";
import { PromptDataset, validationMetrics } from "@rayling/trainer";
import { expect, test } from "vitest";
import { validationMetricsInTurns } from "../src/metrics/validation-metrics.ts";
import type { TrainingSample } from "../src/samples/training-sample.ts";
import { resultOf } from "../src/validation/validation.ts";

const n = 8;

/** Counts turns of the event loop, from the call until `done`. */
function countTurns(): { readonly turns: () => number; readonly done: () => void } {
  let turns = 0;
  let next = setImmediate(count);
  function count(): void {
    turns += 1;
    next = setImmediate(count);
  }
  return { turns: () => turns, done: () => clearImmediate(next) };
}

test("metrics in turns are those at once, and pause after each slice", async () => {
  const rows = Array.from({ length: 20 * n }, (_, row) => row);
  const results = {
    dataSources: rows.map((row) => (row < 40 ? "a" : "b")),
    sampleUids: rows.map((row) => String(Math.floor(row / n))),
    infos: {
      reward: rows.map((row) => Math.sin(row)),
      acc: rows.map((row) => row % 3 === 0),
      pred: rows.map((row) => String(row % 5)),
    },
  };
  let ms = 0;
  const counted = countTurns();
  const inTurns = await validationMetricsInTurns(results, { slices: { now: () => ms++ } });
  counted.done();
  expect(inTurns).toEqual(validationMetrics(results));
  // 20 questions of 2 variables with 3 sizes each, and a slice of 5 ms is 4 of them.
  expect(counted.turns()).toBeGreaterThan(20);
  const bad = { ...results, infos: { reward: rows.map((row) => (row === 9 ? "no" : 1)) } };
  await expect(validationMetricsInTurns(bad)).rejects.toThrow('"reward" of an answer to 1 is no');
});

test("a validation is worked out in turns", async () => {
  const prompts = await PromptDataset.fromRows(
    Array.from({ length: 600 }, (_, row) => ({
      prompt: [{ role: "user", content: String(row) }],
      data_source: "scripted",
      reward_model: { ground_truth: "" },
    })),
  );
  const count = prompts.rows.length * n;
  const places = Array.from({ length: count }, (_, row) => row);
  const counted = countTurns();
  const { metrics, rows } = await resultOf({
    prompts,
    samples: places.map((row) => sampleOf(prompts, row)),
    outcomes: places.map(outcomeOf),
    uids: places.map((row) => String(Math.floor(row / n))),
    n,
  });
  const turns = counted.turns();
  counted.done();
  expect(metrics["val-core/scripted/reward/mean@8"]).toBeCloseTo((count - 1) / 14, 6);
  expect(rows).toHaveLength(count);
  expect(turns).toBeGreaterThan(0);
});

function sampleOf(prompts: PromptDataset, row: number): TrainingSample {
  const id = String(row);
  const prompt = present(prompts.rows[Math.floor(row / n)], `the prompt of row ${row}`);
  const ids = { promptIds: Int32Array.of(1), responseIds: Int32Array.of(1) };
  const place = { prompt: Math.floor(row / n), sample: row % n, version: 0 };
  const rollout = { ...place, ...ids, response: id, finishReason: "stop" as const };
  return { id, uid: id, prompt, rollout, generatedAt: 0 };
}

function outcomeOf(row: number): SampleOutcome {
  const how = { attempts: 1, latencyMs: 1, waitedMs: 0 };
  return { valid: true, rewardScore: row / 7, rewardExtraInfo: {}, ...how };
}
