/** The report of a call to the limiter of its endpoint. */

import { classOf, isUselessAnswer } from "../faults/failure-class.ts";
import type { AnnouncedLimits } from "@rayling/reward-manager-registry/values";
import { maxRetryAfterMs } from "../faults/retry-policy.ts";
import type { LimitReport } from "../limits/limiter.ts";
import type { SampleOutcome } from "../outcome.ts";
import { lastUsageOf } from "../spend/usage.ts";

/** The report of a call without a known end. */
export const isCutOff: LimitReport = { outcome: "unknown", isCut: true };

/**
 * Returns the report to the endpoint's limiter. @param isGivenUp the call was ended here: the
 * function's error is not the endpoint's answer, unless it has a status
 */
export function reportOf(
  outcome: SampleOutcome,
  isGivenUp: boolean,
  mostMs: number = maxRetryAfterMs,
): LimitReport {
  if (outcome.valid) {
    const tokens = lastUsageOf(outcome)?.totalTokens;
    return { outcome: "ok", ...(tokens === undefined ? {} : { tokens }) };
  }
  const { code, status, blocked, retryAfterMs } = outcome.error;
  const pause = retryAfterMs === undefined ? {} : { retryAfterMs: Math.min(retryAfterMs, mostMs) };
  const failure = classOf(outcome.error);
  const tokens = lastUsageOf(outcome)?.totalTokens;
  // A request that is refused uses nothing, but requests of its call before it may have.
  if (failure === "rate-limit") return { outcome: "refused", tokens: tokens ?? 0, ...pause };
  const isUnanswered = isGivenUp && status === undefined;
  const isCut =
    isUnanswered || failure === "timeout" || blocked === true || code === "EXECUTOR_DIED";
  const isItsFault = !isUnanswered && (failure === "infrastructure" || failure === "timeout");
  const used = tokens === undefined ? {} : { tokens };
  const failed = isUselessAnswer(outcome.error) ? "malformed" : "failed";
  const other = status === undefined ? "unknown" : "answered";
  return { outcome: isItsFault ? failed : other, isCut, ...used, ...pause };
}

/**
 * Adds the limits that the endpoint announced in a successful answer; a refusal's are in the report
 * already. No announcement lasts longer than a sample would wait.
 */
export function withAnnounced(
  report: LimitReport,
  announced: AnnouncedLimits | undefined,
  mostMs: number = maxRetryAfterMs,
): LimitReport {
  if (announced === undefined) return report;
  const { requests, tokens, retryAfterMs = 0 } = announced;
  const atMost = <Said extends { readonly resetMs: number }>(said: Said): Said => ({
    ...said,
    resetMs: Math.min(said.resetMs, mostMs),
  });
  const pauseMs = report.retryAfterMs ?? Math.min(retryAfterMs, mostMs);
  return {
    ...report,
    ...(pauseMs > 0 ? { retryAfterMs: pauseMs } : {}),
    announced: {
      ...(requests === undefined ? {} : { requests: atMost(requests) }),
      ...(tokens === undefined ? {} : { tokens: atMost(tokens) }),
    },
  };
}
