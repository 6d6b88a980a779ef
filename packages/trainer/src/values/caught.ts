/** Facts of a caught value, which may be anything. */

import { isRecord } from "./records.ts";

/** Returns the message of an error, and the text of any other value. */
export function messageOf(error: unknown): string {
  return isRecord(error) && typeof error["message"] === "string" ? error["message"] : String(error);
}

/** Returns the code of an error, such as "ENOENT", if it has one. */
export function codeOf(error: unknown): string | undefined {
  return isRecord(error) && typeof error["code"] === "string" ? error["code"] : undefined;
}
