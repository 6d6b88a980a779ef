/** What the tests of running loops share: fixtures by name, and a run whose outcomes are checked to be complete. */

import { fileURLToPath } from "node:url";
import { inspect } from "node:util";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome, ScoredSample } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { expect, vi } from "vitest";

// Threads start slowly on a busy machine; what matters here is that every wait ends by itself.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

export function fixture(name: string): string {
  return fileURLToPath(new URL(`./fixtures/${name}`, import.meta.url));
}

export function sampleOf(response: string): RewardSample {
  return { dataSource: "test", response, groundTruth: "" };
}

/** 0, 1, 2, … with some places taken by other texts. */
export function numbers(count: number, others: Readonly<Record<number, string>> = {}): string[] {
  return Array.from({ length: count }, (_, index) => others[index] ?? String(index));
}

/** By their options. */
const kept = new Map<string, Promise<RewardLoopManager>>();

/** One loop for all cases of a file that want these options, and to which a fresh one is no matter; `closeLoops` ends it. */
export function loopOf(options: RewardLoopOptions): Promise<RewardLoopManager> {
  const key = inspect(options, { depth: null, maxArrayLength: null, maxStringLength: null });
  const loop = kept.get(key) ?? RewardLoopManager.create({ workers: 1, executors: 1, ...options });
  kept.set(key, loop);
  return loop;
}

/** To be called when all cases of the file are over. */
export async function closeLoops(): Promise<void> {
  await Promise.allSettled([...kept.values()].map(async (loop) => (await loop).close()));
  kept.clear();
}

/** Scores the texts and gives the outcomes in order; fails unless there is exactly one for each. */
export async function scoreTexts(
  options: RewardLoopOptions,
  texts: readonly string[],
  onOutcome: (one: ScoredSample, loop: RewardLoopManager) => Promise<void> | void = () => undefined,
): Promise<SampleOutcome[]> {
  await using loop = await RewardLoopManager.create({ workers: 1, executors: 1, ...options });
  const outcomes: SampleOutcome[] = [];
  let count = 0;
  for await (const one of loop.scoreStream(texts.map(sampleOf))) {
    expect(outcomes[one.index], `sample ${one.index} has one outcome`).toBeUndefined();
    expect(one.sample.response).toBe(texts[one.index]);
    outcomes[one.index] = one.outcome;
    count += 1;
    await onOutcome(one, loop);
  }
  expect(count).toBe(texts.length);
  return outcomes;
}

/**
 * The same with a deadline that somebody misses. A deadline is wall time: on a machine that holds up a thread for longer a sample that does nothing misses it, too. Where one of
 * those did, all are scored again with ten times as long, and in the end with so long that only a defect makes it late.
 */
export async function scoreByDeadline(
  optionsOf: (timeoutMs: number) => RewardLoopOptions,
  texts: readonly string[],
): Promise<{ readonly outcomes: SampleOutcome[]; readonly timeoutMs: number }> {
  for (let timeoutMs = 200; ; timeoutMs *= 10) {
    const outcomes = await scoreTexts({ ...optionsOf(timeoutMs), timeoutMs }, texts);
    const isLate = outcomes.some(
      (one, index) =>
        texts[index] === String(index) && !one.valid && one.error.code === "SCORE_TIMEOUT",
    );
    if (!isLate || timeoutMs >= 20_000) return { outcomes, timeoutMs };
  }
}

/** Exactly these samples are invalid, with these codes; every other has its own number as score. */
export function expectOnlyInvalid(
  outcomes: readonly SampleOutcome[],
  codes: Readonly<Record<number, string>>,
): void {
  const invalid = [...outcomes.entries()].flatMap(([index, one]) =>
    one.valid ? [] : [[index, one.error.code] as const],
  );
  expect(Object.fromEntries(invalid)).toEqual(codes);
  for (const [index, one] of outcomes.entries()) {
    if (one.valid) expect(one.rewardScore).toBe(index);
  }
}

export function failureAt(
  outcomes: readonly SampleOutcome[],
  index: number,
): Extract<SampleOutcome, { valid: false }>["error"] {
  const outcome = outcomes[index];
  if (outcome === undefined || outcome.valid) throw new Error(`sample ${index} is not invalid`);
  return outcome.error;
}
