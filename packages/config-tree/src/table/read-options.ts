/**
 * Reads the keys of a table of options, or reports the first invalid one.
 */

import type { z } from "zod";
import { ConfigError } from "../config-error.ts";
import { nearestOf } from "../nearest.ts";
import { defaultsOf, type Name, same, sectionOf } from "./table.ts";
import { isTree, keysOf, valueAt } from "../tree.ts";
import { type JsonSchema, schemaOf, wordsOf } from "./describe-values.ts";

export interface ReadRules {
  /** Returns the name of a table's key in files. Default: the same name. */
  readonly name?: Name;
  /** The prefix of all keys: `reward.`. Default: none. */
  readonly prefix?: string;
  /** Keys to suggest for a misspelt one. Default: the table's. */
  readonly known?: readonly string[];
}

/**
 * @param table a table, or another type. Throws ConfigError, which names the key, its value and the
 * nearest known key.
 */
export function readOptions<Table extends z.ZodType>(
  table: Table,
  keys: unknown,
  { name = same, prefix = "", known }: ReadRules = {},
): z.output<Table> {
  const result = table.safeParse(keys);
  if (result.success) return result.data;
  const issue = innermostOf(result.error.issues[0] as Issue);
  const isUnknown = issue.code === "unrecognized_keys";
  const path = [...issue.path.map(String), ...(isUnknown ? issue.keys.slice(0, 1) : [])];
  const key = prefix + path.map(name).join(".");
  const value = isTree(keys) ? valueAt(keys, path) : undefined;
  if (isUnknown) {
    const section = sectionOf(table);
    const own = section === undefined ? [] : keysOf(defaultsOf(section, name));
    const all = known ?? own.map((one) => prefix + one);
    throw new ConfigError(key, "there is no such key", value, nearestOf(key, all));
  }
  if (issue.code === "invalid_key") {
    const problem = issue.issues[0]?.message ?? "cannot be the name of a key";
    throw new ConfigError(key, `is no name that may stand there: ${problem}`, value);
  }
  const schema = schemaAt(schemaOf(table), path);
  const nearest = typeof value === "string" ? nearestOf(value, textsOf(schema)) : undefined;
  const words = `${schema["enum"] === undefined ? "" : "one of "}${wordsOf(schema)}`;
  const wanted = issue.code === "custom" ? issue.message : `must be ${words}`;
  const problem = value === "" && issue.code === "too_small" ? "must not be empty" : wanted;
  throw new ConfigError(key, `is ${textOf(value)}: ${problem}`, value, nearest);
}

type Issue = z.core.$ZodIssue;

/** Returns the issue of the most similar alternative of a union: the one that got furthest. */
function innermostOf(issue: Issue): Issue {
  if (issue.code !== "invalid_union") return issue;
  const inside = issue.errors.flatMap(([first]) => (first === undefined ? [] : [first]));
  const [furthest] = inside.map(innermostOf).toSorted((a, b) => b.path.length - a.path.length);
  if (furthest === undefined || furthest.path.length === 0) return issue;
  return { ...furthest, path: [...issue.path, ...furthest.path] };
}

/** Returns the schema at a path. */
function schemaAt(schema: JsonSchema, [key, ...rest]: readonly string[]): JsonSchema {
  if (key === undefined) return schema;
  const inside = [schema, ...alternativesOf(schema)]
    .map(({ properties, prefixItems, items }) => {
      return properties?.[key] ?? prefixItems?.[Number(key)] ?? items;
    })
    .find((one) => one !== undefined);
  return inside === undefined ? schema : schemaAt(inside, rest);
}

/** Returns the literal texts that a schema allows. */
function textsOf(schema: JsonSchema): readonly string[] {
  const texts = (schema.enum ?? []).filter((one) => typeof one === "string");
  return [...texts, ...alternativesOf(schema).flatMap(textsOf)];
}

function alternativesOf(schema: JsonSchema): readonly JsonSchema[] {
  return schema.anyOf ?? [];
}

/** Returns JSON, or a text for values without JSON. */
function textOf(value: unknown): string {
  return typeof value === "number" ? String(value) : (JSON.stringify(value) ?? "undefined");
}
