/**
 * Prints an answer: a table for people, JSON or YAML for programs.
 */
import { hasObeyed, terminalJson } from "@rayling/core/terminal";
import { jsonText, plain, sayData, sayStyled, tell } from "./output.ts";
import { styled } from "./table.ts";

export const formats = ["table", "json", "yaml"] as const;

export type Format = (typeof formats)[number];

/** @param lines makes the table */
export async function print(
  value: object,
  format: Format,
  lines: () => readonly string[],
): Promise<void> {
  if (format === "table") sayStyled(`${lines().join("\n")}\n`);
  else await sayData(format === "json" ? `${jsonText(value, 2)}\n` : await yamlText(value));
}

/**
 * Leaves out the same members as JSON. Text that a terminal would obey is double-quoted, so that it
 * can be escaped.
 */
async function yamlText(value: object): Promise<string> {
  const { Document, visit } = await import("yaml");
  const document = new Document(JSON.parse(JSON.stringify(value)));
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === "string" && hasObeyed(node.value)) node.type = "QUOTE_DOUBLE";
    },
  });
  return terminalJson(document.toString());
}

/** Reports on stderr the hosts whose answers are missing. */
export function tellMissing(missing: readonly string[]): void {
  if (missing.length === 0) return;
  tell(
    `rayling: ${missing.length} of the hosts did not answer in time, so their part is missing: ${plain(missing.join(", "))}\n`,
  );
}

export function heading(text: string): string {
  return styled("bold", text);
}
