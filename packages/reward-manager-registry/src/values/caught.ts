/** Facts of a caught value, which may be anything. */

import { fieldOf } from "./records.ts";

/** Returns the code of an error, such as "ENOENT", if it has one. */
export function codeOf(error: unknown): string | undefined {
  const code = fieldOf(error, "code");
  return typeof code === "string" ? code : undefined;
}
