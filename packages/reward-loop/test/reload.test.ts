/** A reward module that is changed while the loop runs, and loaded anew: what is under way finishes on the old one, and every score says whose it is. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BroadcastChannel } from "node:worker_threads";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { sampleOf } from "./loop.ts";
import { sized } from "../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-reload-"));
  onTestFinished(() => rm(folder, { recursive: true }));
});

/** Scores with `value`; of the text "hold" only when it is told to. */
async function written(value: number, name = "reward.mjs"): Promise<string> {
  const path = join(folder, name);
  await writeFile(
    path,
    `const channel = new BroadcastChannel("rayling reload ${name}");
    const told = new Promise((resolve) => {
      channel.onmessage = ({ data }) => data === "go on" && resolve();
    });
    export class Reward {
      async computeScore({ solutionStr }) {
        if (solutionStr === "hold") {
          channel.postMessage("held");
          await told;
        }
        if (solutionStr === "exit") process.exit(1);
        return ${value};
      }
      postProcessScores(scores) {
        return scores.map((score) => score + 10 * ${value});
      }
    }
    export const computeScore = (input) => new Reward().computeScore(input);`,
  );
  return path;
}

const create = (options: RewardLoopOptions): Promise<RewardLoopManager> =>
  RewardLoopManager.create({ workers: 1, executors: 1, ...options });

const scoreOf = (outcome: SampleOutcome): unknown =>
  outcome.valid ? outcome.rewardScore : outcome.error;

const actorNames = async (): Promise<string[]> =>
  (await ray.listNamedActors()).map(({ name }) => name);

test("an executor that ends while the module is half written is replaced when that is mended, and the others go on meanwhile", async () => {
  const reward = await written(1);
  await using loop = await create({ reward, executors: 2 });
  await writeFile(reward, "export const computeScore = (");
  const texts = (count: number, name: string): string[] =>
    Array.from({ length: count }, (_, index) => `${name} ${index}`);
  const [ended, ...others] = await Promise.all(
    ["exit", ...texts(60, "a")].map((text) => loop.computeScore(sampleOf(text))),
  );
  expect(ended).toMatchObject({ error: { code: "EXECUTOR_DIED" } });
  expect(new Set(others.map(scoreOf))).toEqual(new Set([1]));
  await written(2);
  await expect
    .poll(
      async () => {
        const later = await Promise.all(
          texts(20, "b").map((text) => loop.computeScore(sampleOf(text))),
        );
        return later.map(scoreOf).includes(2);
      },
      { timeout: 60_000 },
    )
    .toBe(true);
});

test("what is under way finishes on the old one, what comes then is scored by the new one", async () => {
  const reward = await written(1);
  await using loop = await create({ reward, workers: 2, name: "reloaded" });
  const before = loop.version;
  using channel = disposable(new BroadcastChannel("rayling reload reward.mjs"));
  const isHeld = new Promise((resolve) => channel.channel.addEventListener("message", resolve));
  const held = loop.computeScore(sampleOf("hold"));
  await isHeld;
  await written(2);
  const after = await loop.reload();
  expect(after).not.toBe(before);
  expect(loop.version).toBe(after);
  expect(await loop.computeScore(sampleOf("x"))).toMatchObject({ rewardScore: 2, version: after });
  const names = await actorNames();
  expect(loop.workerNames).toEqual(["reloaded_0_r1", "reloaded_1_r1"]);
  expect(names).toEqual(expect.arrayContaining(loop.workerNames));
  channel.channel.postMessage("go on");
  expect(await held).toMatchObject({ rewardScore: 1, version: before, attempts: 1 });
  // The old ones end then, with their executors.
  await expect
    .poll(async () => (await actorNames()).every((name) => name.includes("_r1")), {
      timeout: 60_000,
    })
    .toBe(true);
});

test("a module that does not load leaves all as it was, and says why", async () => {
  const reward = await written(1);
  await using loop = await create({ reward });
  const before = loop.version;
  const names = await actorNames();
  await writeFile(reward, "export const computeScore = (");
  await expect(loop.reload()).rejects.toMatchObject({ code: "REWARD_MODULE_IMPORT", path: reward });
  await rm(reward);
  await expect(loop.reload()).rejects.toMatchObject({ code: "REWARD_MODULE_NOT_FOUND" });
  await writeFile(reward, "process.exit(1)");
  await expect(loop.reload()).rejects.toMatchObject({ code: "EXECUTOR_START" });
  expect(loop.version).toBe(before);
  expect(await loop.computeScore(sampleOf("x"))).toMatchObject({ rewardScore: 1, version: before });
  expect((await actorNames()).toSorted()).toEqual(names.toSorted());
  await written(3);
  await loop.reload();
  expect(scoreOf(await loop.computeScore(sampleOf("x")))).toBe(3);
});

