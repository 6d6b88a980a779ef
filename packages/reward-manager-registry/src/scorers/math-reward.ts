/**
 * verl's scorer of the MATH data sets (verl/utils/reward_score/math_reward.py, 0.10.0.dev): the
 * last box against the ground truth, both stripped of LaTeX's spelling variants. It compares texts,
 * never values: "2/4" is not "1/2".
 *
 * As in Python, a text that cannot be stripped (`\frac` at the very end, two units) is compared as
 * it is.
 */

import { lastBalanced } from "./math/boxed.ts";
import { stripMathString } from "./math/strip-math-string.ts";

/** Returns 1 if the last `\boxed` contains the ground truth, else 0. */
export function scoreMathReward(solutionStr: string, groundTruth: string): number {
  const boxed = lastBoxedOnlyString(solutionStr);
  const answer = boxed === null ? undefined : unboxed(boxed);
  return answer !== undefined && isEquivalentMath(answer, groundTruth) ? 1 : 0;
}

/**
 * Returns the last box with its command, or null. "\boxed 5" anywhere has precedence over braces
 * and ends at the next dollar sign. An \fbox counts if there is no \boxed, and then contains no
 * answer.
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

/** Returns undefined for a text that is no box: "\fbox{3}", "\boxed3{}". */
function unboxed(text: string): string | undefined {
  if (text.includes(spacedBox)) {
    return text.startsWith(spacedBox) ? text.slice(spacedBox.length) : undefined;
  }
  return text.startsWith(`${box}{`) ? text.slice(box.length + 1, -1) : undefined;
}

/** Whether two answers are equal except for their spelling. Two missing answers are. */
export function isEquivalentMath(first: string | null, second: string | null): boolean {
  if (first === null || second === null) return first === second;
  try {
    return stripMathString(first) === stripMathString(second);
  } catch (error) {
    if (error instanceof RangeError) return first === second;
    throw error;
  }
}
