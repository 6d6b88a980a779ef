/** Scorers on answers written in many ways, as verl's own code scored them (fixtures/written-answers.json), and on texts made to keep them busy. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import {
  createDefaultComputeScore,
  defaultComputeScore,
  routeDataSource,
  scoreGeo3k,
  scoreGsm8k,
  scoreMathDapo,
  scoreMathReward,
  scorePrimeCode,
  scorePrimeMath,
  scoreSandboxFusion,
  scoreSearchR1,
} from "@rayling/reward-manager-registry";
import { sized } from "../../../test/fixtures/suite.ts";
import { lastBoxed } from "../src/scorers/math/boxed.ts";
import { areEqualExpressions } from "../src/scorers/math/expression/equality.ts";
import { parseExpression } from "../src/scorers/math/expression/parser.ts";
import { compareTerms } from "../src/scorers/math/expression/terms.ts";
import { gradeAnswer, mathRulerGrader } from "../src/scorers/math/grade-answer.ts";
import { latexToText } from "../src/scorers/math/latex/text.ts";
import { isCorrectMinerva, normalizeFinalAnswer } from "../src/scorers/math-dapo.ts";
import { isEquivalentMath } from "../src/scorers/math-reward.ts";
import { lastCodePoints, strip, toFloat } from "../src/scorers/python-text.ts";
import { normalizeAnswer } from "../src/scorers/search-r1.ts";

type Case = readonly [
  solution: string,
  truth: string,
  reward: number,
  minerva: readonly [boolean, string],
  prime: readonly [boolean, boolean, string],
  ruler: boolean,
  words: string,
  answer: string,
  isEquivalent: boolean,
  normalized: string,
];
const { cases } = JSON.parse(
  readFileSync(new URL("fixtures/written-answers.json", import.meta.url), "utf8"),
) as { cases: readonly Case[] };

describe("an option that there is not", () => {
  const misspelt: readonly (readonly [string, (options: never) => unknown])[] = [
    ["sandboxFusionURL", createDefaultComputeScore],
    ["methods", (options) => scoreGsm8k("#### 1", "1", options)],
    ["strictBox", (options) => scoreMathDapo("1", "1", options)],
    ["lenent", (options) => scorePrimeMath("1", "1", options)],
    ["leniant", (options) => scoreGeo3k("1", "1", options)],
    ["substr", (options) => scoreSearchR1("1", "1", options)],
    ["toString", (options) => routeDataSource("openai/gsm8k", options)],
    ["timeoutMs", (options) => scorePrimeCode("1", {}, options)],
    ["uri", (options) => scoreSandboxFusion("1", {}, options)],
  ];
  test.each(misspelt)("%s is refused, and the ones there are are named", async (option, score) => {
    const scoring = (async () => score({ [option]: true } as never))();
    await expect(scoring).rejects.toMatchObject({
      code: "INVALID_SCORER_OPTION",
      option,
      received: "unknown",
      message: expect.stringContaining(`Scorer option ${option} must be one of `),
    });
  });

  test("options that are no object are refused", () => {
    expect(() => scoreGeo3k("1", "1", true as never)).toThrow(
      "Scorer option options must be an object; it is true.",
    );
  });
});

describe("answers written in many ways", () => {
  test.each(cases.map((one, index) => [index, one] as const))("%d", (_index, one) => {
    const [solution, truth, reward, minerva, prime, ruler, words, answer, isEquivalent, plain] =
      one;
    const { correct, pred } = isCorrectMinerva(lastCodePoints(solution, 300), truth);
    const graded = scorePrimeMath(solution, truth);
    const box = lastBoxed(solution);
    expect({
      reward: scoreMathReward(solution, truth),
      minerva: [correct, pred],
      prime: [graded.correct, graded.formatCorrect, graded.extracted],
      ruler: gradeAnswer(box === null ? "None" : strip(box), truth, mathRulerGrader),
      words: normalizeAnswer(solution),
      isEquivalent: isEquivalentMath(answer, truth),
      plain: normalizeFinalAnswer(answer),
    }).toEqual({ reward, minerva, prime, ruler, words, isEquivalent, plain });
  });
});

describe("expressions are equal for all values of their letters", () => {
  test.each([
    ["2x", "x*2"],
    ["(x+1)^2", "x^2+2x+1"],
    ["sqrt(12)", "2sqrt(3)"],
    ["1/2x", "x/2"],
    ["x(y+1)", "xy + x"],
    ["-x^2", "-(x^2)"],
    ["2^-1", "0.5"],
    ["5!", "120"],
    ["1e3", "1000"],
    ["2pi", "pi*2"],
    ["x_1+1", "1+x_1"],
    ["xy^2", "yxy"],
    ["x2", "2x"],
    ["ab!", "(ba)!"],
    ["x*(x-1)!", "x!"],
    ["6!!", "48"],
    ["ln 4", "2ln(2)"],
    ["ln(x)", "ln(x)"],
    ["ln^2 (3)", "ln(3)^2"],
    ["0.5x", "x/2"],
    ["0.1", "1/10"],
    ["(0.1-x)(x+12)", "(1/10-x)(12+x)"],
    ["0.50000000000000000000", "1/2"],
    ["sqrt(0.25)", "1/2"],
    ["1/sqrt(8)", "sqrt(2)/4"],
    ["sqrt(-4)", "2j"],
    ["0.25^x", "(1/4)^x"],
    ["200!/199!", "200"],
    ["0^x*x", "x*0^x"],
    ["1+201!", "201!+1"],
    ["sqrt(3+2sqrt(2))", "1+sqrt(2)"],
    ["5+1/(1/0)", "5"],
    ["n!=1", "k!=2"],
    ["x//2+1", "1+x//2"],
    ["7//2+0.5", "3.5"],
    ["-7//2*x", "-4x"],
    ["7.5//2*x", "3x"],
  ])("%s and %s", (left, right) => {
    expect(areEqualExpressions(left, right)).toBe(true);
  });

  test.each([
    ["sqrt(x^2)", "x"],
    ["x", "y"],
    ["x_1", "x_2"],
    ["1/3", "0.3333333333"],
    ["pi", "3.14159265"],
    ["1/0", "1/0"],
    ["x", "x+"],
    ["x", "(x"],
    ["x=1", "x=1"],
    ["ff(x)", "ff(x)"],
    ["1/0", "1/0+x"],
    ["0.1+0.2", "0.3"],
    ["0.333333333333333", "1/3"],
    ["1.4142135623731", "sqrt(2)"],
    ["x^0.5", "sqrt(x)"],
    ["0.33333333333333333333", "1/3"],
    ["333333333333333/1000000000000000+0", "1/3"],
    ["1000000000000x+1", "1000000000000x+2"],
    ["3!!!", "720"],
    ["ab!", "a(b!)"],
    ["03", "3"],
    ["x<1", "x<1"],
    ["x//2", "x//3"],
    ["7//2", "7/2"],
    ["1//0", "1//0"],
    ["5 !", "120"],
    ["(x+1)+\n(x)", "2x+"],
    ["(".repeat(5000) + "x" + ")".repeat(5000), "x"],
  ])("not %s and %s", (left, right) => {
    expect(areEqualExpressions(left, right)).toBe(false);
  });
});

test.each([
  [String.raw`\frac{x+1}{y-2}`, "x+1/y-2"],
  [String.raw`\sqrt[3]{2}`, "√(2)"],
  [String.raw`2\pi r`, "2πr"],
  [String.raw`\left[1,2\right)`, "[1,2)"],
  [String.raw`\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}`, "[ 1 2; 3 4 ]"],
  [String.raw`x\in\mathbb{R}`, "x∈ℝ"],
  [String.raw`\mathbf{v}\hat{x}`, "𝐯x̂"],
  [String.raw`\color{red}{5}`, "5"],
  [String.raw`\textcolor[rgb]{1,0,0}{5}`, "5"],
  [String.raw`\fcolorbox{red}{blue}{5}\label{a}`, "5"],
  [String.raw`\texttt{5}\phantom{6}`, "6"],
  [String.raw`\xrightarrow[a]{b}5\hspace*{1cm}`, "5"],
  [String.raw`\large 5\quad\;x`, "5   x"],
  [String.raw`\(\alpha x\)`, "α x"],
  [String.raw`\verb|a{b|c--d`, "c–d"],
  [String.raw`\sqrt\sqrt2`, undefined],
  [String.raw`\sqrt[3]`, undefined],
  [String.raw`\href{a}{b}`, undefined],
  [String.raw`\foo{3} 90^\circ`, "3 90^∘"],
  [String.raw`1{,}000\;a\!b`, "1,000 ab"],
  [String.raw`\frac{1}`, "%s/%s1"],
  ["}{", ""],
  ["{".repeat(200), undefined],
])("LaTeX as text: %s", (latex, text) => {
  expect(latexToText(latex)).toBe(text);
});

test("LaTeX as text: columns have one width, unless they would be spaces almost alone", () => {
  const matrix = (...cells: readonly string[]): string =>
    String.raw`\begin{pmatrix}${cells.join("&")}\end{pmatrix}`;
  const wide = "1".repeat(1000);
  expect(latexToText(matrix("2", wide))).toBe(`[ ${" ".repeat(999)}2 ${wide} ]`);
  expect(latexToText(matrix(wide, ...Array(200).fill("2")))).toBeUndefined();
  expect(scoreGeo3k(String.raw`\boxed{${matrix(wide, "2")}}`, matrix(` ${wide}`, "2"))).toBe(0.9);
  // Each level has 20 columns of the width of the one within it.
  let nested = "1";
  for (let level = 0; level < 8; level++) nested = matrix(nested, ...Array(20).fill("2"));
  expect(latexToText(nested)).toBeUndefined();
});

test.each([
  ["1_000", 1000],
  [" 1e3\n", 1000],
  ["١٢", 12],
  ["𝟗", 9],
  ["-inf", -Infinity],
  ["nan", Number.NaN],
  ["1__0", undefined],
  ["", undefined],
  ["0x10", undefined],
  ["\u200912\x85", 12],
  ["12\x1f", undefined],
])("Python's float of %j is %j", (text, value) => {
  expect(toFloat(text)).toEqual(value);
});

test("prime_math: a sentence ends at its place in the text in lower case", () => {
  // Python's lower makes two characters of İ, as here.
  expect(scorePrimeMath("İ answer is İ 12. cm", "12.").extracted).toBe("İ 12.");
});

test("geo3k: nine tenths for the answer, one for the form", () => {
  const form = (answer: string): string => `<think>so</think> it is \\boxed{${answer}}.`;
  expect(scoreGeo3k(form("42"), "42")).toBe(1);
  expect(scoreGeo3k(form("41"), "42")).toBeCloseTo(0.1);
  expect(scoreGeo3k(String.raw`\boxed{2\sqrt{3}}`, String.raw`\sqrt{12}`)).toBeCloseTo(0.9);
  expect(scoreGeo3k("42", "42")).toBe(0);
  expect(scoreGeo3k("42", "42", { useBoxed: false, formatScore: 0.5 })).toBe(0.5);
  expect(scoreGeo3k("</think><think>x\\boxed{1}", "1")).toBeCloseTo(0.9);
});

describe("the default function", () => {
  const score = (dataSource: string, solutionStr: string, groundTruth: unknown): unknown =>
    defaultComputeScore({ dataSource, solutionStr, groundTruth, extraInfo: {} });

  test("gives each data source its scorer", () => {
    expect(score("hiyouga/geometry3k", String.raw`\boxed{5}`, "5")).toBeCloseTo(0.9);
    expect(score("numina_cn_k12", String.raw`\boxed{1/2}`, "0.5")).toBe(1);
    expect(score("numina_cn_k12", String.raw`\boxed{42}`, 42)).toBe(1);
    expect(score("numina_cn_k12", String.raw`\boxed{1/2}`, 0.5)).toBe(1);
    expect(score("numina_cn_k12", String.raw`\boxed{9007199254740993}`, 9007199254740993n)).toBe(1);
    expect(score("searchR1_nq", "<answer>The Paris</answer>", { target: ["paris"] })).toBe(1);
    expect(score("aime24", "Answer: 7", "7")).toEqual({ score: 1, acc: true, pred: "7" });
  });

  test.each([
    ["searchR1_nq", "paris"],
    ["searchR1_nq", { target: [1] }],
    ["math", 5],
    ["numina_cn_k12", null],
    ["numina_cn_k12", [5]],
  ])("refuses the ground truth of %s that is %j", (dataSource, truth) => {
    expect(() => score(dataSource, "5", truth)).toThrow(
      expect.objectContaining({ code: "INVALID_SAMPLE", field: "groundTruth" }),
    );
  });
});

/** Each would take many minutes where time grows with the square of the length. */
describe("texts made to keep a scorer busy", () => {
  const long = sized({ gate: 500_000, full: 1_000_000 });
  test.each([
    ["dollars", "$ ".repeat(long / 2)],
    ["open texts", String.raw`\text{`.repeat(long / 6)],
    ["closed texts", String.raw`\text{}a`.repeat(long / 8)],
    ["boxes", String.raw`\boxed{`.repeat(long / 7)],
    ["spaces", " ".repeat(long)],
    ["fractions", "frac{".repeat(long / 5)],
    ["commas", "1,".repeat(long / 2)],
    ["tags", "<answer>".repeat(long / 8)],
    ["answers", "answer".repeat(long / 6)],
    ["thoughts", `<think>${"</think>".repeat(long / 8)}`],
    ["circles", String.raw`\pi`.repeat(long / 3)],
  ])("%s", (_what, text) => {
    normalizeFinalAnswer(text);
    scoreMathDapo(text, "1");
    scoreMathReward(text, "1");
    scoreSearchR1(text, "1");
    scoreGeo3k(text, "1");
    scorePrimeMath(text, "1");
  });
});

