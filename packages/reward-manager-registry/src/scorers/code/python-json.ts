/**
 * JSON as Python's json module reads and writes it: NaN and Infinity are numbers, and whole numbers
 * have any size.
 */

/** Keeps whole numbers that a double cannot hold as bigint. Returns undefined for other texts. */
export function parsePythonJson(text: string): { readonly value: unknown } | undefined {
  return parsed(text) ?? (/NaN|Infinity/.test(text) ? parsed(asJson(text)) : undefined);
}

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text, exact as (key: string, value: unknown) => unknown) };
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

/** A number that only Python has. */
const literal = /(?<![\w.+-])(?:NaN|-?Infinity)(?![\w.+-])/g;

/** An expression for strings would need a stack as deep as one of them has escapes. */
function asJson(text: string): string {
  const parts: string[] = [];
  for (let at = 0; at < text.length;) {
    const quote = text.indexOf('"', at);
    const start = quote === -1 ? text.length : quote;
    parts.push(text.slice(at, start).replaceAll(literal, (found) => literals[found] ?? found));
    at = endOfString(text, start);
    parts.push(text.slice(start, at));
  }
  return parts.join("");
}

/** Returns what is behind the string that begins at `start`, closed or not. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === '"') return at + 1;
    if (text[at] === "\\") at += 1;
  }
  return text.length;
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
