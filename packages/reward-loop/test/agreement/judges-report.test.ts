/** Judges beside each other, from their logs. */

import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  exportRewardLog,
  judgesReport,
  RewardLog,
  RewardLoopOptionError,
} from "@rayling/reward-loop";
import type { JudgeLog, SampleOutcome } from "@rayling/reward-loop";
import { beforeEach, expect, onTestFinished, test } from "vitest";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-judges-"));
  onTestFinished(() => rm(folder, { recursive: true }));
});

interface Line {
  /** What the sample says. */
  readonly text: string;
  /** Null: it has none. */
  readonly score: number | null;
  readonly label?: boolean | number;
  readonly dataSource?: string;
}

async function logOf(name: string, lines: readonly Line[]): Promise<JudgeLog> {
  const path = join(folder, `${name}.jsonl`);
  await using log = await RewardLog.open(path);
  for (const [index, { text, score, ...about }] of lines.entries()) {
    const sample = { dataSource: "d", response: text, groundTruth: "g" };
    const place = { index, lane: "training", version: name };
    await log.write(sample, outcomeOf(score), place, about);
  }
  return { name, path };
}

function outcomeOf(score: number | null): SampleOutcome {
  const measured = { latencyMs: 1, attempts: 1, waitedMs: 0 };
  if (score !== null) return { valid: true, rewardScore: score, rewardExtraInfo: {}, ...measured };
  const error = { code: "SCORE_THREW", name: "Error", message: "down" } as const;
  return { valid: false, error, ...measured };
}

test("samples match by what they say, equal ones one by one; the largest differences come first", async () => {
  const rule = await logOf("rule", [
    { text: "a", score: 1 },
    { text: "b", score: 0 },
    { text: "same", score: 1 },
    { text: "same", score: 0 },
    { text: "alone", score: 1 },
  ]);
  const noisy = await logOf("noisy", [
    { text: "same", score: 0.5 },
    { text: "b", score: null },
    { text: "same", score: 1 },
    { text: "a", score: 0.95 },
  ]);
  const report = await judgesReport([rule, noisy], { mostDisagreements: 1 });
  expect(report).toMatchObject({ samples: 5, labelled: 0, calibrations: [], by: null });
  expect(report.judges).toEqual([
    { name: "rule", samples: 5, invalid: 0, meanScore: 0.6 },
    { name: "noisy", samples: 4, invalid: 1, meanScore: (0.5 + 1 + 0.95) / 3 },
  ]);
  expect(report.agreements).toMatchObject([
    { first: "rule", second: "noisy", samples: 3, exact: 0, within: 1 / 3 },
  ]);
  expect(report.disagreements).toMatchObject({
    total: 2,
    shown: [{ index: 3, scores: { rule: 0, noisy: 1 }, difference: 1, label: null }],
  });
});

test("labels that say right or wrong calibrate each judge, as a whole and by source", async () => {
  const labelled = (scores: readonly (number | null)[]): Line[] =>
    scores.map((score, at) => ({
      text: String(at),
      score,
      label: at < 3,
      dataSource: at % 2 === 0 ? "even" : "odd",
    }));
  const first = await logOf("first", labelled([1, 1, 0, 0, 1, null]));
  const second = await logOf("second", labelled([0.9, 0.8, 0.7, 0.6, 0.1, 0.2]));
  const { calibrations, by, labelled: count, agreements } = await judgesReport([first, second]);
  expect({ by, count }).toEqual({ by: "dataSource", count: 6 });
  expect(calibrations).toMatchObject([
    {
      name: "first",
      labelled: 6,
      invalid: 1,
      accuracy: 3 / 5,
      truePositives: 2,
      falsePositives: 1,
      falseNegatives: 1,
      trueNegatives: 1,
      sources: [
        { source: "even", labelled: 3, invalid: 0, accuracy: 1 / 3 },
        { source: "odd", labelled: 3, invalid: 1, accuracy: 1 },
      ],
    },
    { name: "second", accuracy: 5 / 6, separation: { rocAuc: 1, bestThreshold: 0.7 } },
  ]);
  expect(agreements.map((one) => [one.first, one.second, one.samples])).toEqual([
    ["first", "second", 5],
    ["first", "label", 5],
    ["second", "label", 6],
  ]);
  const higher = await judgesReport([second], { scoreThreshold: 0.7 });
  expect(higher.calibrations).toMatchObject([{ threshold: 0.7, accuracy: 1 }]);
});

test("labels that are grades are compared as scores, and say right or wrong from a threshold on", async () => {
  const graded = await logOf(
    "judge",
    [1, 3, 4, 5].map((score) => ({ text: String(score), score, label: 6 - score })),
  );
  const asScores = await judgesReport([graded], { tolerance: 1 });
  expect(asScores.calibrations).toEqual([]);
  expect(asScores.agreements).toMatchObject([{ second: "label", exact: 0.25, within: 0.25 }]);
  const options = { labelThreshold: 3, scoreThreshold: 4 };
  expect((await judgesReport([graded], options)).calibrations).toMatchObject([
    { truePositives: 0, falsePositives: 2, falseNegatives: 2, trueNegatives: 0 },
  ]);
});

test("labels may come from elsewhere, and a field that no record has is refused", async () => {
  const log = await logOf("judge", [
    { text: "a", score: 1 },
    { text: "b", score: 1 },
  ]);
  const labelOf = ({ index }: { readonly index: number }): boolean => index === 0;
  const { calibrations } = await judgesReport([log], { labelOf });
  expect(calibrations).toMatchObject([{ accuracy: 0.5 }]);
  const thrice = await logOf("judge", [
    { text: "a", score: 1 },
    { text: "b", score: 0 },
    { text: "a", score: 1 },
  ]);
  const places: (readonly [number, number])[] = [];
  const noted = ({ index }: { readonly index: number }, before: number): boolean =>
    places.push([index, before]) > 0;
  await judgesReport([thrice], { labelOf: noted });
  expect(places).toEqual([
    [0, 0],
    [1, 0],
    [2, 1],
  ]);
  const wrong = await judgesReport([log], { by: "dataset" }).catch((error: unknown) => error);
  expect(wrong).toBeInstanceOf(RewardLoopOptionError);
  expect(wrong).toMatchObject({ option: "by", value: "dataset" });
});

test("a report and an export have no other options than they say, and no file is touched", async () => {
  const { name, path } = await logOf("judge", [{ text: "a", score: 1 }]);
  await expect(judgesReport([{ name, path }], { tolernce: 1 } as never)).rejects.toMatchObject({
    name: "RewardLoopOptionError",
    option: "judgesReport.tolernce",
    expected: expect.stringContaining("tolerance"),
  });
  const wrong = [
    [{ line: "all" }, "exportRewardLog.line"],
    [{ lines: "ALL" }, "lines"],
    [{ format: "tsv" }, "format"],
  ] as const;
  for (const [options, option] of wrong) {
    const exporting = exportRewardLog(path, join(folder, "log.csv"), options as never);
    await expect(exporting).rejects.toMatchObject({ name: "RewardLoopOptionError", option });
  }
  expect(await readdir(folder)).toEqual(["judge.jsonl"]);
});