/** Each would take for ever where numbers, or sums that are multiplied out, had no limit. */
test.each([
  ["powers of powers", "9**9**9**9"],
  // No value at a point decides: 171! is larger than a number can be.
  ["powers of powers of letters", `171!+${"x^".repeat(60)}x`],
  ["sums to powers", `${"(".repeat(20)}x+y+1${")^9".repeat(20)}`],
  ["a product of sums", "(x+y+1)^9".repeat(50)],
  [
    "fractions of primes",
    `x+${Array.from({ length: 1000 }, (_, index) => `1/${2 * index + 3}`).join("+")}`,
  ],
  ["long fractions", `1/${"7".repeat(5000)}+x`],
  ["large factorials", "x+150!/149!".repeat(300)],
  ["open roots", String.raw`\sqrt[`.repeat(3000)],
  ["factorials", `x*1${"!".repeat(20_000)}`],
  ["functions", "ln ".repeat(2000)],
  ["numbers without end beside long ones", "1e300*1e300*0.12345678901234567890"],
])("%s end", (_what, text) => {
  for (const answer of [text, `0.1+${text}`]) {
    // The same as it is written, and as it is worked out.
    expect(scoreGeo3k(String.raw`\boxed{${answer}}`, answer)).toBe(0.9);
    scoreGeo3k(String.raw`\boxed{${answer}}`, `${answer}+0`);
    scorePrimeMath(String.raw`\boxed{${answer}}`, `0+${answer}`);
  }
});

