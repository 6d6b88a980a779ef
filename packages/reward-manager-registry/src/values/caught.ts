/** Facts of a caught value, which may be anything. */

import { fieldOf } from "./records.ts";

/**
 * Returns the message of an error, and the text of any other value. An AggregateError of Node,
 * which stands for a name none of whose addresses could be reached, has none, and gets those of its
 * members.
 */
export function messageOf(error: unknown): string {
  const message = fieldOf(error, "message");
  if (message === "" && error instanceof AggregateError) {
    return [...new Set(error.errors.map(messageOf))].join("; ");
  }
  return typeof message === "string" ? message : String(error);
}

/** Returns the code of an error, such as "ENOENT", if it has one. */
export function codeOf(error: unknown): string | undefined {
  const code = fieldOf(error, "code");
  return typeof code === "string" ? code : undefined;
}
