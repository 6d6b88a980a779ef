/**
 * What verl's own scorers say of thousands of answers (test/golden/scorer-verdicts.jsonl, made by scorer-verdicts.py beside it), and ours: the same. What differs elsewhere is
 * listed with its reason. What is more lenient than verl is so when it is asked for.
 */

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  createDefaultComputeScore,
  scoreGeo3k,
  scoreGsm8k,
  scoreMathDapo,
  scoreMathReward,
  scorePrimeMath,
  scoreSearchR1,
} from "@rayling/reward-manager-registry";

type Pair = readonly [verdicts: string, answer: string, truth: string];

const pairs: readonly Pair[] = readFileSync(
  new URL("../../../test/golden/scorer-verdicts.jsonl", import.meta.url),
  "utf8",
)
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Pair);

const boxed = (answer: string): string => `\\boxed{${answer}}`;

/** In the order of the verdicts. */
const scorers: readonly (readonly [string, (answer: string, truth: string) => boolean])[] = [
  ["math_reward", (answer, truth) => scoreMathReward(boxed(answer), truth) === 1],
  ["math_dapo", (answer, truth) => scoreMathDapo(`Answer: ${answer}`, truth).acc],
  ["prime_math", (answer, truth) => scorePrimeMath(boxed(answer), truth).correct],
  ["geo3k", (answer, truth) => scoreGeo3k(boxed(answer), truth) > 0.5],
  ["gsm8k", (answer, truth) => scoreGsm8k(`#### ${answer}`, truth) === 1],
  ["search_r1", (answer, truth) => scoreSearchR1(`<answer>${answer}</answer>`, truth) === 1],
];

describe("verl's verdicts", () => {
  test("are of enough pairs, and of enough right ones", () => {
    expect(pairs.length).toBeGreaterThanOrEqual(5000);
    for (const index of [2, 3]) {
      const right = pairs.filter(([verdicts]) => verdicts[index] === "1");
      expect(right.length).toBeGreaterThan(pairs.length / 5);
    }
  });

  test.each(scorers)("%s says the same", (name, isRight) => {
    const at = scorers.findIndex(([one]) => one === name);
    const others = pairs.filter(
      ([verdicts, answer, truth]) => isRight(answer, truth) !== (verdicts[at] === "1"),
    );
    expect(others).toEqual([]);
  });

  /** Found among other answers made at random, about two in a thousand of them. */
  test.each([
    [
      "sympy leaves a division by zero as it is in a root",
      "sqrt(a/((a) 0))",
      "sqrt(a/(a*0))",
      true,
    ],
    ["sympy does not find these roots equal", "sqrt(2n*(-n))", "sqrt(2n)*sqrt(-n)", false],
    [
      "sympy rounds a number with a point in another order",
      "(1e2/y)(y/6)",
      "(y*6^-1)*(100/((2*y)/2))",
      false,
    ],
    ["sympy makes whole numbers of those with a point in denominators", "x/a^2.0", "x/a^2", true],
    ["sympy makes 1 of a power of 1.0", "(1.0)^x", "1^x", true],
  ])("differ where %s", (_why, answer, truth, verl) => {
    expect(scorePrimeMath(boxed(answer), truth).correct).toBe(!verl);
  });
});

describe("more lenient than verl", () => {
  const lenient = createDefaultComputeScore({ lenient: true });
  const strict = createDefaultComputeScore();
  const score = (
    computeScore: typeof lenient,
    dataSource: string,
    answer: string,
    truth: string,
  ): unknown =>
    computeScore({
      dataSource,
      solutionStr: boxed(answer),
      groundTruth: truth,
      extraInfo: {},
    });

  test.each([
    ["\\sqrt2", "1.41421356237310"],
    ["0.1x+0.2x", "0.3x"],
    ["\\texttt{x}+1", "x+1"],
    ["x\\lt 2", "x<2"],
    ["\\cfrac{x}{2}", "\\frac{x}{2}"],
  ])("%s and %s are the same only if asked", (answer, truth) => {
    for (const [source, right] of [
      ["numina_cn_k12", 1],
      ["hiyouga/geometry3k", 0.9],
    ] as const) {
      expect(score(strict, source, answer, truth)).toBe(0);
      expect(score(lenient, source, answer, truth)).toBe(right);
    }
  });

  // prime_math compares numbers by itself, to one in ten thousand.
  test.each([
    ["\\frac13", "0.333333333333333"],
    ["0.1+0.2", "0.3"],
    ["x\\ne 2", "x\\neq 2"],
  ])("%s and %s are the same to geo3k only if asked", (answer, truth) => {
    expect(scoreGeo3k(boxed(answer), truth)).toBe(0);
    expect(scoreGeo3k(boxed(answer), truth, { lenient: true })).toBe(0.9);
    expect(scorePrimeMath(boxed(answer), truth, { lenient: true }).correct).toBe(true);
  });

  test.each([
    ["2xy^2", "2x^2y^2"],
    ["x+1", "x"],
    ["0.3333", "\\frac13"],
    ["\\hspace{5}", "5"],
  ])("%s and %s are not, even so", (answer, truth) => {
    expect(scoreGeo3k(boxed(answer), truth, { lenient: true })).toBe(0);
  });

  test("all that verl takes for right is right", () => {
    const refused = pairs.filter(
      ([verdicts, answer, truth]) =>
        (verdicts[2] === "1" || verdicts[3] === "1") &&
        !(
          scorePrimeMath(boxed(answer), truth, { lenient: true }).correct ||
          scoreGeo3k(boxed(answer), truth, { lenient: true }) > 0.5
        ),
    );
    expect(refused).toEqual([]);
  });

  test("a setting that is no yes or no is an error", () => {
    expect(() => createDefaultComputeScore({ lenient: "yes" as unknown as boolean })).toThrow(
      expect.objectContaining({ code: "INVALID_SCORER_OPTION", option: "lenient" }),
    );
  });
});

