/**
 * Tables of options, as plain data: one entry holds an option's name, form, default, needs and
 * meaning. The library checks options by it, a configuration takes its keys from it, the command
 * line its flags, and the types of options and settings are derived. Knows no option, and loads
 * nothing.
 */

import type { RewardSpec } from "@rayling/reward-manager-registry";

export interface Range {
  readonly least?: number;
  readonly above?: number;
  readonly most?: number;
  readonly below?: number;
  readonly whole?: boolean;
  readonly infinite?: boolean;
}

export type Form =
  /** `word`: it may stand in its place; in files in snake_case. */
  | ({ readonly is: "number"; readonly word?: string } & Range)
  /** Not blank, unless `of` is "any". */
  | { readonly is: "text"; readonly of?: "url" | "any" }
  | { readonly is: "flag" }
  | { readonly is: "function" }
  /** An AbortSignal. */
  | { readonly is: "signal" }
  /** Any one of several forms. */
  | { readonly is: "either"; readonly forms: readonly Form[] }
  /**
   * In files in snake_case. `field`: a number is allowed in its place, in the library in an object
   * by that name.
   */
  | { readonly is: "choice"; readonly values: readonly string[]; readonly field?: string }
  | { readonly is: "list"; readonly of: Form }
  | { readonly is: "byName"; readonly of: Form }
  /** Functions by names, which become parts of columns, of actors' names and of records. */
  | { readonly is: "parts"; readonly table: OptionTable }
  | { readonly is: "section"; readonly table: OptionTable }
  /**
   * A section that is off unless it is given; true is one with its defaults. In files it has a key
   * `enable`.
   */
  | { readonly is: "switch"; readonly table: OptionTable }
  /**
   * A number, "auto", or the settings of auto; in files these stand beside it, under `adaptive`.
   */
  | {
      readonly is: "auto";
      readonly of: Form & { readonly is: "number" };
      readonly table: OptionTable;
    }
  /** A module's function or class; in files as verl names a score function. */
  | { readonly is: "module" }
  /** "stop", or the options of a function; in files a function with its prices. */
  | { readonly is: "judge"; readonly table: () => OptionTable; readonly prices: OptionTable }
  /** Checked by the code that uses it. */
  | { readonly is: "own" };

/** A key that exists in types only. */
export declare const types: unique symbol;

/**
 * Carries types that no value has: as the user gives it, as it is settled, as files have it, and
 * the table that stands beside it there.
 */
export type Kind<In = unknown, Out = In, File = In, Beside = null> = Form & {
  readonly [types]?: {
    readonly in: In;
    readonly out: Out;
    readonly file: File;
    readonly beside: Beside;
  };
};

/** A default that depends on others, or that files do not have: null there is as around it. */
export interface Otherwise<Value = unknown> {
  /** The default in words, for people. */
  readonly words: string;
  readonly of: (given: Given) => Value;
}

export type Given = Readonly<Record<string, unknown>>;

interface Entry {
  readonly kind: Form;
  /** The default, as the user would give it; undefined: none. */
  readonly standard: unknown;
  /**
   * Its key in files, unless it is the name in snake_case; null: no key, or sections of verl's have
   * it.
   */
  readonly key?: string | null | undefined;
  /** At least one of these options has to be given, too; `why` follows a comma in the error. */
  readonly needs?: { readonly names: readonly string[]; readonly why: string };
  /** The option that this one may not be less than. */
  readonly atLeast?: string;
  readonly isRequired?: boolean;
}

export type Option<
  In = unknown,
  Settled = unknown,
  File = unknown,
  Key = unknown,
  Beside = unknown,
> = Entry & {
  readonly [types]?: {
    readonly in: In;
    readonly settled: Settled;
    readonly file: File;
    readonly key: Key;
    readonly beside: Beside;
  };
};

export type OptionTable = Readonly<Record<string, Option>>;

type Resolved<Out, Standard> = [Standard] extends [undefined]
  ? Out | undefined
  : Standard extends Otherwise<infer Value>
    ? Out | Value
    : Out;
type InFile<File, Standard> = [Standard] extends [undefined]
  ? Filed<File>
  : Standard extends Otherwise
    ? Filed<File>
    : File;
/** Sections are always there. */
type Filed<File> = File extends Section ? File : File | null;

/**
 * Makes an entry. The comment on it is its text in editors, pages and flags (help.ts). @param
 * standard its default; a value, which files have too, or `otherwise`
 */
export function option<
  In,
  Out,
  File,
  Beside,
  const Standard extends In | Otherwise<Out | undefined> | undefined,
  const Key extends string | null | undefined = undefined,
>(
  kind: Kind<In, Out, File, Beside>,
  standard: Standard,
  more: Omit<Entry, "kind" | "standard" | "key"> & { readonly key?: Key } = {},
): Option<In, Resolved<Out, Standard>, InFile<File, Standard>, Key, Beside> {
  return { kind, standard, ...more };
}

/** @param of default: undefined */
export function otherwise<Value = undefined>(
  words: string,
  of: (given: Given) => Value = () => undefined as Value,
): Otherwise<Value> {
  return { words, of };
}

export function isOtherwise(standard: unknown): standard is Otherwise {
  return typeof standard === "object" && standard !== null && "words" in standard;
}

/** A default of the loop that its parts inherit. */
export function inherited<Value extends string | number>(value: Value): Otherwise<Value> {
  return otherwise(String(value), () => value);
}

