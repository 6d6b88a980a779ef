/**
 * YAML as OmegaConf reads it: YAML 1.1 by PyYAML, with its own floats and without dates. `no` and
 * `off` are false, 010 is 8, 1_000 is 1000, 1:30 is 90, and `<<` merges. The library's YAML 1.1
 * differs in scalars (`y`, 08, 1.5e3), so that their patterns are PyYAML's and OmegaConf's here.
 */

import {
  type DocumentOptions,
  parseDocument,
  type ScalarTag,
  type SchemaOptions,
  stringify,
} from "yaml";

type OnError = (message: string) => void;

const bool: ScalarTag = {
  tag: "tag:yaml.org,2002:bool",
  default: true,
  identify: (value) => typeof value === "boolean",
  test: /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/,
  resolve: (text) => /^(?:yes|true|on)$/i.test(text),
  stringify: ({ value }) => (value === true ? "true" : "false"),
};

const int: ScalarTag = {
  tag: "tag:yaml.org,2002:int",
  default: true,
  test: /^[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(?::[0-5]?[0-9])+)$/,
  resolve: (text, onError) => wholeOf(text, onError),
};

const float: ScalarTag = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  identify: (value) => typeof value === "number",
  test: new RegExp(
    `^(?:${[
      String.raw`[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?`,
      String.raw`[-+]?[0-9]+(?:_[0-9]+)*[eE][-+]?[0-9]+`,
      String.raw`\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?`,
      String.raw`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*`,
      String.raw`[-+]?\.(?:inf|Inf|INF)`,
      String.raw`\.(?:nan|NaN|NAN)`,
    ].join("|")})$`,
  ),
  resolve: (text) => floatOf(text),
  stringify: ({ value }) => textOf(Number(value)),
};

const own: readonly ScalarTag[] = [bool, int, float];
const replaced: ReadonlySet<string> = new Set([
  ...own.map(({ tag }) => tag),
  "tag:yaml.org,2002:timestamp",
]);

/** Options for the library, to read and to write. */
export const yamlRules: DocumentOptions & SchemaOptions = {
  schema: "core",
  merge: true,
  customTags: (tags) => [
    ...tags.filter((one) => typeof one === "string" || !replaced.has(one.tag)),
    ...own,
  ],
};

/** Options to write: readers of YAML 1.2 see the same values. */
export const yamlWriting: DocumentOptions & SchemaOptions = { ...yamlRules, compat: "core" };

/**
 * Returns the value of a text; null for an empty one. Throws an Error that says the line. A value
 * may contain itself.
 */
export function yamlValue(text: string): unknown {
  const document = parseDocument(text, yamlRules);
  const [wrong] = [...document.errors, ...document.warnings];
  if (wrong !== undefined) throw new Error(wrong.message.split("\n", 1)[0] ?? "", { cause: wrong });
  const value: unknown = document.toJS();
  return value;
}

/** Returns a value as YAML: read again, here or by OmegaConf, it is the same. */
export function yamlText(value: unknown): string {
  return stringify(value, yamlWriting);
}

function wholeOf(written: string, onError: OnError): number {
  const [, sign = "", digits = ""] = /^([-+]?)(.*)$/.exec(written.replaceAll("_", "")) ?? [];
  const value = digits.includes(":")
    ? sexagesimal(digits)
    : Number(/^0[0-7]+$/.test(digits) ? `0o${digits}` : digits);
  if (!Number.isSafeInteger(value)) {
    onError(`${written} is a whole number that cannot be held; quote it, for a text`);
  }
  return sign === "-" && value !== 0 ? -value : value;
}

function floatOf(written: string): number {
  const [, sign = "", digits = ""] = /^([-+]?)(.*)$/.exec(written.replaceAll("_", "")) ?? [];
  const value = /inf$/i.test(digits)
    ? Number.POSITIVE_INFINITY
    : digits.includes(":")
      ? sexagesimal(digits)
      : /nan$/i.test(digits)
        ? Number.NaN
        : Number(digits);
  return sign === "-" ? -value : value;
}

/** `1:30` is 90: a number by 60s. */
function sexagesimal(digits: string): number {
  return digits.split(":").reduce((sum, part) => 60 * sum + Number(part), 0);
}

function textOf(value: number): string {
  if (Number.isNaN(value)) return ".nan";
  if (!Number.isFinite(value)) return value > 0 ? ".inf" : "-.inf";
  return Object.is(value, -0) ? "-0.0" : String(value);
}
