/** An end of the command that is told in one line. `exitCode` is one of exit-codes.ts. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly code = "CLI";
  readonly exitCode: number;

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/** Scores of before that `--resume` would go on with mean something else than those to come: another function gave them, or the same with other settings. */
export class StaleRewardsError extends Error {
  override readonly name = "StaleRewardsError";
  readonly code = "STALE_REWARDS";
  /** Of the log. */
  readonly path: string;
  /** How many of its scores. */
  readonly stale: number;
  /** What is another now, by its name; empty where the log does not say what it was. */
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
