/**
 * The keys of a table of options in a configuration: snake_case, or verl's word. A null is unset:
 * then the library's default holds, or in a part the surrounding value; a default with a value is
 * written in the file itself.
 */

import { nested, option } from "@rayling/config-tree/options";
import { z } from "zod";
import { isRecord } from "@rayling/reward-manager-registry/values";
import { loopOptions } from "../options/defaults/functions.ts";
import { helpOf } from "../options/help.ts";
import { isUrl, partName, partNameWords } from "../options/read.ts";
import { isOtherwise } from "../options/table.ts";
import type { FileOf, Form, FunctionFile, Option, OptionTable } from "../options/table.ts";
import { defaultWords, keyOf, snake } from "../options/describe-options.ts";

type Keys = Record<string, z.ZodType>;

/** Makes a table of `@rayling/config-tree/options`. */
export function keysOf<Table extends object>(
  table: Table & OptionTable,
): { [Key in keyof FileOf<Table>]: z.ZodType<FileOf<Table>[Key]> } {
  return keysIn(table) as never;
}

/** Entries that files have: key, option, name. */
export function fileEntries(table: OptionTable): [string, Option, string][] {
  return Object.entries(table).flatMap(([name, one]): [string, Option, string][] => {
    const key = keyOf(name, one);
    return key === null ? [] : [[key, one, name]];
  });
}

/** Returns the option's key in files, or its own name where it has none. */
export function keyNameOf(table: OptionTable, name: string): string {
  const one = table[name];
  return (one && keyOf(name, one)) ?? snake(name);
}

/** The value in files where the key is not set. */
export function fileDefaultOf({ kind, standard }: Option): unknown {
  if (kind.is === "parts") return {};
  if (kind.is === "choice" && typeof standard === "string") return snake(standard);
  return standard === undefined || isOtherwise(standard) ? null : standard;
}

/** verl's defaults for a function that is not named. */
export const noFunction: FunctionFile = { path: null, name: "compute_score", reward_kwargs: {} };

/** Returns a function's keys as they were read; `noFunction` for any other value. */
export function functionIn(value: unknown): FunctionFile {
  return isFunctionFile(value) ? value : noFunction;
}

function isFunctionFile(value: unknown): value is FunctionFile {
  if (!isRecord(value)) return false;
  const { path, name, reward_kwargs: kwargs } = value;
  return (
    (path === null || typeof path === "string") && typeof name === "string" && isRecord(kwargs)
  );
}

function keysIn(table: OptionTable): Keys {
  return Object.fromEntries(fileEntries(table).flatMap(([key, one]) => keysAt(key, one, table)));
}

function keysAt(key: string, one: Option, table: OptionTable): [string, z.ZodType][] {
  const { kind } = one;
  const nameOf = (name: string): string | undefined =>
    Object.hasOwn(table, name) || Object.hasOwn(loopOptions, name)
      ? keyNameOf(table, name)
      : undefined;
  const help = helpOf(one, nameOf);
  switch (kind.is) {
    case "section":
      return [[key, nested(keysIn(kind.table))]];
    case "switch":
      return [[key, nested({ enable: option(z.boolean(), false, help), ...keysIn(kind.table) })]];
    case "module":
      return [[key, nested(functionKeys("The module of a score function; null: none."))]];
    case "judge":
      return [[key, nested({ ...functionKeys(help), prices: nested(keysIn(kind.prices)) })]];
    default: {
      const value = fileDefaultOf(one);
      const words = value === null ? defaultWords(one, nameOf) : undefined;
      const said = words === undefined ? help : `${help} null: ${words}.`;
      const own: [string, z.ZodType] = [
        key,
        option(orDefault(typeOf(kind), value), value as never, said),
      ];
      return kind.is === "auto" ? [own, ["adaptive", nested(keysIn(kind.table))]] : [own];
    }
  }
}

/** A function of the user's, as verl names one. */
function functionKeys(help: string): Keys {
  const { name, reward_kwargs: kwargs } = noFunction;
  return {
    path: option(z.string().min(1).nullable(), null, help),
    name: option(z.string().min(1), name, "Which of its exports."),
    reward_kwargs: option(
      z.record(z.string(), z.unknown()),
      kwargs as never,
      "What it gets with each sample.",
    ),
  };
}

/** Null says nothing, also where the default is a value. */
function orDefault(type: z.ZodType, value: unknown): z.ZodType {
  if (isRecord(value)) return type;
  return value === null ? type.nullable() : type.nullable().transform((said) => said ?? value);
}

function typeOf(kind: Form): z.ZodType {
  switch (kind.is) {
    case "number": {
      let type = kind.whole === true ? z.number().int() : z.number();
      if (kind.least !== undefined) type = type.min(kind.least);
      if (kind.above !== undefined) type = type.gt(kind.above);
      if (kind.most !== undefined) type = type.max(kind.most);
      if (kind.below !== undefined) type = type.lt(kind.below);
      return kind.word === undefined ? type : z.union([type, z.literal(snake(kind.word))]);
    }
    case "text":
      return kind.of === "url"
        ? z.string().refine(isUrl, "must be the URL of a service")
        : z.string().min(1);
    case "flag":
      return z.boolean();
    case "choice": {
      const values = z.enum(kind.values.map(snake));
      return kind.field === undefined ? values : z.union([values, z.number()]);
    }
    case "list":
      return z.array(typeOf(kind.of));
    case "byName":
      return z.record(z.string(), typeOf(kind.of));
    case "parts": {
      const name = z.string().regex(partName, `must be ${partNameWords}`);
      return z.record(name, z.strictObject(keysIn(kind.table)));
    }
    case "auto":
      return z.union([typeOf(kind.of), z.literal("auto")]);
    default:
      return z.unknown();
  }
}
