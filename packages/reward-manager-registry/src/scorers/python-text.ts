/**
 * Texts as Python sees them: characters are code points, and white space, digits and words are
 * Python's. Scorers that must agree with verl's use these functions.
 */

/** The inside of a character class: white space of `str.isspace` and `\s`. */
export const whiteSpace: string = String.raw`\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`;

const gaps = new RegExp(`[${whiteSpace}]+`, "g");

/**
 * Digits of `str.isdigit` that are no decimal digits: superscripts, circled numbers and similar
 * ones (Unicode 14).
 */
const otherDigits = String.raw`\xb2\xb3\xb9\u1369-\u1371\u19da\u2070\u2074-\u2079\u2080-\u2089\u2460-\u2468\u2474-\u247c\u2488-\u2490\u24ea\u24f5-\u24fd\u24ff\u2776-\u277e\u2780-\u2788\u278a-\u2792\u{10a40}-\u{10a43}\u{10e60}-\u{10e68}\u{11052}-\u{1105a}\u{1f100}-\u{1f10a}`;
const digits = new RegExp(String.raw`^[\p{Nd}${otherDigits}]+$`, "u");
const digit = new RegExp(String.raw`[\p{Nd}${otherDigits}]`, "u");

/** `text[-count:]`: a pair of surrogates is one character. */
export function lastCodePoints(text: string, count: number): string {
  if (text.length <= count) return text;
  let start = text.length;
  for (let taken = 0; taken < count && start > 0; taken++) {
    const isPair = start >= 2 && (text.codePointAt(start - 2) ?? 0) > 0xffff;
    start -= isPair ? 2 : 1;
  }
  return text.slice(start);
}

/** `text.strip()` */
export function strip(text: string): string {
  // A loop is linear: an expression that ends in `$` tries every gap, which is quadratic.
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(text.charCodeAt(start))) start += 1;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isSpace(code: number): boolean {
  return (
    (code >= 0x09 && code <= 0x0d) ||
    (code >= 0x1c && code <= 0x20) ||
    code === 0x85 ||
    code === 0xa0 ||
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}

/** `" ".join(text.split())` */
export function joinWords(text: string): string {
  return strip(text).replace(gaps, " ");
}

/** `text.isdigit()` */
export function isDigits(text: string): boolean {
  return digits.test(text);
}

/** `any(c.isdigit() for c in text)` */
export function hasDigit(text: string): boolean {
  return digit.test(text);
}

/** White space of `strip` that `float` refuses. */
const separator = new RegExp(String.raw`[\x1c-\x1f]`);

/** `float(text)`: undefined where Python raises an error. */
export function toFloat(text: string): number | undefined {
  if (separator.test(text)) return undefined;
  const plain = withAsciiDigits(strip(text));
  if (/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(plain)) return Number(plain);
  const [, sign = "", name] = /^([+-]?)(?:(inf(?:inity)?)|nan)$/i.exec(plain) ?? [];
  if (name !== undefined) return sign === "-" ? -Infinity : Infinity;
  return /^[+-]?nan$/i.test(plain) ? Number.NaN : undefined;
}

/** Converts digits to ASCII and drops underscores between them. */
function withAsciiDigits(text: string): string {
  const whole = text.includes("_") ? text.replaceAll(/(?<=\p{Nd})_(?=\p{Nd})/gu, "") : text;
  // Most texts have only ASCII digits, and the search for others takes longer than all the rest.
  return /[^\0-\x7f]/.test(whole) ? whole.replaceAll(/\p{Nd}/gu, asciiDigit) : whole;
}

/** Decimal digits come in runs of ten, zero first. */
function asciiDigit(character: string): string {
  let value = 0;
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) return character;
  while (/^\p{Nd}$/u.test(String.fromCodePoint(code - value - 1))) value += 1;
  return String(value % 10);
}
