/**
 * The one function through which the packages warn. Its warnings contain nothing that a terminal
 * obeys.
 */
import { terminalText } from "./terminal-text.ts";

/**
 * Calls `process.emitWarning` with the type RaylingWarning; an error keeps its class and its
 * fields.
 */
export function warn(warning: string | Error, code?: string): void {
  if (typeof warning === "string") {
    const options = { type: "RaylingWarning", ...(code === undefined ? {} : { code }) };
    process.emitWarning(terminalText(warning), options);
  } else {
    process.emitWarning(shownSafely(warning));
  }
}

/**
 * Returns the error itself, or a copy with safe text when a terminal would obey something in it.
 */
function shownSafely(error: Error): Error {
  const { message, stack = "" } = error;
  const safe = { message: terminalText(message), stack: terminalText(stack) };
  if (safe.message === message && safe.stack === stack) return error;
  return Object.create(error, {
    message: { value: safe.message },
    stack: { value: safe.stack },
  }) as Error;
}
