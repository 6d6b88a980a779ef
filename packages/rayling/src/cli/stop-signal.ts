/**
 * Ctrl-C and SIGTERM as an AbortSignal: the first asks the run to stop in order, the second ends
 * the process at once.
 */

import { CliError } from "./cli-error.ts";
import { exitCodes } from "./exit-codes.ts";

export interface StopSignal {
  /** Its reason is the CliError to end with. */
  readonly signal: AbortSignal;
  /** Returns the outcome of `work`, unless a stop comes first. */
  race<Value>(work: Promise<Value>): Promise<Value>;
  close(): void;
}

export function stopSignal(): StopSignal {
  const controller = new AbortController();
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const onSignal = (name: NodeJS.Signals): void => {
    const exitCode = name === "SIGTERM" ? exitCodes.terminated : exitCodes.interrupted;
    if (controller.signal.aborted) process.exit(exitCode);
    const stop = new CliError(exitCode, name === "SIGTERM" ? "terminated" : "stopped");
    controller.abort(stop);
    reject(stop);
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  // Without a race the rejection has no other handler.
  stopped.catch(() => undefined);
  return {
    signal: controller.signal,
    race: (work) => Promise.race([work, stopped]),
    close: () => {
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
    },
  };
}
