/** The options of a call to an actor, and of a method for all of its calls, with their checks. */
import {
  type Checks,
  count,
  flag,
  nameText,
  returnCount,
  type RetryPolicy,
  retryPolicy,
} from "../shared/options.ts";

/** Per-call options, stronger than those of the method and of the actor. */
export interface CallOptions {
  /** The call's own name in errors, states and the runtime context. */
  readonly name?: string | undefined;
  /** How often this call is tried again when the actor's host dies; -1 without limit. */
  readonly maxTaskRetries?: number | undefined;
  /** Try again when the method throws: always, or for these error classes (or names of them). */
  readonly retryExceptions?: RetryPolicy | undefined;
  /**
   * How many values the method returns. For 0 `.remote()` gives nothing; for n of 2 and more the
   * method returns a list of n and `.remote()` gives a list of n refs. "streaming": the method
   * returns an iterable, and `.remote()` gives an ObjectRefGenerator of its items, which is the
   * default for generator methods.
   */
  readonly numReturns?: number | "streaming" | undefined;
  /** Run it among the calls of that group of the actor's `concurrencyGroups`. */
  readonly concurrencyGroup?: string | undefined;
  /**
   * A streaming method pauses while this many of its items are not taken. Default: it does not
   * pause.
   */
  readonly generatorBackpressureNumObjects?: number | undefined;
  /**
   * A streaming method runs on to its end when nobody takes its items any more. Default: it ends
   * then.
   */
  readonly detached?: boolean | undefined;
}

/** Options of a method for all of its calls; the options of a call override them. */
export type CallOptionsOfMethod = Omit<CallOptions, "name">;

export const methodChecks: Checks<CallOptionsOfMethod> = {
  maxTaskRetries: count(-1),
  retryExceptions: retryPolicy,
  numReturns: returnCount,
  concurrencyGroup: nameText,
  generatorBackpressureNumObjects: count(1),
  detached: flag,
};

export const callChecks: Checks<CallOptions> = { name: nameText, ...methodChecks };
