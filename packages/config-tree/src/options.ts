/**
 * Tables of options: one entry says what may stand at a key, its default and what it means. A table is a zod object, so that its type and its checks are zod's; the tree of defaults, a file with comments, a page
 * and a JSON Schema come from it, too.
 */

import { Document, type Pair, type Scalar } from "yaml";
import { z } from "zod";
import { type ConfigTree, type ConfigValue, withValue } from "./tree.ts";

/** A table, or a section of one. */
export type OptionTable = z.ZodObject;

/** As it is read, nobody changes it. */
export type Frozen<Value> = Value extends readonly (infer Item)[]
  ? number extends Value["length"]
    ? readonly Frozen<Item>[]
    : { readonly [Key in keyof Value]: Frozen<Value[Key]> }
  : Value extends object
    ? { readonly [Key in keyof Value]: Frozen<Value[Key]> }
    : Value;

export interface OptionEntry {
  /** With dots, by the name that it has in files. */
  readonly key: string;
  /** What may stand there, in words. */
  readonly type: string;
  /** A text with ${} is what that key says. */
  readonly default: ConfigValue;
  readonly help: string;
}

/**
 * An entry.
 *
 * @param value its default, as a file has it: also a reference, `${data.seed}`
 * @param help what it means, for people; "" where its name says all, or the comment above it
 */
export function option<Type extends z.ZodType>(
  type: Type,
  value: ConfigValue,
  help = "",
): z.ZodPrefault<Type> {
  // A reference is no value of the type: it has been resolved before anything is checked.
  return type.prefault(value as never).meta({ default: value, description: help });
}

/** Keys of a section; what is missing of it has its default. */
export function nested<Shape extends z.ZodRawShape>(
  shape: Shape,
): z.ZodPrefault<z.ZodObject<Shape, z.core.$strict>> {
  return z.strictObject(shape).prefault({} as never);
}

/** What a table makes of keys. Throws zod's error for what may not stand there. */
export function read<Type extends z.ZodType>(table: Type, keys: unknown): z.output<Type> {
  return table.parse(keys);
}

/** How a key of the table is called in files. */
type Name = (key: string) => string;
const same: Name = (key) => key;

/** All entries by their keys, in their order. Two tables that are made of the same entry have it by two keys. */
export function entriesOf(
  table: OptionTable,
  name: Name = same,
  prefix = "",
): [string, z.ZodType][] {
  return Object.entries(table.shape).flatMap(([own, entry]): [string, z.ZodType][] => {
    const key = prefix + name(own);
    const inside = sectionOf(entry as z.ZodType);
    return inside === undefined ? [[key, entry as z.ZodType]] : entriesOf(inside, name, `${key}.`);
  });
}

/** What is to be read of them, in words. */
export function optionsOf(table: OptionTable, name: Name = same, prefix = ""): OptionEntry[] {
  return entriesOf(table, name, prefix).map(([key, entry]) => ({
    key,
    type: typeOf(entry),
    default: defaultOf(entry) ?? null,
    help: entry.description ?? "",
  }));
}

/** The tree of all defaults, by the names that files have. */
export function defaultsOf(table: OptionTable, name: Name = same): ConfigTree {
  return entriesOf(table, name).reduce<ConfigTree>(
    (tree, [key, entry]) => withValue(tree, key.split("."), defaultOf(entry) ?? null),
    {},
  );
}

/** A file with all defaults, and above each what it means. */
export function optionsFile(table: OptionTable, title: string, name: Name = same): string {
  const document = new Document(defaultsOf(table, name), { aliasDuplicateObjects: false });
  for (const { key, help } of optionsOf(table, name)) {
    if (help === "") continue;
    const path = key.split(".");
    const holder = document.getIn(path.slice(0, -1)) as
      | { readonly items: Pair<Scalar>[] }
      | undefined;
    const root = document.contents as unknown as { readonly items: Pair<Scalar>[] };
    const pair = (path.length === 1 ? root : holder)?.items.find(
      (one) => one.key.value === path.at(-1),
    );
    if (pair !== undefined) pair.key.commentBefore = wrapped(help, 100);
  }
  document.commentBefore = wrapped(title, 100);
  return document.toString({ lineWidth: 0, flowCollectionPadding: false });
}

/** A page with all entries: a table for each section. */
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
        "| Key | What may stand there | Default | What it means |",
        "|---|---|---|---|",
        ...rows,
      ].join("\n");
    })
    .join("\n\n");
}

/** For editors: keys by the names that files have, none of them needed. */
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
  return renamed(z.toJSONSchema(table, { io: "input", unrepresentable: "any" }) as JsonSchema);
}

/** In a file a reference may stand wherever a value may. */
function withReferences(schema: JsonSchema): JsonSchema {
  const { description, default: value, ...type } = schema;
  if (type.type === "string" && type["enum"] === undefined) return schema;
  return { description, default: value, anyOf: [type, { type: "string", pattern: "\\$\\{" }] };
}

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly [key: string]: unknown;
}

/** What stands inside of it, if it is a section and no value. */
export function sectionOf(type: z.ZodType): OptionTable | undefined {
  if (type.meta()?.["default"] !== undefined) return undefined;
  if (type instanceof z.ZodObject) return type;
  const { innerType } = type.def as { readonly innerType?: z.ZodType };
  const mayLack = type instanceof z.ZodPrefault || type instanceof z.ZodOptional;
  return mayLack && innerType !== undefined ? sectionOf(innerType) : undefined;
}

/** As a file has it; undefined for a type that is no entry. */
export function defaultOf(type: z.ZodType): ConfigValue | undefined {
  return type.meta()?.["default"] as ConfigValue | undefined;
}

function valueText(value: ConfigValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** What may stand there, in words: "a whole number of at least 1, or null". */
export function typeOf(type: z.ZodType): string {
  return wordsOf(z.toJSONSchema(type, { io: "input", unrepresentable: "any" }) as JsonSchema);
}

function wordsOf(schema: JsonSchema): string {
  const { anyOf, enum: values, const: only, type, items, prefixItems } = schema;
  if (Array.isArray(type)) {
    return (type as string[]).map((one) => wordsOf({ ...schema, type: one })).join(", or ");
  }
  if (Array.isArray(anyOf)) return (anyOf as JsonSchema[]).map(wordsOf).join(", or ");
  if (Array.isArray(values)) return values.map(String).join(", ");
  if (only !== undefined) return JSON.stringify(only);
  if (type === "array") {
    if (Array.isArray(prefixItems))
      return `[${(prefixItems as JsonSchema[]).map(wordsOf).join("; ")}]`;
    return `a list of: ${wordsOf((items ?? {}) as JsonSchema)}`;
  }
  return [kindOf(type), rangeOf(schema)].filter((part) => part !== "").join(" ");
}

function kindOf(type: unknown): string {
  switch (type) {
    case "integer":
      return "a whole number";
    case "number":
      return "a number";
    case "string":
      return "a text";
    case "boolean":
      return "true or false";
    case "object":
      return "keys";
    case "null":
      return "null";
    default:
      return "anything";
  }
}

function rangeOf(schema: JsonSchema): string {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema as Readonly<
    Record<string, number | undefined>
  >;
  const limits: readonly (readonly [string, number | undefined])[] = [
    ["of at least", minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum],
    ["above", exclusiveMinimum],
    ["of at most", maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum],
    ["below", exclusiveMaximum],
  ];
  return limits
    .filter(([, limit]) => limit !== undefined)
    .map(([words, limit]) => `${words} ${limit}`)
    .join(" and ");
}

/** As comments: one line of so many characters after the other. */
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
