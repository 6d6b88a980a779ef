/**
 * Counts what a judge was asked and what that used, on its scores and on its errors: a call that
 * fails is paid for, too.
 */

import { partOf } from "../faults/error-tree.ts";
import type { TokenUsage } from "../outcome.ts";
import { together, usageOf } from "../spend/usage.ts";

export interface JudgeCount {
  readonly usage: TokenUsage | undefined;
  /** How often it was asked. */
  readonly asked: number;
  /** Undefined: it has no prices. */
  readonly cost?: number | undefined;
}

export function sumOf(counts: readonly JudgeCount[]): JudgeCount {
  const costs = counts.flatMap(({ cost }) => cost ?? []);
  return {
    usage: counts.reduce<TokenUsage | undefined>((sum, one) => together(sum, one.usage), undefined),
    asked: counts.reduce((sum, { asked }) => sum + asked, 0),
    ...(costs.length === 0 ? {} : { cost: costs.reduce((sum, cost) => sum + cost, 0) }),
  };
}

/** Returns what an error says of itself. A client's knows of one question. */
export function countIn(error: unknown): JudgeCount {
  const asked = partOf(error, "asked");
  const cost = partOf(error, "cost");
  return {
    usage: usageOf({ usage: partOf(error, "usage") }),
    asked: typeof asked === "number" ? asked : 1,
    ...(typeof cost === "number" ? { cost } : {}),
  };
}

/**
 * Returns the error with the count as its own. The reason of a signal belongs to all that have that
 * signal: another error of its name, with it as cause, takes its place where something was used.
 */
export function withCount(
  error: unknown,
  count: JudgeCount,
  signal: AbortSignal | undefined,
): unknown {
  if (!(error instanceof Error)) return error;
  // One that is counted already has taken such a place.
  const isCounted = Object.hasOwn(error, "asked");
  const isShared = (error instanceof DOMException || error === signal?.reason) && !isCounted;
  if (isShared && count.usage === undefined) return error;
  const counted = isShared
    ? new DOMException(error.message, { name: error.name, cause: error })
    : error;
  try {
    for (const [name, value] of Object.entries(count)) {
      if (value === undefined) continue;
      Object.defineProperty(counted, name, { value, configurable: true, enumerable: true });
    }
  } catch {
    // A frozen error says less.
  }
  return counted;
}
