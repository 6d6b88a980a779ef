/**
 * Ctrl-C, SIGTERM and the end of the terminal (SIGHUP) as an AbortSignal: the first asks the run to
 * stop in order, the second ends the process at once.
 */

import { CliError } from "./cli-error.ts";
import { exitCodes } from "./exit-codes.ts";

export interface StopSignal {
  /** Its reason is the CliError to end with. */
  readonly signal: AbortSignal;
  /** Returns the signal again, `ms` later: when work under way has had its time to finish. */
  after(ms: number): AbortSignal;
  /** Returns the outcome of `work`, unless a stop comes first. */
  race<Value>(work: Promise<Value>): Promise<Value>;
  /** Resolves when a stop comes. */
  whenStopped(): Promise<void>;
  close(): void;
}

const ends = {
  SIGINT: { exitCode: exitCodes.interrupted, word: "stopped" },
  SIGTERM: { exitCode: exitCodes.terminated, word: "terminated" },
  SIGHUP: { exitCode: exitCodes.hungUp, word: "hung up" },
} as const;
const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export function stopSignal(): StopSignal {
  const controller = new AbortController();
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const timers = new Set<NodeJS.Timeout>();
  const onSignal = (name: NodeJS.Signals): void => {
    const { exitCode, word } = name === "SIGTERM" || name === "SIGHUP" ? ends[name] : ends.SIGINT;
    if (controller.signal.aborted) process.exit(exitCode);
    const stop = new CliError(exitCode, word);
    controller.abort(stop);
    reject(stop);
  };
  for (const name of names) process.on(name, onSignal);
  // Without a race the rejection has no other handler.
  stopped.catch(() => undefined);
  return {
    signal: controller.signal,
    after: (ms) => {
      const late = new AbortController();
      const { signal } = controller;
      const begin = (): void => {
        timers.add(setTimeout(() => late.abort(signal.reason), ms));
      };
      if (signal.aborted) begin();
      else signal.addEventListener("abort", begin, { once: true });
      return late.signal;
    },
    whenStopped: () => stopped.catch(() => undefined),
    race: (work) => Promise.race([work, stopped]),
    close: () => {
      for (const timer of timers) clearTimeout(timer);
      for (const name of names) process.off(name, onSignal);
    },
  };
}
