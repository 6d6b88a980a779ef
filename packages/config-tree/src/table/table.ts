/**
 * Tables of options: one entry has the type of a key, its default and its help. A table is a zod
 * object, so its type and its checks are zod's. The tree of defaults, a file with comments, a page
 * and a JSON Schema come from it (`table-pages`), and `read-options` reads keys by it.
 */

import { z } from "zod";
import { type ConfigTree, type ConfigValue, withValue } from "../tree.ts";

/** A table, or a section of one. */
export type OptionTable = z.ZodObject;

/** The read-only type of a read table. */
export type Frozen<Value> = Value extends readonly (infer Item)[]
  ? number extends Value["length"]
    ? readonly Frozen<Item>[]
    : { readonly [Key in keyof Value]: Frozen<Value[Key]> }
  : Value extends object
    ? { readonly [Key in keyof Value]: Frozen<Value[Key]> }
    : Value;

/**
 * Makes an entry.
 *
 * @param value its default, as a file has it, which may be a reference: `${data.seed}`
 * @param help its meaning, for people; "" if its name, or the comment above it, says enough
 */
export function option<Type extends z.ZodType>(
  type: Type,
  value: ConfigValue,
  help = "",
): z.ZodPrefault<Type> {
  // A reference is no value of the type: references are resolved before the checks.
  return type.prefault(value as never).meta({ default: value, description: help });
}

/** Makes a section; missing keys have their defaults. */
export function nested<Shape extends z.ZodRawShape>(
  shape: Shape,
): z.ZodPrefault<z.ZodObject<Shape, z.core.$strict>> {
  return z.strictObject(shape).prefault({} as never);
}

/** Returns the name of a table's key in files. */
export type Name = (key: string) => string;
/** Keeps the table's name. */
export const same: Name = (key) => key;

/**
 * Returns all entries by their keys, in order. An entry that two tables share appears under two
 * keys.
 */
export function entriesOf(
  table: OptionTable,
  name: Name = same,
  prefix = "",
): [string, z.ZodType][] {
  return Object.entries(table.shape).flatMap(([own, entry]): [string, z.ZodType][] => {
    const key = prefix + name(own);
    if (!(entry instanceof z.ZodType)) throw new TypeError(`${key} is no type of zod`);
    const inside = sectionOf(entry);
    return inside === undefined ? [[key, entry]] : entriesOf(inside, name, `${key}.`);
  });
}

/** Returns the tree of all defaults, by their names in files. */
export function defaultsOf(table: OptionTable, name: Name = same): ConfigTree {
  return entriesOf(table, name).reduce<ConfigTree>(
    (tree, [key, entry]) => withValue(tree, key.split("."), defaultOf(entry) ?? null),
    {},
  );
}

/** Returns the table of a section; undefined for a value. */
export function sectionOf(type: z.ZodType): OptionTable | undefined {
  if (type.meta()?.["default"] !== undefined) return undefined;
  if (type instanceof z.ZodObject) return type;
  if (!(type instanceof z.ZodPrefault || type instanceof z.ZodOptional)) return undefined;
  const inside = type.unwrap();
  return inside instanceof z.ZodType ? sectionOf(inside) : undefined;
}

/** Returns the default of an entry; undefined for another type. */
export function defaultOf(type: z.ZodType): ConfigValue | undefined {
  return type.meta()?.["default"] as ConfigValue | undefined;
}