/** verl 0.9.1 says these. */
describe("a name begins with what begins a name in Python", () => {
  test.each([
    ["½+0", "½", false],
    ["¾", "+¾", false],
    ["x½", "½x", false],
    ["x½+1", "1+x½", true],
    ["Ⅷ+1", "1+Ⅷ", true],
    ["一+1", "1+一", true],
    ["①+1", "1+①", false],
    ["x①+1", "1+x①", false],
    ["x፩+1", "1+x፩", false],
    ["ªx", "xª", true],
    ["_½", "½_", false],
  ])("%s and %s: %s", (answer, truth, isRight) => {
    expect(scoreGeo3k(boxed(answer), truth)).toBe(isRight ? 0.9 : 0);
    expect(scorePrimeMath(boxed(answer), truth).correct).toBe(isRight);
  });
});

/** verl 0.9.1 says these. */
describe("a name before a parenthesis with a factorial is called, and there is nothing to call", () => {
  test.each([
    ["n(n-1)!", "(n)!", false],
    ["x(y)!", "x*(y)!", false],
    ["2+theta(3)!", "6theta+2", false],
    ["x_1(y)!", "(y)!*x_1", false],
    ["x(y)!!", "(y)!!*x", false],
    ["n*(n-1)!", "(n)!", true],
    ["xx(y)!", "(y)!*x*x", true],
    ["(x)(y)!", "x*y!", true],
    ["2(y)!", "(y)!*2", true],
    ["x(y)(y)!", "x*y*y!", true],
    ["x1(y)!", "x*1*y!", true],
    ["x(3!)", "6x", true],
  ])("%s and %s: %s", (answer, truth, isRight) => {
    expect(scoreGeo3k(boxed(answer), truth)).toBe(isRight ? 0.9 : 0);
    expect(scorePrimeMath(boxed(answer), truth).correct).toBe(isRight);
  });
});

/** verl 0.9.1 says these. A root of a rounding error is far from zero. */
describe("roots of what is zero are zero", () => {
  test.each([
    ["sqrt(x - x)", "sqrt(-(x-sqrt(x)^2))", true],
    ["sqrt(x-x)", "sqrt(x-sqrt(x^2))", false],
    ["0.0001x", "0.0001y", false],
  ])("%s and %s: %s", (answer, truth, isRight) => {
    expect(scoreGeo3k(boxed(answer), truth)).toBe(isRight ? 0.9 : 0);
    expect(scorePrimeMath(boxed(answer), truth).correct).toBe(isRight);
  });
});

describe("a power binds to the letter before it, a command to its arguments", () => {
  test.each([
    ["xy^2", "x*y^2", true],
    ["4ac^2", "4c^2a", true],
    ["2xy^2", "2x^2y^2", false],
    ["ab!", "(ab)!", true],
    ["\\color{red}{5}", "5", true],
    ["\\textcolor{red}{5}", "5", true],
    ["{\\color{red}5}", "5", true],
    ["5\\label{a}", "5", true],
    ["\\fcolorbox{red}{blue}{5}", "5", true],
    ["\\texttt{5}", "5", false],
    ["\\hspace{5}", "5", false],
  ])("%s and %s: %s", (answer, truth, isRight) => {
    expect(scoreGeo3k(boxed(answer), truth)).toBe(isRight ? 0.9 : 0);
    expect(scorePrimeMath(boxed(answer), truth).correct).toBe(isRight);
  });
});
