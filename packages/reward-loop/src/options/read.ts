/** Options of a table as they were given: checked, each by its name, and with their defaults. */

import { fieldOf, hasMethod, isRecord, recordIn } from "@rayling/reward-manager-registry/values";
import { RewardLoopOptionError } from "../errors.ts";
import { isOtherwise, moduleTable } from "./table.ts";
import type { Form, Option, OptionsOf, OptionTable, Range, SettingsOf } from "./table.ts";
import { listed, rangeWords, wordsOf } from "./describe-options.ts";

/** @param at what they are options of; "" for the loop itself. Throws RewardLoopOptionError. */
export function readOptions<Table extends object>(
  table: Table & OptionTable,
  given: OptionsOf<Table>,
  at: string = "",
): SettingsOf<Table> {
  checkOptions(table, given, at);
  checkNeeds(table, given, at);
  return withDefaults(table, given);
}

/** Each by itself. Throws RewardLoopOptionError. */
export function checkOptions(table: OptionTable, given: object, at: string = ""): void {
  checkKeys(at, given, Object.keys(table));
  const options = recordIn(given);
  for (const [name, { kind, atLeast, isRequired }] of Object.entries(table)) {
    const value = options[name];
    const place = placeOf(at, name);
    if (value === undefined) {
      if (isRequired === true) notAnOption(place, wordsOf(kind), value);
      continue;
    }
    checkValue(kind, value, place);
    if (atLeast !== undefined) {
      const least = Number(options[atLeast] ?? table[atLeast]?.standard);
      between(place, value, { ...(kind.is === "number" ? kind : {}), least });
    }
  }
}

/** Throws RewardLoopOptionError for an option that has no effect without another one. */
export function checkNeeds(table: OptionTable, given: object, at: string = ""): void {
  const options = recordIn(given);
  for (const [name, { kind, needs }] of Object.entries(table)) {
    const value = options[name];
    if (value === undefined || (kind.is === "judge" && value === "stop")) continue;
    const place = placeOf(at, name);
    if (needs?.names.every((one) => options[one] === undefined) === true) {
      notAnOption(
        place,
        `left out without ${listed(needs.names, "and")}, ${needs.why}`,
        shown(value),
      );
    }
    if (kind.is === "section") checkNeeds(kind.table, recordIn(value), place);
  }
}

/** Merges options: `last` takes precedence where it is not undefined. */
export function over<Options extends object>(first: Options, last: Options | undefined): Options {
  const said = Object.entries(last ?? {}).filter(([, value]) => value !== undefined);
  return { ...first, ...Object.fromEntries(said) };
}

/** Adds defaults to options that were checked before, or are this package's own. */
export function withDefaults<Table extends object>(
  table: Table & OptionTable,
  given: OptionsOf<Table>,
): SettingsOf<Table> {
  return completed(table, recordIn(given)) as SettingsOf<Table>;
}

function completed(
  table: OptionTable,
  given: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const settings = Object.entries(table).map(([name, { kind, standard }]) => {
    const value = given[name];
    if (value !== undefined) return [name, settled(kind, value)] as const;
    return [name, isOtherwise(standard) ? standard.of(given) : settled(kind, standard)] as const;
  });
  return Object.fromEntries(settings);
}

/** Whether a value has the given form. */
export function isAllowed(kind: Form, value: unknown): boolean {
  try {
    checkValue(kind, value, "");
    return true;
  } catch (error) {
    if (error instanceof RewardLoopOptionError) return false;
    throw error;
  }
}

/**
 * Returns an entry by the names of its sections and its own: `limits.requestsPerMinute`. Throws for
 * an unknown path.
 */
export function optionAt(table: OptionTable, path: string): Option {
  const [name = "", ...inside] = path.split(".");
  const found = table[name];
  if (found === undefined) throw new Error(`There is no option ${path}.`);
  if (inside.length === 0) return found;
  const { kind } = found;
  if (kind.is !== "section" && kind.is !== "switch") throw new Error(`${name} is no section.`);
  return optionAt(kind.table, inside.join("."));
}

function settled(kind: Form, value: unknown): unknown {
  switch (kind.is) {
    case "section":
      return value === undefined ? undefined : completed(kind.table, recordIn(value));
    case "switch":
      if (value === undefined || value === false) return undefined;
      return completed(kind.table, recordIn(value));
    case "auto":
      if (value === undefined || typeof value === "number") return value;
      return completed(kind.table, recordIn(value));
    default:
      return value;
  }
}

