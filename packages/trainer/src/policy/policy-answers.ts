/**
 * How policies and critics are waited for: without a word for as long as they may take, and not for
 * ever.
 */

import * as ray from "@rayling/core";
import type { ObjectRef, ObjectRefGenerator } from "@rayling/core";
import { TrainerStateError } from "../errors.ts";

export interface PolicyTimeout {
  /** For one answer; of a stream, for each part of it. */
  readonly policyTimeoutMs: number;
}

/**
 * @param what is asked, for the error: "the policy, for an update"
 *
 * Rejects with TrainerStateError: POLICY_TIMEOUT, and with what it failed with.
 */
export async function answerOf<Value>(
  what: string,
  ref: ObjectRef<Value>,
  { policyTimeoutMs }: PolicyTimeout,
): Promise<Value> {
  try {
    return await ray.get(ref, { timeoutMs: policyTimeoutMs, stuckWarningMs: 0 });
  } catch (error) {
    // The policy may have given up a call of its own: then that is its failure.
    if (!(error instanceof ray.GetTimeoutError) || error instanceof ray.TaskError) throw error;
    throw tooLate(what, policyTimeoutMs);
  }
}

/** The parts of a streamed answer. Rejects as answerOf does. */
export async function* partsOf<Value>(
  what: string,
  parts: ObjectRefGenerator<Value>,
  { policyTimeoutMs }: PolicyTimeout,
): AsyncGenerator<Value> {
  try {
    for (;;) {
      const { ready } = await ray.wait([parts], { timeoutMs: policyTimeoutMs, stuckWarningMs: 0 });
      if (ready.length === 0) throw tooLate(what, policyTimeoutMs);
      const next = await parts.next();
      if (next.done === true) return;
      yield await answerOf(what, next.value, { policyTimeoutMs });
    }
  } finally {
    await parts.return();
  }
}

function tooLate(what: string, policyTimeoutMs: number): TrainerStateError {
  const problem = `has not answered within ${policyTimeoutMs / 1000} s (run.policyTimeoutMs)`;
  return new TrainerStateError("POLICY_TIMEOUT", `${what} ${problem}`);
}
