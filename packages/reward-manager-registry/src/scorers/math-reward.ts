/**
 * verl's scorer of the MATH data sets (verl/utils/reward_score/math_reward.py, 0.10.0.dev): the last box against the ground truth, both stripped of what
 * LaTeX lets people write in several ways. Texts are compared, never values: "2/4" is not "1/2".
 *
 * As in Python, what the stripping cannot deal with (`\frac` at the very end, two units) is compared as it is.
 */

import { lastBalanced } from "./boxed.ts";

/** 1 if the last `\boxed` holds the ground truth, else 0. */
export function scoreMathReward(solutionStr: string, groundTruth: string): number {
  const boxed = lastBoxedOnlyString(solutionStr);
  const answer = boxed === null ? undefined : unboxed(boxed);
  return answer !== undefined && isEquivalentMath(answer, groundTruth) ? 1 : 0;
}

/**
 * The last box with its command, or null. "\boxed 5", wherever it stands, wins over braces and ends at the next dollar sign; an \fbox is found where there is no
 * \boxed, and then holds no answer.
 */
export function lastBoxedOnlyString(text: string): string | null {
  const bare = text.lastIndexOf(spacedBox);
  if (bare >= 0) {
    const rest = text.slice(bare + spacedBox.length);
    return spacedBox + (rest.split("$", 1)[0] ?? "");
  }
  const range = lastBalanced(text, text.includes(box) ? box : String.raw`\fbox`);
  return range === undefined ? null : text.slice(...range);
}

const box = String.raw`\boxed`;
const spacedBox = `${box} `;

/** Undefined for what is no box: "\fbox{3}", "\boxed3{}". */
function unboxed(text: string): string | undefined {
  if (text.includes(spacedBox)) {
    return text.startsWith(spacedBox) ? text.slice(spacedBox.length) : undefined;
  }
  return text.startsWith(`${box}{`) ? text.slice(box.length + 1, -1) : undefined;
}

/** Whether two answers are the same but for how they are written. Two that are missing are. */
export function isEquivalentMath(first: string | null, second: string | null): boolean {
  if (first === null || second === null) return first === second;
  try {
    return stripMathString(first) === stripMathString(second);
  } catch (error) {
    if (error instanceof RangeError) return first === second;
    throw error;
  }
}

/** The answer in one way of writing. @throws RangeError for `\frac` or `\sqrt` at the very end, and for two units */
export function stripMathString(text: string): string {
  let answer = text;
  for (const [written, meant] of spellings) answer = answer.replaceAll(written, meant);
  answer = withoutUnit(answer);
  for (const [written, meant] of marks) answer = answer.replaceAll(written, meant);
  if (answer === "") return answer;
  if (answer.startsWith(".")) answer = `0${answer}`;
  const [name = "", value, ...more] = answer.split("=");
  // "x = 5": so short a name says nothing.
  if (value !== undefined && more.length === 0 && [...name].length <= 2) answer = value;
  answer = withBraces(answer).replaceAll(" ", "");
  answer = withFractions(answer);
  return asFraction(answer === "0.5" ? half : answer);
}

/** In this order. */
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

const marks: readonly (readonly [string, string])[] = [
  [String.raw`\\%`, ""],
  [String.raw`\%`, ""],
  [" .", " 0."],
  ["{.", "{0."],
];

const half = String.raw`\frac{1}{2}`;

/** `5\text{ cm}` */
function withoutUnit(text: string): string {
  const [value = "", ...units] = text.split(String.raw`\text{ `);
  if (units.length > 1) throw new RangeError("more than one unit");
  return value;
}

/** `\sqrt3` is `\sqrt{3}`: the first character alone. */
function withBraces(text: string): string {
  const [before = "", ...roots] = text.split(String.raw`\sqrt`);
  return roots.reduce((all, root) => {
    if (root.startsWith("{")) return `${all}\\sqrt${root}`;
    const [first, rest] = firstOf(root);
    return `${all}\\sqrt{${first}}${rest}`;
  }, before);
}

/** `\frac12`, `\frac1{72}` and `\frac{1}2`, of which the last stays as it is; nothing is changed where one has no denominator. */
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

/** `3/4`, of whole numbers as Python writes them. */
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