function checkValue(kind: Form, value: unknown, at: string): void {
  const isObject = isRecord(value);
  const refuse = (expected: string = wordsOf(kind)): never =>
    notAnOption(at, expected, shown(value));
  switch (kind.is) {
    case "number":
      return checkNumber(kind, value, at);
    case "text":
      if (typeof value !== "string" || (kind.of !== "any" && value.trim() === "")) return refuse();
      if (kind.of === "url" && !isUrl(value)) refuse();
      return;
    case "flag":
      if (typeof value !== "boolean") refuse();
      return;
    case "function":
      if (typeof value !== "function") refuse();
      return;
    case "signal":
      if (!isSignal(value)) refuse();
      return;
    case "either":
      if (!kind.forms.some((one) => isAllowed(one, value))) refuse();
      return;
    case "choice":
      return checkChoice(kind, value, at);
    case "list":
      if (!Array.isArray(value)) return refuse();
      for (const one of value) checkItem(kind.of, one, at);
      return;
    case "byName":
      if (!isObject) return refuse();
      for (const [name, one] of Object.entries(value)) checkValue(kind.of, one, `${at}.${name}`);
      return;
    case "parts":
      return checkParts(kind.table, isObject ? value : refuse(), at);
    case "section":
      return checkOptions(kind.table, isObject ? value : refuse(), at);
    case "switch":
      if (typeof value === "boolean") return;
      return checkOptions(kind.table, isObject ? value : refuse(), at);
    case "auto":
      if (value === "auto") return;
      if (isObject) return checkOptions(kind.table, value, at);
      if (typeof value !== "number") refuse();
      return checkValue(kind.of, value, at);
    case "module":
      if (typeof value === "string") return;
      return checkOptions(moduleTable, isObject ? value : refuse(), at);
    case "judge":
      if (value === "stop") return;
      return checkOptions(kind.table(), isObject ? value : refuse(), at);
    case "own":
  }
}

/** By its form: one of another realm is no instance of this one's class. */
function isSignal(value: unknown): boolean {
  return typeof fieldOf(value, "aborted") === "boolean" && hasMethod(value, "addEventListener");
}

function checkNumber(kind: Form & { readonly is: "number" }, value: unknown, at: string): void {
  if (kind.word !== undefined) {
    if (value === kind.word) return;
    if (typeof value !== "number") notAnOption(at, wordsOf(kind), shown(value));
  }
  between(at, value, kind);
}

function checkChoice(kind: Form & { readonly is: "choice" }, value: unknown, at: string): void {
  if (kind.values.some((one) => one === value)) return;
  const { field } = kind;
  if (field === undefined || !isRecord(value) || Object.keys(value).join() !== field) {
    return notAnOption(at, wordsOf(kind), shown(value));
  }
  between(`${at}.${field}`, fieldOf(value, field), {});
}

function checkItem(kind: Form, value: unknown, at: string): void {
  if (kind.is !== "choice") return checkValue(kind, value, at);
  if (!kind.values.some((one) => one === value)) {
    notAnOption(at, `some of ${kind.values.join(", ")}`, value);
  }
}

function checkParts(table: OptionTable, given: object, at: string): void {
  const named = Object.entries(given);
  if (named.length === 0) notAnOption(at, "at least one, by name", "none");
  for (const [name, part] of named) {
    const place = `${at}.${name}`;
    if (!partName.test(name)) notAnOption(place, partNameWords, name);
    checkValue({ is: "section", table }, part, place);
  }
}

export const partName: RegExp = /^[A-Za-z_][\w-]*$/;
export const partNameWords: string = "named by letters, digits, _ and -, no digit first";

export function isUrl(text: string): boolean {
  return /^https?:$/.test(URL.parse(text)?.protocol ?? "");
}

/** The value, which may be undefined. Throws RewardLoopOptionError. */
export function between(option: string, value: unknown, range: Range): number | undefined {
  if (value === undefined) return undefined;
  const { least = -Infinity, above = -Infinity, most = Infinity, below = Infinity } = range;
  const isNumber = typeof value === "number";
  const isKind =
    isNumber &&
    (value === Infinity
      ? range.infinite === true
      : (range.whole === true ? Number.isSafeInteger : Number.isFinite)(value));
  const isInside = isNumber && value >= least && value > above && value <= most;
  if (isKind && isInside && (value < below || below === Infinity)) return value;
  return notAnOption(option, rangeWords(range), shown(value));
}

/**
 * A misspelt option must not be one that is missing.
 *
 * @param option what they are options of; "" for the loop itself
 */
export function checkKeys(option: string, options: object, known: readonly string[]): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    notAnOption(option === "" ? "options" : option, "an object", shown(options));
  }
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const expected = known.length === 0 ? "left out" : `one of ${known.join(", ")}`;
    notAnOption(placeOf(option, key), expected, "unknown");
  }
}

export function notAnOption(option: string, expected: string, value: unknown): never {
  throw new RewardLoopOptionError(option, expected, value);
}

export function placeOf(at: string, name: string): string {
  return at === "" ? name : `${at}.${name}`;
}

function shown(value: unknown): unknown {
  return typeof value === "string" ? JSON.stringify(value) : value;
}
