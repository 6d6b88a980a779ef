/**
 * The command line as a process: command-line.ts has its function. The process ends by itself when
 * nothing is left to do, and, after a signal, when it has reported that.
 */

import { runCommandLine } from "./command-line.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Silence } from "./output/silence/silence.ts";
import { plain, tell } from "./output/output.ts";
import { provideOtherMachines } from "../other-machines.ts";

/** The time, in ms, that a process has to end by itself after a signal. */
const LINGER_MS = 500;

/**
 * A reader like `head` may leave, and a terminal may be gone; the run goes on. What stdout does not
 * take for another reason (a full disk) is a failure.
 */
let lost: NodeJS.ErrnoException | undefined;
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") lost ??= error;
});
// Nobody can be told.
process.stderr.on("error", () => undefined);
process.once("exit", () => {
  if (lost === undefined || (process.exitCode ?? exitCodes.done) !== exitCodes.done) return;
  process.exitCode = exitCodes.failed;
  tell(`rayling: standard output: ${plain(lost.message)}\n`);
});

/** @param silence says what goes on while a command loads */
export async function runProcess(silence: Silence): Promise<void> {
  provideOtherMachines();
  const exitCode = await runCommandLine(process.argv.slice(2), { silence });
  if (exitCode !== 0) process.exitCode = exitCode;
  const signal = signalOf(exitCode);
  if (signal !== undefined) setTimeout(endBy, LINGER_MS, signal).unref();
}

function signalOf(code: number): NodeJS.Signals | undefined {
  if (code === exitCodes.interrupted) return "SIGINT";
  if (code === exitCodes.hungUp) return "SIGHUP";
  return code === exitCodes.terminated ? "SIGTERM" : undefined;
}

/**
 * Ends the process as the signal does: a hanging read (a pipe without a writer) cannot be
 * cancelled, and `process.exit` would wait for it.
 */
function endBy(name: NodeJS.Signals): void {
  process.removeAllListeners(name);
  process.kill(process.pid, name);
}
