/**
 * The command line as a process: command-line.ts has its function. The process ends by itself when
 * nothing is left to do, and, after a signal, when it has reported that.
 */

import { runCommandLine } from "./command-line.ts";

/** The time, in ms, that a process has to end by itself after a signal. */
const LINGER_MS = 500;

/** A reader like `head` may leave; that is no error. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

const exitCode = await runCommandLine(process.argv.slice(2));
if (exitCode !== 0) process.exitCode = exitCode;
const signal = exitCode === 130 ? "SIGINT" : exitCode === 143 ? "SIGTERM" : undefined;
if (signal !== undefined) setTimeout(endBy, LINGER_MS, signal).unref();

/**
 * Ends the process as the signal does: a hanging read (a pipe without a writer) cannot be
 * cancelled, and `process.exit` would wait for it.
 */
function endBy(name: NodeJS.Signals): void {
  process.removeAllListeners(name);
  process.kill(process.pid, name);
}
