/** A folder for the files of one run, gone after the test; outcomes and samples to put into it. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { SampleOutcome } from "@rayling/reward-loop";
import type { SampleRecord, TrackingOptions } from "@rayling/trainer";

export async function runFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "rayling-run-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export function optionsIn(directory: string, more: Partial<TrackingOptions> = {}): TrackingOptions {
  return {
    projectName: "maths",
    experimentName: "grpo",
    directory,
    totalSteps: 4,
    logValGenerations: 2,
    ...more,
  };
}

export function valid(latencyMs: number, more: Partial<SampleOutcome> = {}): SampleOutcome {
  const outcome = {
    valid: true,
    rewardScore: 1,
    rewardExtraInfo: {},
    latencyMs,
    waitedMs: 0,
    attempts: 1,
  };
  return { ...outcome, ...more } as SampleOutcome;
}

export function invalid(message: string, more: Partial<SampleOutcome> = {}): SampleOutcome {
  const error = { code: "SCORE_THREW", name: "Error", message } as const;
  const outcome = { valid: false, error, latencyMs: 5, waitedMs: 0, attempts: 1 };
  return { ...outcome, ...more } as SampleOutcome;
}

/** Generated one after the other, each a millisecond after the one before; scored after its latency; used at 10,000. */
export function samplesOf(outcomes: readonly SampleOutcome[], startMs = 1000): SampleRecord[] {
  return outcomes.map((outcome, index) => ({
    id: `${startMs}-${index}`,
    generatedMs: startMs + index,
    scoredMs: startMs + index + outcome.waitedMs + outcome.latencyMs,
    usedMs: startMs + 10_000,
    outcome,
  }));
}