/** The options that a user may give. */
export type OptionsOf<Table extends object> = {
  readonly [Name in keyof Table]?: (Table[Name] extends Option<infer In> ? In : never) | undefined;
};

/** Options with all defaults. */
export type SettingsOf<Table extends object> = {
  readonly [Name in keyof Table]: Table[Name] extends Option<unknown, infer Value> ? Value : never;
};

/** A table's keys in a parsed configuration. */
export type FileOf<Table extends object> = {
  readonly [Name in keyof Table as KeyOf<Name, Table[Name]>]: Table[Name] extends Option<
    unknown,
    unknown,
    infer File
  >
    ? File
    : never;
} & {
  readonly [
    Name in keyof Table as BesideOf<Table[Name]> extends object ? "adaptive" : never
  ]: BesideOf<Table[Name]> extends infer Beside extends object ? FileOf<Beside> : never;
};

type KeyOf<Name, One> =
  One extends Option<unknown, unknown, unknown, infer Key>
    ? [Key] extends [string]
      ? Key
      : [Key] extends [null]
        ? never
        : Name extends string
          ? Snake<Name>
          : never
    : never;
type BesideOf<One> =
  One extends Option<unknown, unknown, unknown, unknown, infer Beside> ? Beside : never;

/** `maxRetryAfterMs` is `max_retry_after_ms` in files. */
export type Snake<Name extends string> = Name extends `${infer Head}${infer Rest}`
  ? `${Head extends Lowercase<Head> ? Head : `_${Lowercase<Head>}`}${Snake<Rest>}`
  : Name;

export type SectionFile<Table extends object> = FileOf<Table> & Section;

/** Keys that files always have. */
export interface Section {
  readonly [types]?: "section";
}

/** A function of the user's, as verl names one. */
export interface FunctionFile extends Section {
  readonly path: string | null;
  readonly name: string;
  readonly reward_kwargs: Readonly<Record<string, unknown>>;
}

export function number(range: Range = {}): Kind<number> & { readonly is: "number" } {
  return { is: "number", ...range };
}

/** A number, or that word. */
export function numberOr<const Word extends string>(
  word: Word,
  range: Range = {},
): Kind<number | Word, number | Word, number | Snake<Word>> {
  return { is: "number", word, ...range };
}

export function whole(least: number): Kind<number> & { readonly is: "number" } {
  return number({ least, whole: true });
}

/** Milliseconds, as many as a timer can take. */
export const timer: Kind<number> = number({ above: 0, most: 2 ** 31 - 1 });
export const text: Kind<string> = { is: "text" };
export const anyText: Kind<string> = { is: "text", of: "any" };
export const url: Kind<string> = { is: "text", of: "url" };
export const flag: Kind<boolean> = { is: "flag" };
export const fn: Kind<(...given: never) => unknown> = { is: "function" };
export const signal: Kind<AbortSignal> = { is: "signal" };

export function either(...forms: readonly Kind[]): Kind {
  return { is: "either", forms };
}

export function choice<const Value extends string>(
  ...values: readonly Value[]
): Kind<Value, Value, Snake<Value>> {
  return { is: "choice", values };
}

/** One of the values, or a number. @param field the key of the number in the library */
export function choiceOr<const Field extends string, const Value extends string>(
  field: Field,
  ...values: readonly Value[]
): Kind<
  Value | { readonly [Key in Field]: number },
  Value | { readonly [Key in Field]: number },
  Snake<Value> | number
> {
  return { is: "choice", values, field };
}

export function list<Value>(of: Kind<Value>): Kind<readonly Value[]> {
  return { is: "list", of };
}

export function byName<Value>(of: Kind<Value>): Kind<Readonly<Record<string, Value>>> {
  return { is: "byName", of };
}

/** Their types are said by who asks for them: a part may have parts. */
export function parts(table: OptionTable): Kind<PartsByName, PartsByName, PartsByName & Section> {
  return { is: "parts", table };
}

type PartsByName = Readonly<Record<string, object>>;

/** @typeParam Table a table by a name: an interface, so that types and messages are short */
export function section<Table extends object>(
  table: Table & OptionTable,
): Kind<OptionsOf<Table>, SettingsOf<Table>, SectionFile<Table>> {
  return { is: "section", table };
}

export function switched<Table extends object>(
  table: Table & OptionTable,
): Kind<
  boolean | OptionsOf<Table>,
  SettingsOf<Table> | undefined,
  SectionFile<Table> & { readonly enable: boolean }
> {
  return { is: "switch", table };
}

export function auto<Table extends object>(
  of: Kind<number> & { readonly is: "number" },
  table: Table & OptionTable,
): Kind<number | "auto" | OptionsOf<Table>, number | SettingsOf<Table>, number | "auto", Table> {
  return { is: "auto", of, table };
}

export const module: Kind<string | RewardSpec, string | RewardSpec, FunctionFile> = {
  is: "module",
};

/** The fields of a RewardSpec; what they say is read by the loader. */
export const moduleTable: OptionTable = {
  path: { kind: text, standard: undefined, isRequired: true },
  name: { kind: text, standard: undefined },
  rewardKwargs: { kind: byName({ is: "own" }), standard: undefined },
  areKwargsShared: { kind: flag, standard: undefined },
};

export function judge<Prices extends object>(
  table: () => OptionTable,
  prices: Prices & OptionTable,
): Kind<"stop" | object, "stop" | object, FunctionFile & { readonly prices: FileOf<Prices> }> {
  return { is: "judge", table, prices };
}

export function own<Value>(): Kind<Value> {
  return { is: "own" };
}
