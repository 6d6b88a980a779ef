/**
 * Output of a table for people and editors: a file of its defaults with comments, a page, a JSON
 * Schema.
 */

import { Document, isMap, isScalar, type Scalar } from "yaml";
import { defaultOf, defaultsOf, entriesOf, type Name, type OptionTable, same } from "./table.ts";
import type { ConfigValue } from "../tree.ts";
import { yamlWriting } from "../yaml.ts";
import { type JsonSchema, schemaOf, wordsOf } from "./describe-values.ts";

export interface OptionEntry {
  /** The key with dots, by its name in files. */
  readonly key: string;
  /** The allowed values, in words. */
  readonly type: string;
  /** The default; a text with ${} is the value of that key. */
  readonly default: ConfigValue;
  readonly help: string;
}

/** Returns the entries for people, in words. */
export function optionsOf(table: OptionTable, name: Name = same, prefix = ""): OptionEntry[] {
  return entriesOf(table, name, prefix).map(([key, entry]) => ({
    key,
    type: wordsOf(schemaOf(entry)),
    default: defaultOf(entry) ?? null,
    help: entry.description ?? "",
  }));
}

/** Returns a file with all defaults, each below its help. */
export function optionsFile(table: OptionTable, title: string, name: Name = same): string {
  const document = new Document(defaultsOf(table, name), {
    ...yamlWriting,
    aliasDuplicateObjects: false,
  });
  for (const { key, help } of optionsOf(table, name)) {
    if (help === "") continue;
    const path = key.split(".");
    const holder = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1));
    if (!isMap(holder)) continue;
    const found = holder.items.map((one) => one.key).find((one) => isKey(one, path.at(-1)));
    if (found !== undefined) found.commentBefore = wrapped(help, 100);
  }
  document.commentBefore = wrapped(title, 100);
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

function isKey(node: unknown, name: string | undefined): node is Scalar {
  return isScalar(node) && node.value === name;
}

/** Returns a page with all entries: a table for each section. */
export function optionsPage(entries: readonly OptionEntry[]): string {
  const sections = Map.groupBy(entries, ({ key }) => key.split(".").slice(0, -1).join("."));
  return [...sections]
    .map(([section, inside]) => {
      const rows = inside.map(({ key, type, default: value, help }) => {
        const cells = [`\`${key}\``, type, `\`${valueText(value)}\``, help];
        return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
      });
      return [
        `## ${section}`,
        "",
        "| Key | Allowed values | Default | Meaning |",
        "|---|---|---|---|",
        ...rows,
      ].join("\n");
    })
    .join("\n\n");
}

/** Returns a JSON Schema for editors: keys by their names in files, all optional. */
export function optionsSchema(
  table: OptionTable,
  name: Name = same,
): Readonly<Record<string, unknown>> {
  const renamed = (schema: JsonSchema): JsonSchema => {
    const { required: _required, properties, additionalProperties, ...rest } = schema;
    if (properties === undefined) return withReferences(schema);
    return {
      ...rest,
      properties: Object.fromEntries(
        Object.entries(properties).map(([key, inside]) => [name(key), renamed(inside)]),
      ),
      ...(additionalProperties === undefined ? {} : { additionalProperties }),
    };
  };
  return renamed(schemaOf(table));
}

/** Allows a reference in place of each value of a file. */
function withReferences(schema: JsonSchema): JsonSchema {
  const { description, default: value, ...type } = schema;
  if (type.type === "string" && type["enum"] === undefined) return schema;
  return { description, default: value, anyOf: [type, { type: "string", pattern: "\\$\\{" }] };
}

function valueText(value: ConfigValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Wraps a text as comments, at that number of characters. */
function wrapped(text: string, width: number): string {
  const lines: string[] = [];
  for (const paragraph of text.split("\n")) {
    let line = "";
    for (const word of paragraph.split(" ")) {
      if (line !== "" && line.length + word.length + 1 > width) {
        lines.push(` ${line}`);
        line = word;
      } else line = line === "" ? word : `${line} ${word}`;
    }
    lines.push(` ${line}`);
  }
  return lines.join("\n");
}
