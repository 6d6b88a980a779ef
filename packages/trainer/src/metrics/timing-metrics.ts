/** Times and throughput of a step (verl `compute_timing_metrics`, `compute_throughout_metrics`). */

import { TrainerInputError } from "../errors.ts";
import { sumOf } from "../values/sums.ts";

/** Seconds by the name of what they were spent on. */
export type Timings = Readonly<Record<string, number>>;

/** Tokens of a step, for times per token. */
export interface TokenCounts {
  /** Tokens of all prompts. */
  readonly promptTokens: number;
  /** Tokens of all responses. */
  readonly responseTokens: number;
}

/**
 * Timers that also get a time per token of prompts and responses; gen gets one per token of
 * responses.
 */
const ofAllTokens = ["ref", "values", "adv", "update_critic", "update_actor"];

/** `timing_s/*` and `timing_per_token_ms/*`; without tokens, 0 per token. */
export function timingMetrics(
  timings: Timings,
  { promptTokens, responseTokens }: TokenCounts,
): Record<string, number> {
  const metrics: Record<string, number> = {};
  for (const [name, seconds] of Object.entries(timings)) {
    metrics[`timing_s/${name}`] = seconds;
    if (name !== "gen" && !ofAllTokens.includes(name)) continue;
    const tokens = name === "gen" ? responseTokens : promptTokens + responseTokens;
    metrics[`timing_per_token_ms/${name}`] = tokens > 0 ? (seconds * 1000) / tokens : 0;
  }
  return metrics;
}

/**
 * `perf/*`.
 *
 * @param globalTokenNum tokens of each row. Throws TrainerInputError without a time for the step.
 */
export function throughputMetrics(
  globalTokenNum: readonly number[],
  timings: Timings,
  gpus: number,
): Record<string, number> {
  const { step } = timings;
  if (step === undefined || !(step > 0) || !(gpus > 0)) {
    throw new TrainerInputError(
      "timings",
      `a throughput needs a step of more than 0 s on at least one GPU; it took ${step ?? "no time"} on ${gpus}`,
    );
  }
  const tokens = sumOf(globalTokenNum);
  return {
    "perf/total_num_tokens": tokens,
    "perf/time_per_step": step,
    "perf/throughput": tokens / (step * gpus),
  };
}