/** The bound is on what the steps handle: the number of steps alone would allow each of them. */
describe("the work of a comparison has a bound", () => {
  const compared = (left: string, right: string): string => {
    const [one, other] = [parseExpression(left), parseExpression(right)];
    return one === undefined || other === undefined ? "unread" : compareTerms(one, other);
  };
  const letters = (count: number): string[] =>
    Array.from({ length: count }, (_, index) => `x_${index}`);

  test.each([
    ["digits of factors", `${"(1/7+x)*".repeat(100)}1`],
    ["digits of terms", `1/199!${"+1/3+1/5".repeat(1000)}`],
    ["letters of a term", letters(500).join("*")],
    ["terms within signs", `${"-(".repeat(90)}${letters(1000).join("+")}${")".repeat(90)}`],
    ["roots of large numbers", `${"sqrt(200!)+".repeat(300)}1`],
  ])("%s", (_what, text) => {
    expect(compared(text, text)).toBe("unknown");
  });

  test("a part within parts is as short as any, and equal to itself", () => {
    let [one, other] = ["sqrt(3)", "sqrt(12)/2"];
    for (let level = 0; level < 12; level++) {
      [one, other] = [`ln((${one}+1/7)^9)`, `ln((1/7+${other})^9)`];
    }
    expect(compared(one, other)).toBe("same");
    expect(compared(one, `${other}+1`)).toBe("different");
    expect(scoreGeo3k(String.raw`\boxed{171!+${one}}`, `${other}+171!`)).toBe(0.9);
    expect(scoreGeo3k(String.raw`\boxed{171!+${one}}`, "1/2")).toBe(0);
  });
});

