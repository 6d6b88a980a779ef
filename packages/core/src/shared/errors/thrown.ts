/** Reads what was thrown, which may be anything. */
import { types } from "node:util";

/** Returns the thrown error, or an error that shows the thrown value. */
export function asError(thrown: unknown): Error {
  if (thrown instanceof Error || types.isNativeError(thrown)) return thrown;
  return new Error(String(thrown));
}

/** Returns the code of an error of Node or of the system, such as "ENOENT". */
export function codeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return undefined;
  return typeof thrown.code === "string" ? thrown.code : undefined;
}
