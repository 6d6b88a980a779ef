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

/**
 * Returns the message of an error. An AggregateError of Node, which stands for a name none of whose
 * addresses could be reached, has none, and gets those of its members.
 */
export function reasonOf(thrown: unknown): string {
  const { message } = asError(thrown);
  if (message !== "" || !(thrown instanceof AggregateError)) return message;
  return [...new Set(thrown.errors.map(reasonOf))].join("; ");
}
