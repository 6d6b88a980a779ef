/** Whether what a program wrote, or what a function returned, is the answer. */

/**
 * As verl's prime_code compares standard output: as text without the space around it and around its lines; or line by line as numbers that are close; or as sets of lines that are sets
 * of words, so that neither order nor repetition counts; or as those with numbers rounded to 3 places.
 */
export function sameOutput(output: string, expected: string): boolean {
  if (output.trim() === expected.trim()) return true;
  const [own, its] = [linesOf(output), linesOf(expected)];
  return (
    closeNumbers(own, its) ||
    sameSets(own, its, (word) => word) ||
    sameSets(own, its, (word) => {
      const number = pythonFloat(word);
      // Not -0, which is the same number.
      return Number.isFinite(number) ? String(Number(number.toFixed(3)) + 0) : undefined;
    })
  );
}

/**
 * As verl's prime_code compares what a function returned: equal as Python's values are (1 is 1.0 is True), or equal to the first of a list of answers. False for texts that are no JSON.
 *
 * @param value JSON
 * @param expected JSON
 */
export function sameValue(value: string, expected: string): boolean {
  const [own, its] = [parseExactly(value), parseExactly(expected)];
  if (own === undefined || its === undefined) return false;
  if (equal(own.value, its.value)) return true;
  return Array.isArray(its.value) && its.value.length > 0 && equal(own.value, its.value[0]);
}

function linesOf(text: string): string[] {
  return text
    .split(/\r\n|[\n\r]/)
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** numpy.allclose, whose tolerances these are. */
function closeNumbers(own: readonly string[], its: readonly string[]): boolean {
  if (own.length !== its.length || own.length === 0) return false;
  return own.every((line, index) => {
    const [a, b] = [pythonFloat(line), pythonFloat(its[index] ?? "")];
    return a === b || (Number.isFinite(b) && Math.abs(a - b) <= 1e-8 + 1e-5 * Math.abs(b));
  });
}

/** @param keyOf of a word; undefined: they cannot be compared so */
function sameSets(
  own: readonly string[],
  its: readonly string[],
  keyOf: (word: string) => string | undefined,
): boolean {
  const [a, b] = [setsOf(own, keyOf), setsOf(its, keyOf)];
  return (
    a !== undefined && b !== undefined && a.size === b.size && [...a].every((one) => b.has(one))
  );
}

function setsOf(
  lines: readonly string[],
  keyOf: (word: string) => string | undefined,
): Set<string> | undefined {
  const sets = new Set<string>();
  for (const line of lines) {
    const keys = new Set<string>();
    for (const word of line.split(/\s+/)) {
      const key = keyOf(word);
      if (key === undefined) return undefined;
      keys.add(key);
    }
    // In any order, as long as it is always the same.
    sets.add([...keys].toSorted((a, b) => (a < b ? -1 : 1)).join(" "));
  }
  return sets;
}

/** NaN for what Python's float() does not take. */
function pythonFloat(text: string): number {
  const word = text.trim();
  const [, sign, name] = /^([+-]?)(inf|infinity)$/i.exec(word) ?? [];
  if (name !== undefined) return sign === "-" ? -Infinity : Infinity;
  if (!/^[+-]?(\d+(_\d+)*)?(\.(\d+(_\d+)*)?)?(e[+-]?\d+(_\d+)*)?$/i.test(word)) return NaN;
  return /\d/.test(word.split(/e/i)[0] ?? "") ? Number(word.replaceAll("_", "")) : NaN;
}

/** Whole numbers that a double does not hold are kept as bigint. Undefined: no JSON. */
function parseExactly(text: string): { readonly value: unknown } | undefined {
  const exact = (_key: string, value: unknown, context: { readonly source?: string }): unknown =>
    typeof value === "number" && !Number.isSafeInteger(value) && isWhole(context?.source)
      ? BigInt(context.source)
      : value;
  try {
    return { value: JSON.parse(text, exact as (key: string, value: unknown) => unknown) };
  } catch {
    return undefined;
  }
}

function isWhole(source: string | undefined): source is string {
  return source !== undefined && /^-?\d+$/.test(source);
}

function equal(a: unknown, b: unknown): boolean {
  const [own, its] = [asNumber(a), asNumber(b)];
  if (own !== undefined && its !== undefined) return equalNumbers(own, its);
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every(
    (key) =>
      Object.hasOwn(b, key) &&
      equal((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  );
}

function asNumber(value: unknown): number | bigint | undefined {
  if (typeof value === "boolean") return Number(value);
  return typeof value === "number" || typeof value === "bigint" ? value : undefined;
}

function equalNumbers(a: number | bigint, b: number | bigint): boolean {
  if (typeof a === typeof b) return a === b;
  const [whole, other] = typeof a === "bigint" ? [a, b as number] : [b as bigint, a];
  return Number.isInteger(other) && BigInt(other) === whole;
}
