/** A run as the trainer would tell it: steps that overlap, rewards of which some fail, a validation every five steps. Its numbers are made by rules, so that a page can be held against them. */

import { Tracking, type LoggerName } from "@rayling/trainer";
import { invalid, optionsIn, samplesOf, valid } from "./run-folder.ts";

export interface Recorded {
  readonly steps: number;
  readonly perStep: number;
}

const startMs = Date.parse("2026-03-01T12:00:00Z");

export async function recordRun(
  directory: string,
  logger: readonly LoggerName[],
  { steps, perStep }: Recorded,
): Promise<void> {
  await using tracking = await Tracking.open(optionsIn(directory, { logger, totalSteps: steps }));
  for (let step = 1; step <= steps; step += 1) {
    const atMs = startMs + 10_000 * step;
    const phase = (name: string, fromS: number, toS: number): void =>
      tracking.phase({ step, name, startMs: atMs + 1000 * fromS, endMs: atMs + 1000 * toS });
    phase("gen", -3, 0);
    phase("adv", 1, 9.5);
    phase("update_actor", 6, 9);
    const outcomes = Array.from({ length: perStep }, (_, index) =>
      index % 50 === 49
        ? invalid("<b>judge</b> is down", { latencyMs: 8000, attempts: 3, cost: 0.001 })
        : valid(500 + 40 * (index % 100), { waitedMs: 20 * index, cost: 0.001 }),
    );
    tracking.samples(
      step,
      samplesOf(outcomes, atMs - 3000).map((sample) => ({ ...sample, usedMs: atMs + 6000 })),
    );
    tracking.log(metricsOf(step, steps), step);
    const answers = [
      { input: "1 + 1 =", output: `<i>${step}</i>`, score: 0.5 },
      { input: "2 + 2 =", output: "4", score: Number.NaN },
    ];
    if (step % 5 === 0) tracking.generations(step, answers);
  }
}

function metricsOf(step: number, steps: number): Record<string, number> {
  const share = step / steps;
  return {
    "critic/score/mean": share,
    "actor/pg_loss": -0.1 * share,
    "actor/ppo_kl": 0.001 * share,
    "actor/entropy": 2 - share,
    "actor/lr": 1e-6,
    "timing_s/step": 10,
    "reward/exposed_wait_s": 2 + share,
    "reward/latency_p50_s": 2.5,
    "reward/latency_p95_s": 4.4,
    "reward/latency_p99_s": 8,
    "reward/invalid_rate": 0.02,
    "reward/cost": 0.1,
    overlap_ratio: 0.75 * share,
    ...(step % 5 === 0 ? { "val-core/openai/gsm8k/acc/mean@1": 0.2 + 0.5 * share } : {}),
  };
}
