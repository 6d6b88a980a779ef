/** Asks whether a call may be paid for, and reports the usage of the call when it is over. */

import { classOf } from "../faults/failure-class.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { Use } from "../spend/cost-budget.ts";
import { lastUsageOf } from "../spend/usage.ts";
import type { SignalOfCall } from "../faults/call-signal.ts";
import type { SpendRequests } from "./spend-requests.ts";

export interface CallSpending {
  /** Resolves to whether it may begin; rejects with the signal's reason. */
  readonly mayBegin: () => Promise<boolean>;
  /**
   * Called when its executor ended: it may have used something, and begins anew when this resolves.
   * Rejects with `isUnpaid` where it is not allowed.
   */
  readonly again: () => Promise<void>;
  readonly ended: (outcome: SampleOutcome) => void;
}

/** A sample that pays for its calls. */
interface Payer {
  /** Undefined: nobody is asked. */
  readonly id: number | undefined;
  readonly measured: { unknownUse?: number };
}

/**
 * Returns the spending of one call, including the calls that replace it when its executor ends.
 * Undefined: nobody is asked.
 */
export function spendingOf(
  spending: Pick<SpendRequests, "mayBegin" | "ended"> | undefined,
  { id, measured }: Payer,
  signal: SignalOfCall | undefined,
): CallSpending | undefined {
  if (spending === undefined || id === undefined) return undefined;
  let underWay = 0;
  const mayBegin = async (): Promise<boolean> => {
    const asked = spending.mayBegin(id);
    const isAllowed = await unlessAborted(asked, signal).catch((error: unknown) => {
      // A late permission is given back.
      void asked.then((isLate) => isLate && spending.ended(id, nothingUsed));
      throw error;
    });
    if (!isAllowed) return false;
    underWay += 1;
    measured.unknownUse = (measured.unknownUse ?? 0) + 1;
    return true;
  };
  return {
    mayBegin,
    again: async () => {
      spending.ended(id, { attempts: 1, usage: undefined, unknown: 1 });
      underWay -= 1;
      if (!(await mayBegin())) throw isUnpaid;
    },
    ended: (outcome) => {
      if (underWay === 0) return;
      underWay -= 1;
      const attempts = Math.min(1, outcome.attempts);
      const usage = lastUsageOf(outcome);
      const isUnknown = attempts > 0 && usage === undefined && mayHaveUsed(outcome);
      if (!isUnknown) measured.unknownUse = (measured.unknownUse ?? 0) - 1;
      spending.ended(id, { attempts, usage, unknown: isUnknown ? 1 : 0 });
    },
  };
}

const nothingUsed: Use = { attempts: 0, usage: undefined, unknown: 0 };

/** `again` rejects with this error where the call may not begin again. */
export const isUnpaid = new Error("all that may be spent is spent");

/** The outcome of a call that was not allowed; it is not an attempt. */
export const unpaid: SampleOutcome = {
  valid: false,
  error: {
    code: "SPEND_CAP",
    name: "SpendCapError",
    message: "it was not asked: what is left may not be enough to pay for it",
  },
  latencyMs: 0,
  attempts: 0,
  waitedMs: 0,
};

/** Codes of connections that were never made. */
const unreached = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/;

/**
 * Whether an attempt with unknown usage may have used something: not if its endpoint refused it, or
 * was not reached.
 */
function mayHaveUsed(outcome: SampleOutcome): boolean {
  if (outcome.valid) return true;
  const { code, status = 0, errorCode = "" } = outcome.error;
  const isCalled = code === "SCORE_THREW" || classOf(outcome.error) !== "data";
  return isCalled && status < 400 && !unreached.test(errorCode);
}

function unlessAborted<Value>(
  promise: Promise<Value>,
  signal: SignalOfCall | undefined,
): Promise<Value> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.finally(() => signal.removeEventListener("abort", abort)).then(resolve, reject);
  });
}
