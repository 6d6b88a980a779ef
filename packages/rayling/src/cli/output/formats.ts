/**
 * Prints an answer: text for people, JSON or YAML for programs.
 */
import { Option } from "commander";
import type { Command } from "commander";
import { hasObeyed, terminalJson } from "@rayling/core/terminal";
import { dataOutput, jsonText, plain, sayData, sayStyled, tell } from "./output.ts";
import { styled } from "./table.ts";

export const formats = ["table", "json", "yaml"] as const;

export type Format = (typeof formats)[number];

export interface FormatFlag {
  readonly format: Format;
}

/** Adds the flag that every command has whose answer is not a text for another program. */
export function addFormatFlag(command: Command): Command {
  return command.addOption(
    new Option("--format <format>", "how the answer is printed").choices(formats).default("table"),
  );
}

/** @param lines makes the table */
export async function print(
  value: object,
  format: Format,
  lines: () => readonly string[],
): Promise<void> {
  if (format === "table") sayStyled(`${lines().join("\n")}\n`);
  else await sayData(await textIn(format, value));
}

/** The answer of a command during which others write to stdout, too. */
export interface Answer {
  print(value: object, lines: () => readonly string[]): Promise<void>;
  /** Prints it as `printPart` does. */
  printPart(value: object, lines: () => readonly string[]): Promise<void>;
  /** Gives stdout back to other writers. */
  close(): void;
}

/** For programs stdout has nothing but the answer: other output goes to stderr until the end. */
export function openAnswer(format: Format): Answer {
  if (format === "table") {
    return {
      print: (value, lines) => print(value, format, lines),
      printPart: (value, lines) => print(value, format, lines),
      close: () => undefined,
    };
  }
  const output = dataOutput();
  const write = (text: string): Promise<void> =>
    new Promise((resolve) => output.stream.write(text, () => resolve()));
  return {
    print: async (value) => write(await textIn(format, value)),
    printPart: async (value) => write(await partIn(format, value)),
    close: () => output.close(),
  };
}

/**
 * Prints the answer of a command that goes on: a line as JSON, a document as YAML. Programs read it
 * before the end.
 */
export async function printPart(
  value: object,
  format: Format,
  lines: () => readonly string[],
): Promise<void> {
  if (format === "table") await print(value, format, lines);
  else await sayData(await partIn(format, value));
}

function textIn(format: Exclude<Format, "table">, value: object): Promise<string> | string {
  return format === "json" ? `${jsonText(value, 2)}\n` : yamlText(value);
}

async function partIn(format: Exclude<Format, "table">, value: object): Promise<string> {
  return format === "json" ? `${jsonText(value)}\n` : `---\n${await yamlText(value)}`;
}

/**
 * Leaves out the same members as JSON. Readers of YAML 1.1 (PyYAML) see the same values. Text that
 * a terminal would obey is double-quoted, so that it can be escaped.
 */
async function yamlText(value: object): Promise<string> {
  const { Document, visit } = await import("yaml");
  const document = new Document(JSON.parse(JSON.stringify(value)), { compat: "yaml-1.1" });
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