test("in the middle of a stream no sample is lost, and each score is that of its version", async () => {
  const reward = await written(1);
  const workers = sized({ gate: 1, full: 2 });
  await using loop = await create({ reward, workers, concurrency: 4 });
  const versions = new Map([[loop.version, 1]]);
  const count = sized({ gate: 400, full: 800 });
  const seen = new Set<number>();
  const reloads: Promise<void>[] = [];
  for await (const { index, outcome } of loop.scoreStream(
    Array.from({ length: count }, (_, n) => sampleOf(`text ${n}`)),
  )) {
    expect(seen.has(index)).toBe(false);
    seen.add(index);
    if (!outcome.valid) throw new Error(outcome.error.message);
    expect(versions.get(outcome.version ?? "")).toBe(outcome.rewardScore);
    if (seen.size % 200 !== 0 || seen.size === count) continue;
    const value = 1 + seen.size / 200;
    await written(value);
    const done = loop.reload().then((version) => void versions.set(version, value));
    reloads.push(done);
    // One that is not awaited is beside the samples; the file must not change under it.
    await done;
  }
  await Promise.all(reloads);
  expect(seen.size).toBe(count);
  expect([...versions.values()]).toEqual([1, 2, 3, 4].slice(0, count / 200));
});

test("an executor that is replaced after the module was changed says what it has loaded", async () => {
  const reward = await written(1);
  const cache = join(folder, "scores.sqlite");
  await using loop = await create({ reward, cache });
  const before = loop.version;
  await written(2);
  expect(await loop.computeScore(sampleOf("x"))).toMatchObject({ rewardScore: 1, version: before });
  expect(await loop.computeScore(sampleOf("exit"))).toMatchObject({
    valid: false,
    version: before,
  });
  const other = await loop.computeScore(sampleOf("y"));
  expect(other).toMatchObject({ rewardScore: 2 });
  expect(other.version).not.toBe(before);
  expect(loop.version).toBe(before);
  expect(await loop.reload()).toBe(other.version);
  // It was kept as what it is.
  expect(await loop.computeScore(sampleOf("y"))).toMatchObject({ rewardScore: 2, cached: true });
  expect(await loop.computeScore(sampleOf("x"))).toMatchObject({ rewardScore: 2, attempts: 1 });
});

test("reloads that are asked for at once come one after the other", async () => {
  const reward = await written(1);
  await using loop = await create({ reward });
  await written(2);
  const [first, second] = await Promise.all([loop.reload(), loop.reload()]);
  expect(first).toBe(second);
  expect(loop.workerNames).toHaveLength(1);
  await expect.poll(async () => (await actorNames()).length, { timeout: 60_000 }).toBe(2);
});

test("of several rewards all are loaded anew, or none", async () => {
  const [one, other] = [await written(1, "one.mjs"), await written(10, "other.mjs")];
  await using loop = await create({ rewards: { one: { reward: one }, other: { reward: other } } });
  const before = loop.version;
  await written(2, "one.mjs");
  await writeFile(other, "throw new Error('not today')");
  await expect(loop.reload()).rejects.toThrow("not today");
  expect(loop.version).toBe(before);
  expect(scoreOf(await loop.computeScore(sampleOf("x")))).toBe(11);
  await written(20, "other.mjs");
  expect(await loop.reload()).not.toBe(before);
  expect(scoreOf(await loop.computeScore(sampleOf("x")))).toBe(22);
});

test("what is known of the old one is not told of the new one, and groups are put right by the new one", async () => {
  const reward = await written(1);
  const cache = join(folder, "scores.sqlite");
  await using loop = await create({ reward: `${reward}:Reward`, cache });
  expect(scoreOf(await loop.computeScore(sampleOf("x")))).toBe(1);
  expect(await loop.postProcessScores([1])).toMatchObject({ scores: [11] });
  await written(2);
  await loop.reload();
  expect(await loop.computeScore(sampleOf("x"))).toMatchObject({ rewardScore: 2, attempts: 1 });
  expect(await loop.postProcessScores([1])).toMatchObject({ scores: [21] });
  await written(1);
  await loop.reload();
  // It was this one before.
  expect(await loop.computeScore(sampleOf("x"))).toMatchObject({ rewardScore: 1, cached: true });
});

test("a loop that is closed over it leaves nothing", async () => {
  const reward = await written(1);
  const loop = await create({ reward });
  const reloading = loop.reload();
  reloading.catch(() => undefined);
  await loop.close();
  await expect(reloading).rejects.toMatchObject({ code: "REWARD_LOOP_CLOSED" });
  await expect(loop.reload()).rejects.toMatchObject({ code: "REWARD_LOOP_CLOSED" });
  expect(await actorNames()).toEqual([]);
});

function disposable(
  channel: BroadcastChannel,
): Disposable & { readonly channel: BroadcastChannel } {
  return { channel, [Symbol.dispose]: () => channel.close() };
}
