/**
 * The command line as a process: command-line.ts says what it does. The process ends by itself when nothing is left to do, and after a signal when it has told so.
 */

import { runCommandLine } from "./command-line.ts";

/** How long a process that a signal has stopped may take to end by itself. */
const LINGER_MS = 500;

/** Where a reader like `head` has gone away there is nobody to complain to. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

const exitCode = await runCommandLine(process.argv.slice(2));
if (exitCode !== 0) process.exitCode = exitCode;
const signal = exitCode === 130 ? "SIGINT" : exitCode === 143 ? "SIGTERM" : undefined;
if (signal !== undefined) setTimeout(endBy, LINGER_MS, signal).unref();

/** As the signal does it: a read that hangs (a pipe that nobody writes to) cannot be called off, and `process.exit` waits for it, too. */
function endBy(name: NodeJS.Signals): void {
  process.removeAllListeners(name);
  process.kill(process.pid, name);
}
