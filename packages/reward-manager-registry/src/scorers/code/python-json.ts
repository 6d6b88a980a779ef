/**
 * JSON as Python's json module reads and writes it: NaN and Infinity are numbers, and whole numbers
 * have any size.
 */

/** Keeps whole numbers that a double cannot hold as bigint. Returns undefined for other texts. */
export function parsePythonJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(asJson(text), exact as (key: string, value: unknown) => unknown) };
  } catch {
    return undefined;
  }
}

/** Writes what parsePythonJson has read. */
export function writePythonJson(value: unknown): string {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (Array.isArray(value)) return `[${value.map(writePythonJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).map(
    ([key, one]) => `${JSON.stringify(key)}:${writePythonJson(one)}`,
  );
  return `{${fields.join(",")}}`;
}

/** A number that no text has; a double makes 0 of it. */
const nan = "1e-4242424242";

const literals: Readonly<Record<string, string>> = {
  NaN: nan,
  Infinity: "1e999",
  "-Infinity": "-1e999",
};

/** A string, closed or not, so that no text is searched twice; or a number that only Python has. */
const stringOrLiteral = /"(?:[^"\\]+|\\[\s\S])*"?|(?<![\w.+-])(?:NaN|-?Infinity)(?![\w.+-])/g;

function asJson(text: string): string {
  if (!/NaN|Infinity/.test(text)) return text;
  return text.replaceAll(stringOrLiteral, (part) => literals[part] ?? part);
}

/** Python refuses to read numbers with more digits. */
const whole = /^-?\d{1,4300}$/;

function exact(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== "number") return value;
  const { source } = context;
  if (source === nan) return Number.NaN;
  if (Number.isSafeInteger(value) || source === undefined || /[.eE]/.test(source)) return value;
  if (!whole.test(source)) throw new RangeError("Python reads no whole number as long as this");
  return BigInt(source);
}
