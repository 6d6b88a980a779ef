/** Whatever a score function gives, by chance: each sample has one outcome, no valid score is lost or changed, and the reward log gives back what JSON can carry. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { readRewardLog, RewardLoopManager, sampleKey } from "@rayling/reward-loop";
import type { SampleOutcome } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, expect, test } from "vitest";
import { oddOutput } from "./fixtures/odd-outputs.ts";
import { closeLoops, fixture, loopOf, sampleOf } from "./loop.ts";
import { sized } from "../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(async () => {
  await closeLoops();
  await ray.shutdown();
});

const seeds = Array.from({ length: sized({ gate: 300, full: 1000 }) }, (_, seed) => seed);

test.each(["one", "list"] as const)("odd scores and infos by their hundreds: %s", async (name) => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-odd-"));
  try {
    const record = join(folder, "rewards.jsonl");
    const outcomes: SampleOutcome[] = [];
    const options = { workers: sized({ gate: 1, full: 2 }), executors: 2, record };
    {
      const reward = `${fixture("odd-outputs.ts")}:${name}`;
      await using loop = await RewardLoopManager.create({ ...options, reward });
      for await (const { index, outcome } of loop.scoreStream(seeds.map(String).map(sampleOf))) {
        expect(outcomes[index], `seed ${index} has one outcome`).toBeUndefined();
        outcomes[index] = outcome;
      }
    }
    for (const seed of seeds) {
      const { score, wanted } = oddOutput(seed);
      const outcome = outcomes[seed] as SampleOutcome;
      if (wanted === "valid") {
        expect(outcome, `seed ${seed}`).toMatchObject({ valid: true, rewardScore: score });
      } else {
        expect(outcome.valid, `seed ${seed}`).toBe(false);
        if (!outcome.valid) expect(outcome.error.code, `seed ${seed}`).toBe(wanted);
      }
    }
    const lines = new Map<number, unknown>();
    for await (const line of readRewardLog(record)) {
      expect(lines.has(line.index), `line of seed ${line.index}`).toBe(false);
      lines.set(line.index, line);
    }
    expect(lines.size).toBe(seeds.length);
    for (const seed of seeds) {
      const { score, wanted, plainInfo } = oddOutput(seed);
      const isValid = wanted === "valid";
      expect(lines.get(seed), `seed ${seed}`).toMatchObject({
        valid: isValid,
        score: isValid ? score : null,
        ...(isValid && plainInfo !== undefined ? { extra: plainInfo } : {}),
      });
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a promise that ends twice gives its first score, and costs nobody else's", async () => {
  const kinds = ["twice", "plain", "throws", "plain", "both"];
  const texts = Array.from({ length: 200 }, (_, at) => `${kinds[at % kinds.length]}:${at}`);
  const loop = await loopOf({ reward: `${fixture("own-promises.ts")}:computeScore` });
  const seen = new Map<number, SampleOutcome>();
  for await (const { index, outcome } of loop.scoreStream(texts.map(sampleOf))) {
    expect(seen.has(index)).toBe(false);
    seen.set(index, outcome);
  }
  expect(seen.size).toBe(texts.length);
  for (const [index, outcome] of seen) {
    expect(outcome).toMatchObject({ valid: true, rewardScore: index });
  }
});

test("what is no sample is invalid by itself, also where a sample throws when it is read", async () => {
  const loop = await loopOf({ reward: `${fixture("own-promises.ts")}:computeScore` });
  const throwing = {
    ...sampleOf("plain:1"),
    get extraInfo(): never {
      throw new RangeError("not to be read");
    },
  };
  const given = [sampleOf("plain:7"), null, undefined, 5, "abc", ["a"], throwing];
  const ends = await Promise.allSettled(
    [...given, sampleOf("plain:8")].map((one) => loop.computeScore(one as never)),
  );
  const told = ends.map((end) => {
    if (end.status === "rejected") return String(end.reason);
    return end.value.valid ? end.value.rewardScore : end.value.error.message;
  });
  const type = "A sample's type must be that of an object; it is";
  const wanted = ["null", "undefined", "number", "string", "a list"].map(
    (one) => `${type} ${one}.`,
  );
  expect(told).toEqual([7, ...wanted, expect.stringContaining("not to be read"), 8]);
  expect(await loop.computeScore(sampleOf("plain:9"))).toMatchObject({ rewardScore: 9 });
});

test("fields of a sample's owner stay with the owner: each has the score of its text", async () => {
  const reward = `${fixture("own-promises.ts")}:computeScore`;
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward,
    joinSame: true,
  });
  class Row {
    readonly dataSource = "test";
    readonly groundTruth = "";
    readonly response = "plain:6";
    readonly members = ["of a class"];
  }
  const owned = [
    { members: ["ann", "bob"] },
    { members: [] },
    { onDone: () => 1, done: Promise.resolve(1) },
    { id: 7, kind: "group", slot: 1, sample: { response: "plain:9" } },
  ].map((more, at) => ({ ...sampleOf(`plain:${at}`), ...more }));
  const unread = {
    ...sampleOf("plain:5"),
    members: ["ann", "bob"],
    get extraInfo(): never {
      throw new RangeError("not to be read");
    },
  };
  const given: RewardSample[] = [...owned, new Row(), unread];
  const outcomes = await Promise.all(given.map((sample) => loop.computeScore(sample)));
  const scores = outcomes.map((one) => (one.valid ? one.rewardScore : one.error.code));
  expect(scores).toEqual([0, 1, 2, 3, 6, "INVALID_SAMPLE"]);
  expect(owned.map(sampleKey)).toEqual(owned.map((_, at) => sampleKey(sampleOf(`plain:${at}`))));
});
