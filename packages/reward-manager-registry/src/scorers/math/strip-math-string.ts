/**
 * Normalises an answer of the MATH data set as its authors do, because LaTeX has several spellings
 * of one thing.
 */

export interface StripOptions {
  /** Whether a bare "%" is dropped, too, as in mathruler. Default false. */
  readonly dropsPercent?: boolean;
}

/**
 * Returns the normalised answer.
 *
 * @throws RangeError for `\frac` or `\sqrt` at the very end, and for two units
 */
export function stripMathString(text: string, { dropsPercent = false }: StripOptions = {}): string {
  let answer = text;
  for (const [written, meant] of spellings) answer = answer.replaceAll(written, meant);
  answer = withoutUnit(answer);
  for (const written of dropsPercent ? allPercents : percents) {
    answer = answer.replaceAll(written, "");
  }
  for (const [written, meant] of points) answer = answer.replaceAll(written, meant);
  if (answer === "") return answer;
  if (answer.startsWith(".")) answer = `0${answer}`;
  const [name = "", value, ...more] = answer.split("=");
  // In "x = 5" the short name is dropped.
  if (value !== undefined && more.length === 0 && Array.from(name).length <= 2) answer = value;
  answer = withBraces(answer).replaceAll(" ", "");
  answer = withFractions(answer);
  return asFraction(answer === "0.5" ? half : answer);
}

/** Substitutions, in order. */
const spellings: readonly (readonly [string, string])[] = [
  ["\n", ""],
  [String.raw`\!`, ""],
  ["\\\\", "\\"],
  ["tfrac", "frac"],
  ["dfrac", "frac"],
  [String.raw`\left`, ""],
  [String.raw`\right`, ""],
  [String.raw`^{\circ}`, ""],
  [String.raw`^\circ`, ""],
  [String.raw`\$`, ""],
];

const percents: readonly string[] = [String.raw`\\%`, String.raw`\%`];
const allPercents: readonly string[] = [String.raw`\%`, "%"];

const points: readonly (readonly [string, string])[] = [
  [" .", " 0."],
  ["{.", "{0."],
];

const half = String.raw`\frac{1}{2}`;

/** Drops a unit: `5\text{ cm}`. */
function withoutUnit(text: string): string {
  const [value = "", ...units] = text.split(String.raw`\text{ `);
  if (units.length > 1) throw new RangeError("more than one unit");
  return value;
}

/** Adds braces: `\sqrt3` is `\sqrt{3}`, with only the first character. */
function withBraces(text: string): string {
  const [before = "", ...roots] = text.split(String.raw`\sqrt`);
  return roots.reduce((all, root) => {
    if (root.startsWith("{")) return `${all}\\sqrt${root}`;
    const [first, rest] = firstOf(root);
    return `${all}\\sqrt{${first}}${rest}`;
  }, before);
}

/**
 * Adds braces to `\frac12` and `\frac1{72}`; `\frac{1}2` stays as it is. The text is unchanged if
 * one lacks a denominator.
 */
function withFractions(text: string): string {
  const [before = "", ...fractions] = text.split(String.raw`\frac`);
  let all = before;
  for (const fraction of fractions) {
    if (fraction.startsWith("{")) {
      all += String.raw`\frac` + fraction;
      continue;
    }
    const [above, rest] = firstOf(fraction);
    if (rest === "") return text;
    const [below, after] = firstOf(rest);
    all += below === "{" ? `\\frac{${above}}${rest}` : `\\frac{${above}}{${below}}${after}`;
  }
  return all;
}

/** Converts `3/4`, with whole numbers as Python writes them. */
function asFraction(text: string): string {
  const [, above, below] = /^(0|-?[1-9]\d*)\/(0|-?[1-9]\d*)$/.exec(text) ?? [];
  return above === undefined || below === undefined ? text : `\\frac{${above}}{${below}}`;
}

/** @throws RangeError for an empty text */
function firstOf(text: string): [string, string] {
  const first = text.codePointAt(0);
  if (first === undefined) throw new RangeError("nothing follows");
  const character = String.fromCodePoint(first);
  return [character, text.slice(character.length)];
}
