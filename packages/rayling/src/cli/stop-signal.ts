/** Ctrl-C and SIGTERM as an AbortSignal: the first asks the run to stop in order, the second ends the process at once. */

import { CliError } from "./cli-error.ts";

export interface StopSignal {
  /** Its reason is the CliError to end with. */
  readonly signal: AbortSignal;
  close(): void;
}

/** 128 and the signal's number, as shells count. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143 } as const;

export function stopSignal(): StopSignal {
  const controller = new AbortController();
  const onSignal = (name: NodeJS.Signals): void => {
    const exitCode = name === "SIGTERM" ? EXIT_CODES.SIGTERM : EXIT_CODES.SIGINT;
    if (controller.signal.aborted) process.exit(exitCode);
    controller.abort(new CliError(exitCode, name === "SIGTERM" ? "terminated" : "stopped"));
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  return {
    signal: controller.signal,
    close: () => {
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
    },
  };
}
