/** Ends of a command that are explained in one line. */
import { messageOf } from "@rayling/reward-manager-registry/values";

/**
 * An end of the command with a one-line message. `exitCode` is one of exit-codes.ts.
 */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly code = "CLI";
  readonly exitCode: number;

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/**
 * Returns CliError 2 with the message of an error of one of these classes, and any other error as
 * it is.
 *
 * @param flag the flag to blame
 */
export function refusalOf(
  error: unknown,
  classes: readonly (abstract new (...args: never[]) => Error)[],
  flag?: string,
): unknown {
  if (!classes.some((one) => error instanceof one)) return error;
  return new CliError(2, `${flag === undefined ? "" : `${flag}: `}${messageOf(error)}`, {
    cause: error,
  });
}

/**
 * Returns the first of the errors in a SuppressedError, which `await using` makes where closing
 * fails, too: its own message says nothing. Any other error is returned as it is.
 */
export function firstErrorOf(error: unknown): unknown {
  // By its name: Nodes before 24 have no such class.
  const isOne = error instanceof Error && error.name === "SuppressedError";
  return isOne && "suppressed" in error ? firstErrorOf(error.suppressed) : error;
}

/**
 * Earlier scores that `--resume` would continue differ in meaning from new ones: another function
 * made them, or the same one with other settings.
 */
export class StaleRewardsError extends Error {
  override readonly name = "StaleRewardsError";
  readonly code = "STALE_REWARDS";
  /** The path of the log. */
  readonly path: string;
  /** The number of stale scores. */
  readonly stale: number;
  /** The names of the changed parts; empty if the log does not say what they were. */
  readonly changed: readonly string[];

  constructor(path: string, stale: number, scores: number, changed: readonly string[]) {
    const what = changed.length === 0 ? "" : ` (changed: ${changed.join(", ")})`;
    super(
      `${stale} of the ${scores} scores in ${path} are of another version of the reward functions${what}: ` +
        "--rescore-stale scores these again, --keep-stale keeps them beside the new ones; or give another --out",
    );
    this.path = path;
    this.stale = stale;
    this.changed = changed;
  }
}
