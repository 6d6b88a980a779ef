/** An end of the command that is told in one line. `exitCode` 2: the input was wrong; 1: the run failed; 130 and 143: a signal stopped it. */
export class CliError extends Error {
  override readonly name = "CliError";
  readonly code = "CLI";
  readonly exitCode: number;

  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}
