/**
 * Spans of one sample, where the user provides OpenTelemetry: one in the caller's thread, from its
 * submission to its outcome, and one for each run of its function in an executor. Samples travel
 * many at a time, so that the context of a span travels in the context of its sample.
 */

import * as ray from "@rayling/core";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { isRecord, messageOf } from "@rayling/reward-manager-registry/values";
import type { SampleOutcome } from "../outcome.ts";

/** A sample with its span, until it has an outcome. */
export interface TracedSample {
  readonly sample: RewardSample;
  readonly ended: (outcome: SampleOutcome) => void;
  readonly failed: (error: unknown) => void;
}

/** Begins the span of a sample; undefined without OpenTelemetry. */
export function tracedSample(sample: RewardSample, lane: string): TracedSample | undefined {
  const tracing = ray.currentTracing();
  if (tracing === undefined || !isRecord(sample)) return undefined;
  const { api, tracer } = tracing;
  const attributes = {
    "rayling.reward.lane": lane,
    "rayling.reward.data_source": sample.dataSource,
  };
  const parent = api.context.active();
  const span = tracer.startSpan("reward", { attributes }, parent);
  const trace: Record<string, string> = {};
  api.propagation.inject(api.trace.setSpan(parent, span), trace);
  const failed = (name: string, message: string): void => {
    span.setAttribute("error.type", name);
    span.setStatus({ code: 2, message });
    span.end();
  };
  return {
    sample: { ...sample, context: { lane, ...sample.context, trace } },
    ended: (outcome) => {
      span.setAttribute("rayling.reward.attempts", outcome.attempts);
      if (outcome.cost !== undefined) span.setAttribute("rayling.reward.cost", outcome.cost);
      if (!outcome.valid) return failed(outcome.error.code, outcome.error.message);
      span.setAttribute("rayling.reward.score", outcome.rewardScore);
      span.end();
    },
    failed: (error) => failed("rejected", messageOf(error)),
  };
}

/** Whether a span came with the sample. */
export function isTraced(sample: RewardSample | undefined): boolean {
  return isRecord(sample) && sample.context?.trace !== undefined;
}

/** Runs a sample's function within a span, if one came with the sample. */
export function runTraced<Result>(
  sample: RewardSample | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  const trace = isRecord(sample) ? sample.context?.trace : undefined;
  const tracing = trace === undefined ? undefined : ray.currentTracing();
  if (trace === undefined || tracing === undefined) return work();
  const { api, tracer } = tracing;
  const parent = api.propagation.extract(api.context.active(), trace);
  const span = tracer.startSpan("score", {}, parent);
  const ran = api.context.with(api.trace.setSpan(parent, span), work);
  ran.then(
    () => span.end(),
    (error: unknown) => {
      span.setStatus({ code: 2, message: messageOf(error) });
      span.end();
    },
  );
  return ran;
}
