/** Facts of a caught value, which may be anything. */

import { fieldOf } from "./records.ts";

/** Returns the message of an error, and the text of any other value. */
export function messageOf(error: unknown): string {
  const message = fieldOf(error, "message");
  return typeof message === "string" ? message : String(error);
}

/** Returns the code of an error, such as "ENOENT", if it has one. */
export function codeOf(error: unknown): string | undefined {
  const code = fieldOf(error, "code");
  return typeof code === "string" ? code : undefined;
}
