/**
 * Tables of options: one entry says what may stand at a key, its default and what it means. A table
 * is a zod object, so that its type and its checks are zod's; the tree of defaults, a file with
 * comments, a page and a JSON Schema come from it, too (`table-pages`), and what is read by it
 * (`read-options`).
 */

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

/** How a key of the table is called in files. */
export type Name = (key: string) => string;
/** As in the table. */
export const same: Name = (key) => key;

/**
 * All entries by their keys, in their order. Two tables that are made of the same entry have it by
 * two keys.
 */
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

/** The tree of all defaults, by the names that files have. */
export function defaultsOf(table: OptionTable, name: Name = same): ConfigTree {
  return entriesOf(table, name).reduce<ConfigTree>(
    (tree, [key, entry]) => withValue(tree, key.split("."), defaultOf(entry) ?? null),
    {},
  );
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
