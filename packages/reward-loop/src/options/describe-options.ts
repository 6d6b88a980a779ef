/**
 * Describes options for people: the allowed values, the default, and the meaning with names that
 * the reader knows.
 */

import { isOtherwise } from "./table.ts";
import type { Form, Option, Range } from "./table.ts";

/** Describes a form after "must be". */
export function wordsOf(kind: Form): string {
  switch (kind.is) {
    case "number":
      return kind.word === undefined
        ? rangeWords(kind)
        : `${rangeWords(kind)} or ${JSON.stringify(kind.word)}`;
    case "text":
      if (kind.of === "any") return "a text";
      return kind.of === "url" ? "the URL of a service" : "a text that is not empty";
    case "flag":
      return "true or false";
    case "function":
      return "a function";
    case "signal":
      return "an AbortSignal";
    case "either":
      return listed(kind.forms.map(wordsOf), "or");
    case "choice": {
      const values = listed(
        kind.values.map((one) => JSON.stringify(one)),
        "or",
      );
      return kind.field === undefined
        ? values
        : `${values.replace(" or ", ", ")} or { ${kind.field} }`;
    }
    case "list":
      return kind.of.is === "choice" ? `some of ${kind.of.values.join(", ")}` : "a list";
    case "byName":
      return "an object by names";
    case "parts":
    case "section":
      return "an object";
    case "switch":
      return "true, false or an object";
    case "auto":
      return `${wordsOf(kind.of)}, "auto" or its settings`;
    case "module":
      return "a text or { path, name?, rewardKwargs? }";
    case "judge":
      return '"stop" or the options of a judge';
    default:
      return "as its type says";
  }
}

export function rangeWords({ least, above, most, below, whole }: Range): string {
  const limits = [
    ...(least === undefined ? [] : [`of at least ${least}`]),
    ...(above === undefined ? [] : [`above ${above}`]),
    ...(most === undefined ? [] : [`of at most ${most}`]),
    ...(below === undefined ? [] : [`below ${below}`]),
  ];
  return [`a ${whole === true ? "whole " : ""}number`, limits.join(" and ")].join(" ").trim();
}

/** Returns the default in words; undefined where there is none, or it has no words. */
export function defaultWords(
  { standard }: Option,
  nameOf: (option: string) => string | undefined,
): string | undefined {
  if (standard === undefined) return undefined;
  if (typeof standard === "string" || typeof standard === "number") return String(standard);
  if (Array.isArray(standard)) return listed(standard.map(String), "and");
  if (isOtherwise(standard)) return withNames(standard.words, nameOf);
  return typeof standard === "boolean" ? String(standard) : undefined;
}

/**
 * Replaces names of options, which stand between backquotes, by names that the reader knows. @param
 * nameOf undefined where it is no option
 */
export function withNames(text: string, nameOf: (option: string) => string | undefined): string {
  return text.replaceAll(/`(\w+)`/g, (quoted, name: string) => nameOf(name) ?? quoted);
}

export function listed(names: readonly string[], word: "and" | "or"): string {
  if (names.length < 2) return names.join("");
  return `${names.slice(0, -1).join(", ")} ${word} ${names.at(-1)}`;
}

/** The name of a key of files: `base_ms` is `baseMs`. */
export function camel(key: string): string {
  return key.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

export function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Returns the option's key in files; null: it has none. */
export function keyOf(name: string, { key }: Option): string | null {
  return key === undefined ? snake(name) : key;
}
