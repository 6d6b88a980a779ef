/** Which answers are of one prompt: the name of a sample's group, by its row. */

import { hash } from "node:crypto";
import { missing, valueAt } from "@rayling/reward-loop/rows";
import type { Row } from "@rayling/reward-loop/rows";

/** verl's column, and what the reward log takes for it. */
const groupKeys = ["uid", "extra_info.group_uid", "extra_info.uid"];

/** By texts of 96 bits no two prompts of a file meet. */
const DIGEST_LENGTH = 16;

/**
 * Reads it at the key that is given, else at the first of `uid` and its like that is a text or a
 * number; else it is that of the prompt. Undefined where nothing says it.
 *
 * @param prompt of the row, where it has one
 *
 * @param bad makes the error of a reason
 */
export function groupNameOf(
  row: Row,
  { groupKey }: { readonly groupKey?: string | undefined },
  prompt: unknown,
  bad: (reason: string) => Error,
): string | undefined {
  if (groupKey !== undefined) {
    const value = valueAt(row, groupKey);
    if (value === undefined) throw bad(missing(row, "group", [groupKey], "--group-key"));
    const name = nameIn(value);
    if (name === undefined) throw bad(`"${groupKey}" is neither a text nor a number`);
    return name;
  }
  for (const key of groupKeys) {
    const name = nameIn(valueAt(row, key));
    if (name !== undefined) return name;
  }
  if (prompt === undefined || prompt === "") return undefined;
  return hash("sha256", textOf(prompt), "base64url").slice(0, DIGEST_LENGTH);
}

/** Returns a prompt as JSON. That has no bigint: one of a row is written unlike any text. */
function textOf(prompt: unknown): string {
  return JSON.stringify(prompt, (_, part: unknown) =>
    typeof part === "bigint" ? { bigint: String(part) } : part,
  );
}

function nameIn(value: unknown): string | undefined {
  if (typeof value === "string" && value !== "") return value;
  return typeof value === "number" || typeof value === "bigint" ? String(value) : undefined;
}