describe("expressions of any length are worked out", () => {
  const long = sized({ gate: 20_000, full: 100_000 });
  test.each([
    ["sums", `${"1+".repeat(long)}1`, `${"1+".repeat(long)}1+0`],
    ["differences", `x${"-x".repeat(long)}`, `x${"-x".repeat(long)}-0`],
    ["products", `x${"*1".repeat(long)}`, `x${"*1".repeat(long)}*1`],
    ["products without a sign", `x${"(1)".repeat(long)}`, "x*1"],
  ])("%s", (_what, answer, truth) => {
    const solution = String.raw`\boxed{${answer}}`;
    expect(scoreGeo3k(solution, truth)).toBe(0.9);
    expect(scorePrimeMath(solution, truth).correct).toBe(true);
    expect(scorePrimeMath(solution, "3x").correct).toBe(false);
  });

  test("names, which are products too large to be compared", () => {
    const solution = String.raw`\boxed{${"x".repeat(long)}}`;
    expect(scoreGeo3k(solution, "3x")).toBe(0);
  });
});

test("an answer among more than ten tags is worth a quarter, unless a part will do", () => {
  const answer = "<answer>x</answer>";
  expect(scoreSearchR1(answer.repeat(10), "x")).toBe(1);
  expect(scoreSearchR1(answer.repeat(11), "x")).toBe(0.25);
  expect(scoreSearchR1(`${answer}${"</answer>".repeat(10)}`, "x")).toBe(0.25);
  expect(scoreSearchR1(answer.repeat(11), "x", { substring: true })).toBe(1);
});
