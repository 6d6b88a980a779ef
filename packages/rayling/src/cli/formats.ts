/** How an answer is printed: a table for people, JSON or YAML for programs. */
import { styled } from "./table.ts";

export const formats = ["table", "json", "yaml"] as const;

export type Format = (typeof formats)[number];

/** @param lines make the table */
export async function print(
  value: object,
  format: Format,
  lines: () => readonly string[],
): Promise<void> {
  process.stdout.write(await textOf(value, format, lines));
}

async function textOf(
  value: object,
  format: Format,
  lines: () => readonly string[],
): Promise<string> {
  if (format === "table") return `${lines().join("\n")}\n`;
  const json = JSON.stringify(value, null, 2);
  if (format === "json") return `${json}\n`;
  const { stringify } = await import("yaml");
  // What JSON leaves out is left out here, too.
  return stringify(JSON.parse(json));
}

/** Tells on stderr which hosts an answer is without. */
export function tellMissing(missing: readonly string[]): void {
  if (missing.length === 0) return;
  process.stderr.write(
    `rayling: ${missing.length} of the hosts did not answer in time, and what only they know is missing: ${missing.join(", ")}\n`,
  );
}

export function heading(text: string): string {
  return styled("bold", text);
}
