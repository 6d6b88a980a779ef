/** Warnings of the process: the one way in which packages warn. A terminal finds nothing to obey in them. */
import { terminalText } from "./terminal-text.ts";

/** As `process.emitWarning` with the type RaylingWarning; an error keeps its class and its fields. */
export function warn(warning: string | Error, code?: string): void {
  if (typeof warning === "string") {
    const options = { type: "RaylingWarning", ...(code === undefined ? {} : { code }) };
    process.emitWarning(terminalText(warning), options);
  } else {
    process.emitWarning(shownSafely(warning));
  }
}

/** The error itself, unless it has something to obey: then one that says it in another way. */
function shownSafely(error: Error): Error {
  const { message, stack = "" } = error;
  const safe = { message: terminalText(message), stack: terminalText(stack) };
  if (safe.message === message && safe.stack === stack) return error;
  return Object.create(error, {
    message: { value: safe.message },
    stack: { value: safe.stack },
  }) as Error;
}
