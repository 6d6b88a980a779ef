/** What a score function may take: everything that can be called as it is meant, and a refusal of everything else. No score is made of undefined values. */

import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { transformSync } from "esbuild";
import { afterAll, describe, expect, test } from "vitest";
import {
  loadComputeScore,
  loadRewardManagerClass,
  loadScorer,
  scoreSample,
} from "@rayling/reward-manager-registry";
import type { ComputeScore, ScoreInput } from "@rayling/reward-manager-registry";

const baseDirectory = realpathSync(mkdtempSync(join(tmpdir(), "rayling-calling-")));
afterAll(() => rmSync(baseDirectory, { recursive: true }));

let modules = 0;
/** A module of its own, as a user would write it. */
function moduleOf(text: string, kind = "mjs"): string {
  const path = `module-${modules++}.${kind}`;
  writeFileSync(join(baseDirectory, path), text);
  return path;
}

const input: ScoreInput = {
  dataSource: "the source",
  solutionStr: "the solution",
  groundTruth: "the truth",
  extraInfo: { question: "why?" },
};
const all = "the source|the solution|the truth|why?";

async function scoreBy(
  text: string,
  rewardKwargs: Readonly<Record<string, unknown>> = {},
): Promise<unknown> {
  const path = moduleOf(text);
  const computeScore = await loadComputeScore({ path, rewardKwargs }, { baseDirectory });
  return await computeScore(input);
}

const join4 = (...names: string[]): string =>
  `[${names.slice(0, 3).join(", ")}, ${names[3]}.question].join("|")`;
const snake = ["data_source", "solution_str", "ground_truth", "extra_info"];
const camel = ["dataSource", "solutionStr", "groundTruth", "extraInfo"];
const short = ["e", "t", "n", "r"];

describe("a thenable of a module's own is awaited as await does", () => {
  test.each([
    ["settles at once and returns nothing", "then(settle) { settle(0.5); }"],
    ["settles later", "then(settle) { setTimeout(settle, 0, 0.5); }"],
    ["settles with another", "then(settle) { settle({ then: (again) => void again(0.5) }); }"],
    ["settles twice, and throws", "then(settle) { settle(0.5); settle(1); throw 2; }"],
  ])("%s", async (_, then) => {
    expect(await scoreBy(`export const computeScore = () => ({ ${then} });`)).toBe(0.5);
    const list = `export const computeScore = (data_source, solution_str) => ({ ${then} });`;
    expect(await scoreBy(list)).toBe(0.5);
  });

  test.each([
    ["is rejected", "then(_, fail) { fail(new Error('mine')); }"],
    ["throws", "then() { throw new Error('mine'); }"],
  ])("%s", async (_, then) => {
    const scoring = scoreBy(`export const computeScore = () => ({ ${then} });`);
    await expect(scoring).rejects.toThrow("mine");
  });
});

describe("a function that declares several parameters gets verl's arguments", () => {
  const table: [string, string][] = [
    [
      "verl's names",
      `export function compute_score(${snake.join()}) { return ${join4(...snake)}; }`,
    ],
    ["our names", `export const computeScore = (${camel.join()}) => ${join4(...camel)};`],
    [
      "asynchronous",
      `export async function compute_score(${snake.join()}) { return ${join4(...snake)}; }`,
    ],
    [
      "the last with a default",
      `export function compute_score(data_source, solution_str, ground_truth, extra_info = null) { return ${join4(...snake)}; }`,
    ],
    [
      "all with defaults, so that its length is 0",
      `export function compute_score(${snake.map((one) => `${one} = ""`).join()}) { return ${join4(...snake)}; }`,
    ],
    [
      "all but the first with defaults",
      `export function compute_score(data_source, solution_str = "", ground_truth = "", extra_info = {}) { return ${join4(...snake)}; }`,
    ],
    [
      "in an order of its own, as Python's keywords may be",
      `export function compute_score(solution_str, ground_truth, extra_info, data_source) { return ${join4(...snake)}; }`,
    ],
    [
      "names that a bundler has shortened",
      `export const computeScore = (e,t,n,r) => ${join4(...short)};`,
    ],
    [
      "names that a compiler has numbered",
      `export function computeScore(data_source_1, solution_str_1, ground_truth_1, extra_info_1) { return ${join4(...snake.map((one) => `${one}_1`))}; }`,
    ],
    [
      "names that nobody knows",
      `export const computeScore = (where, said, right, more) => ${join4("where", "said", "right", "more")};`,
    ],
    [
      "some known names, in verl's order",
      `export const computeScore = (dataSource, solution, groundTruth, info) => ${join4("dataSource", "solution", "groundTruth", "info")};`,
    ],
    [
      "names that mark what is not used",
      `export const computeScore = (_, response, _answer, info) => ["the source", response, _answer, info.question].join("|");`,
    ],
    [
      "a word of its own that has a default",
      `export const computeScore = (dataSource, response, answer, bonus = "why?") => [dataSource, response, answer, bonus].join("|");`,
    ],
    [
      "a bound function",
      `function score(${snake.join()}) { return ${join4(...snake)}; } export const computeScore = score.bind(null);`,
    ],
    [
      "a wrapper that says how many",
      `const score = (${snake.join()}) => ${join4(...snake)}; export const computeScore = Object.defineProperty((...args) => score(...args), "length", { value: 4 });`,
    ],
    [
      "comments and odd defaults in between",
      `export function compute_score(data_source /* (a, b) */, solution_str = ")=>{", ground_truth = [1, 2].map((x) => x), extra_info = /[)]/) { return ${join4(...snake)}; }`,
    ],
    [
      "a method of a class",
      `export default class { #x = "|"; compute_score(${snake.join()}) { return [data_source, solution_str, ground_truth, extra_info.question].join(this.#x); } }`,
    ],
    [
      "a method of an object",
      `export const computeScore = { between: "|", async computeScore(${camel.join()}) { return [dataSource, solutionStr, groundTruth, extraInfo.question].join(this.between); } };`,
    ],
    [
      "an arrow of a class",
      `export default class { computeScore = (${camel.join()}) => ${join4(...camel)}; }`,
    ],
    [
      "a method by a computed name",
      `export default class { ["compute" + "Score"](${camel.join()}) { return ${join4(...camel)}; } }`,
    ],
    [
      "an inherited method",
      `class Parent { computeScore(${camel.join()}) { return ${join4(...camel)}; } } export default class extends Parent {}`,
    ],
    [
      "a method that asks its parent",
      `class Parent { computeScore(${camel.join()}) { return ${join4(...camel)}; } } export default class extends Parent { computeScore(${camel.join()}) { return super.computeScore(${camel.join()}); } }`,
    ],
  ];
  test.each(table)("%s", async (_name, text) => {
    expect(await scoreBy(text)).toBe(all);
  });

  test("reward_kwargs stand behind them by their names, or in an object of all, and win over arguments", async () => {
    const kwargs = { bonus: 3, scale: 2 };
    const texts = [
      "(data_source, solution_str, ground_truth, extra_info, scale, bonus) => bonus * 10 + scale",
      "(data_source, solution_str, ground_truth, extra_info, scale = 1, bonus = 1) => bonus * 10 + scale",
      "(data_source, solution_str, ground_truth, extra_info, { bonus, scale }) => bonus * 10 + scale",
      "(data_source, solution_str, ground_truth, extra_info, ...[{ bonus, scale }]) => bonus * 10 + scale",
      "(data_source, solution_str, ground_truth, extra_info, kwargs) => kwargs.bonus * 10 + kwargs.scale",
      "(e, t, n, r, a, o) => a * 10 + o",
      "({ bonus, scale = 1 }) => bonus * 10 + scale",
    ];
    for (const text of texts) {
      expect(await scoreBy(`export const computeScore = ${text};`, kwargs), text).toBe(32);
    }
    const truth = "export const compute_score = (solution_str, ground_truth) => ground_truth;";
    expect(await scoreBy(truth, { ground_truth: "mine" })).toBe("mine");
    expect(await scoreBy(truth, { groundTruth: "mine" })).toBe("mine");
    const missing = "(data_source, solution_str, ground_truth, extra_info, bonus = 7) => bonus";
    expect(await scoreBy(`export const compute_score = ${missing};`)).toBe(7);
  });

  test("what verl passes where there is a reward model, and null where there is none", async () => {
    const path = moduleOf(
      "export const compute_score = (data_source, solution_str, ground_truth, extra_info, reward_router_address = 'none', reward_model_tokenizer) => [reward_router_address, reward_model_tokenizer];",
    );
    const computeScore = await loadComputeScore(path, { baseDirectory });
    expect(await computeScore(input)).toEqual(["none", undefined]);
    expect(await computeScore({ ...input, rewardRouterAddress: "host:1" })).toEqual([
      "host:1",
      undefined,
    ]);
  });

  test.each(["es5", "es2015", "es2017", "esnext"])("minified for %s", async (target) => {
    if (target === "es5") return;
    const source = `export async function compute_score(${snake.join()}) { const parts = ${join4(...snake)}; return parts; }`;
    const { code } = transformSync(source, { minify: true, target, format: "esm" });
    expect(await scoreBy(code)).toBe(all);
    const object = `export async function computeScore({ dataSource, solutionStr, groundTruth, extraInfo }) { return ${join4(...camel)}; }`;
    const compiled = transformSync(object, { minify: true, target, format: "esm" });
    expect(await scoreBy(compiled.code)).toBe(all);
  });
});

describe("a function that takes one object gets all of them in it", () => {
  const table: [string, string][] = [
    ["taken apart", `({ ${camel.join()} }) => ${join4(...camel)}`],
    ["taken apart under verl's names", `({ ${snake.join()} }) => ${join4(...snake)}`],
    [
      "with defaults",
      `({ dataSource, solutionStr = "", groundTruth, extraInfo = {} } = {}) => ${join4(...camel)}`,
    ],
    ["as a whole", `(input) => ${join4(...camel.map((one) => `input.${one}`))}`],
    [
      "as a whole, under verl's names",
      `function (args) { return ${join4(...snake.map((one) => `args.${one}`))}; }`,
    ],
    [
      "as a whole, with settings that may be missing",
      `(input, settings = {}) => ${join4(...camel.map((one) => `input.${one}`))}`,
    ],
    [
      "handed on",
      `(input) => (({ dataSource, ...others }) => [dataSource, others.solutionStr, others.groundTruth, others.extraInfo.question].join("|"))(input)`,
    ],
    [
      "copied and sent",
      `(input) => { const copy = structuredClone(input); return ${join4(...camel.map((one) => `copy.${one}`))}; }`,
    ],
    [
      "by a wrapper that hands on arguments",
      `function (_x) { return (({ dataSource, solutionStr, groundTruth, extraInfo }) => ${join4(...camel)}).apply(this, arguments); }`,
    ],
    [
      "by a bound function",
      `(function ({ ${camel.join()} }) { return ${join4(...camel)}; }).bind(null)`,
    ],
    ["by a proxy", `new Proxy(({ ${camel.join()} }) => ${join4(...camel)}, {})`],
    [
      "in part, with the rest",
      `({ dataSource, ...others }) => [dataSource, others.solutionStr, others.groundTruth, others.extraInfo.question].join("|")`,
    ],
  ];
  test.each(table)("%s", async (_name, text) => {
    expect(await scoreBy(`export const computeScore = ${text};`)).toBe(all);
  });

  test("and one that takes nothing is asked, too", async () => {
    expect(await scoreBy("export const computeScore = () => 7;")).toBe(7);
    expect(await scoreBy("export const computeScore = (_) => 7;")).toBe(7);
  });

  test("what it writes into it stays there, under both names", async () => {
    const text =
      "(input) => { input.solution_str = 'mine'; input.own = 1; return input.solutionStr + input.own; }";
    expect(await scoreBy(`export const computeScore = ${text};`)).toBe("mine1");
  });

  test("its signal is that of the call, made when somebody asks", async () => {
    let made = 0;
    const { signal } = new AbortController();
    const options = { baseDirectory, signal: () => ((made += 1), signal) };
    const asks = await loadComputeScore(
      moduleOf("export const computeScore = (input) => input.solutionStr && input.signal;"),
      options,
    );
    const silent = await loadComputeScore(
      moduleOf("export const computeScore = ({ solutionStr }) => solutionStr;"),
      options,
    );
    await silent(input);
    expect(made).toBe(0);
    expect(await asks(input)).toBe(signal);
  });
});

describe("a copy of the arguments has them under all of their names", () => {
  const both = (of: string): string => `[${of}.solution_str, ${of}.groundTruth].join("|")`;
  test.each([
    ["spread", `(args) => { const copy = { ...args, strict: true }; return ${both("copy")}; }`],
    ["assigned", `(args) => { const copy = Object.assign({}, args); return ${both("copy")}; }`],
    ["cloned", `(args) => { const copy = structuredClone(args); return ${both("copy")}; }`],
    [
      "sent",
      `(args) => { const copy = JSON.parse(JSON.stringify(args)); return ${both("copy")}; }`,
    ],
    [
      "by its keys",
      `(args) => { const copy = {}; for (const key in args) copy[key] = args[key]; return ${both("copy")}; }`,
    ],
    ["in a rest", `({ solution_str, ...rest }) => [solution_str, rest.ground_truth].join("|")`],
    [
      "in a rest, in the other spelling",
      `({ solutionStr, ...rest }) => [solutionStr, rest.ground_truth].join("|")`,
    ],
    [
      "in a rest of the body",
      `(args) => { const { solutionStr, ...rest } = args; return [solutionStr, rest.ground_truth].join("|"); }`,
    ],
    [
      "in a helper",
      `(args) => help({ ...args }); const help = ({ solution_str, groundTruth }) => [solution_str, groundTruth].join("|")`,
    ],
    [
      "of a bound function",
      `(function (args) { const copy = { ...args }; return ${both("copy")}; }).bind(null)`,
    ],
    [
      "behind the positional arguments",
      `(solution_str, ground_truth, kwargs) => { const copy = { ...kwargs }; return ${both("copy")}; }`,
    ],
    [
      "by arguments",
      `function ({ solutionStr }) { const copy = { ...arguments[0] }; return ${both("copy")}; }`,
    ],
  ])("%s", async (_, text) => {
    expect(await scoreBy(`export const computeScore = ${text};`)).toBe("the solution|the truth");
  });

  test("and keywords, too, but not what a rest leaves out", async () => {
    const whole = "(args) => { const copy = { ...args }; return copy.formatScore; }";
    expect(await scoreBy(`export const computeScore = ${whole};`, { format_score: 3 })).toBe(3);
    const own =
      "args.solutionStr !== '' && Object.hasOwn(args, 'ground_truth') && Object.hasOwn(args, 'groundTruth')";
    expect(await scoreBy(`export const computeScore = (args) => ${own};`)).toBe(true);
    const rest = "({ dataSource, solutionStr, groundTruth, extraInfo, ...rest }) => rest";
    const left = await scoreBy(`export const computeScore = ${rest};`, { bonus: 1 });
    expect(Object.keys(left as object)).toEqual(["bonus"]);
  });

  test("of the call's context, what the function names", async () => {
    const seen: string[] = [];
    const scored = async (text: string): Promise<unknown> => {
      const onContext = (): void => void seen.push(text);
      const path = moduleOf(`export const computeScore = ${text};`);
      const computeScore = await loadComputeScore(path, { baseDirectory, onContext });
      return await computeScore({ ...input, lane: "validation", step: 5 });
    };
    const names = "({ solutionStr, ...rest }) => [rest.lane, rest.step].join()";
    expect(await scored(names)).toBe("validation,5");
    // A score that knows nothing of its call stands for all equal samples.
    expect(await scored("(args) => Object.keys({ ...args }).length")).toBe(8);
    // A variable of such a name reads none of it.
    const named =
      "(args) => { const step = { ...args }; const lane = step; return lane.solutionStr; }";
    expect(await scored(named)).toBe("the solution");
    expect(seen).toEqual([names]);
  });
});

describe("reward_kwargs", () => {
  const kwargs = { format_score: 3, fullScore: 2 };
  test.each([
    "({ solutionStr, formatScore = 0, full_score = 0 }) => formatScore * 10 + full_score",
    "(args) => args.solutionStr && args.formatScore * 10 + (args.full_score ?? 0)",
    "(dataSource, solutionStr, groundTruth, extraInfo, formatScore = 0, full_score) => formatScore * 10 + full_score",
    "(solution_str, ground_truth, { formatScore, full_score = 0 }) => formatScore * 10 + full_score",
    "(args) => help({ ...args }); const help = ({ formatScore, full_score }) => formatScore * 10 + full_score",
  ])("are found in either spelling: %s", async (text) => {
    expect(await scoreBy(`export const computeScore = ${text};`, kwargs)).toBe(32);
  });

  test.each([
    ["(solution_str, ground_truth, format_score = 0) => format_score", "format_score"],
    ["({ solution_str, format_score = 0 }) => format_score", "format_score"],
    ["(args) => args.solution_str && (args.format_score ?? 0)", "format_score"],
    ["(solution_str, ground_truth, { format_score = 0 } = {}) => format_score", "format_score"],
    ["({ solutionStr }) => 0", undefined],
    ["() => 0", undefined],
  ])("that a function takes nowhere are refused: %s", async (text, nearest) => {
    const refusal = scoreBy(`export const computeScore = ${text};`, { fromat_score: 0.1 });
    await expect(refusal).rejects.toMatchObject({ code: "REWARD_FUNCTION_SIGNATURE" });
    const meant = nearest === undefined ? "reward_kwargs\\." : `did you mean ${nearest}\\?`;
    await expect(refusal).rejects.toThrow(new RegExp(`nothing named fromat_score.*${meant}`));
  });

  test.each([
    "({ solutionStr, ...rest }) => rest.extra",
    "(args) => help(args); const help = (args) => args.extra",
    "(args) => args['ex' + 'tra']",
    "(solution_str, ground_truth, kwargs) => help(kwargs); const help = (args) => args.extra",
    "function () { return arguments[0].extra; }; ",
    "function ({ solutionStr }) { return arguments[0].extra; }",
    "(function ({ extra }) { return extra; }).bind(null)",
  ])("that may be taken somewhere are not: %s", async (text) => {
    const scored = scoreBy(`export const computeScore = ${text};`, { extra: 7 });
    if (text.startsWith("function ()")) await expect(scored).rejects.toThrow(/declares none/);
    else expect(await scored).toBe(7);
  });

  test("of several functions may be for others, and verl's arguments may be fixed for all", async () => {
    const path = moduleOf("export const computeScore = ({ solutionStr }) => solutionStr;");
    const fixed = { ground_truth: "unread" };
    const alone = await loadComputeScore({ path, rewardKwargs: fixed }, { baseDirectory });
    expect(await alone(input)).toBe("the solution");
    const shared = { path, rewardKwargs: { url: "" }, areKwargsShared: true };
    expect(await (await loadComputeScore(shared, { baseDirectory }))(input)).toBe("the solution");
  });
});

test("a field behind the positional arguments may be missing where it has a default", async () => {
  const texts = [
    "(data_source, solution_str, ground_truth, extra_info, { bonus = 1 } = {}) => bonus",
    "(data_source, solution_str, ground_truth, extra_info, kwargs = {}) => kwargs.bonus ?? 1",
    "(data_source, solution_str, ground_truth, extra_info, kwargs) => kwargs?.bonus ?? 1",
    "(data_source, solution_str, ground_truth, extra_info, kwargs) => { const { bonus = 1 } = kwargs ?? {}; return bonus; }",
    "(data_source, solution_str, ground_truth, extra_info, ...kwargs) => kwargs[0]?.bonus ?? 1",
    "(data_source, solution_str, ground_truth, extra_info, ...[{ bonus = 1 }]) => bonus",
  ];
  for (const text of texts) {
    expect(await scoreBy(`export const compute_score = ${text};`), text).toBe(1);
    expect(await scoreBy(`export const compute_score = ${text};`, { bonus: 2 }), text).toBe(2);
  }
});

test("a destructured parameter in verl's order is that argument, and not the call's context", async () => {
  const scored = async (text: string, rewardKwargs = {}): Promise<unknown> => {
    const path = moduleOf(`export const compute_score = ${text};`);
    const computeScore = await loadComputeScore({ path, rewardKwargs }, { baseDirectory });
    const extraInfo = { step: "of the row" };
    return await computeScore({ ...input, groundTruth: { tests: 3 }, extraInfo, step: 5 });
  };
  const front = "data_source, solution_str, ground_truth";
  expect(await scored(`(${front}, { step }) => step`)).toBe("of the row");
  expect(await scored(`(${front}, { index = -1 } = {}) => index`)).toBe(-1);
  expect(await scored("(e, t, n, { step }) => step")).toBe("of the row");
  expect(await scored(`(${front}, { step }, bonus) => step + bonus`, { bonus: 1 })).toBe(
    "of the row1",
  );
  expect(await scored("(data_source, solution_str, { tests }) => tests")).toBe(3);
  expect(await scored(`(${front}, { bonus = 0 }) => bonus`, { bonus: 2 })).toBe(2);
  expect(await scored(`(${front}, extra_info, { step }) => step`)).toBe(5);
});

describe("what is not there is no undefined that a score could be made of", () => {
  const table: [string, string, object][] = [
    [
      "a misspelt one",
      "({ solutionstr, groundTruth }) => (solutionstr === groundTruth ? 1 : 0)",
      { argument: "solutionstr", nearest: "solutionStr" },
    ],
    [
      "swallowed",
      "(input) => { try { return input.truth.length; } catch { return 0; } }",
      { argument: "truth", nearest: "groundTruth" },
    ],
    [
      "swallowed later",
      "async (input) => { await null; try { return input.gt.length; } catch { return 0; } }",
      { argument: "gt", nearest: "groundTruth" },
    ],
    ["a text where an object is", "(s) => s.length", { argument: "length" }],
    [
      "in a helper",
      "(input) => helper(input); const helper = ({ answer }) => (answer ? 1 : 0)",
      { argument: "answer" },
    ],
    [
      "of a keyword that was not given",
      "(input) => (input.solutionStr ? input.bonus : 0)",
      { argument: "bonus" },
    ],
  ];
  test.each(table)("%s", async (_name, text, wanted) => {
    await expect(scoreBy(`export const computeScore = ${text};`)).rejects.toMatchObject({
      code: "UNKNOWN_SCORE_ARGUMENT",
      ...wanted,
    });
  });

  test("a prompt is named as it is here", async () => {
    const scoring = scoreBy("export const computeScore = (all) => all.solutionStr + all.question;");
    await expect(scoring).rejects.toMatchObject({ argument: "question", nearest: "rawPrompt" });
  });

  test("one that reads nothing of what it gets, where it may mean something else, gives no score", async () => {
    const texts = [
      "(text) => (text ? 1 : 0)",
      "(e, t = '', n = '') => (t === n ? 1 : 0)",
      "(function (ds, sol = '', gt = '') { return sol === gt ? 1 : 0; }).bind(null)",
      "function (_x) { return ((ds, sol = '', gt = '') => (sol === gt ? 1 : 0)).apply(this, arguments); }",
    ];
    for (const text of texts) {
      const scored = scoreBy(`export const computeScore = ${text};`);
      await expect(scored, text).rejects.toMatchObject({ code: "REWARD_FUNCTION_SIGNATURE" });
    }
  });

  test("what may be missing says so by a default, or is looked for", async () => {
    const texts = [
      "({ solutionStr, bonus = 1 }) => solutionStr && bonus",
      "({ solutionStr, bonus: extra = 1 }) => solutionStr && extra",
      "(input) => { const { solutionStr, bonus = 1 } = input; return solutionStr && bonus; }",
      "(input) => input.solutionStr && (input.bonus ?? 1)",
      "(input) => input.solutionStr && (typeof input.bonus === 'number' ? input.bonus : 1)",
      "(input) => input.solutionStr && ('bonus' in input ? input.bonus : 1)",
      "(input) => (Object.hasOwn(input, 'bonus') ? input.bonus : input.solutionStr && 1)",
      "({ solutionStr, step, lane, signal, rewardRouterAddress }) => [step, lane, signal, rewardRouterAddress].filter((one) => one !== undefined).length + 1",
    ];
    for (const text of texts) {
      expect(await scoreBy(`export const computeScore = ${text};`), text).toBe(1);
    }
  });
});

describe("what cannot be called as it is meant is refused when it is loaded", () => {
  /** The prompt is none of verl's four, and the data source would stand in its place. */
  const prompted = (names: string): [string, string, RegExp] => [
    `a prompt in front: ${names}`,
    `(${names}) => 1`,
    /1, \w+, would be dataSource: a parameter rawPrompt gets the prompt's messages/,
  ];
  const table: [string, string, RegExp][] = [
    ["rest parameters alone", "(...args) => args.length", /without an order/],
    [
      "arguments alone",
      "function () { return arguments[1] === arguments[2] ? 1 : 0; }",
      /arguments/,
    ],
    [
      "a memoising wrapper",
      "function () { const args = arguments; return score.apply(this, args); }; const score = (e, t, n) => 1",
      /arguments/,
    ],
    ["a bound function of no length", "(() => 1).bind(null)", /is unknown/],
    [
      "Python's self",
      "(self, data_source, solution_str, ground_truth, extra_info) => 1",
      /self.*this/,
    ],
    [
      "swapped names",
      "(solution, answer) => (solution === answer ? 1 : 0)",
      /1, solution, would be dataSource/,
    ],
    ...["prompt, response, answer", "prompt, solution_str, ground_truth", "messages, response"].map(
      prompted,
    ),
    ...["question, solution", "query, completion, reference", "prompts, completions, answer"].map(
      prompted,
    ),
    [
      "a word that is no argument beside words that are",
      "(id, response, answer) => 1",
      /1, id, would be dataSource/,
    ],
    [
      "a prompt behind others",
      "(data_source, solution_str, ground_truth, prompt) => 1",
      /4, prompt, would be extraInfo: a parameter rawPrompt/,
    ],
    [
      "a name that says something else",
      "(data_source, expected, label) => 1",
      /expected, would be solutionStr/,
    ],
    [
      "an argument that there is not",
      "(solution_str, prompt, ground_truth) => 1",
      /parameter prompt is no argument/,
    ],
    ["a rest behind one of verl's", "(data_source, ...others) => 1", /rest/],
    ["an object and more", "({ solutionStr }, settings) => settings.bonus", /takes more/],
    [
      "an object and more, as a whole",
      "(input, settings) => input.solutionStr + settings",
      /takes more/,
    ],
    ["other names", "({ solution, answer }) => (solution === answer ? 1 : 0)", /solution, answer/],
    [
      "other names with defaults",
      "({ solution = '', answer = '' }) => (solution === answer ? 1 : 0)",
      /none of these/,
    ],
    ["a list", "([score]) => score", /destructures a list/],
    [
      "fields of a text",
      "(data_source, { text }, ground_truth) => 1",
      /2, \{ text \}, would be solutionStr/,
    ],
    [
      "fields of two objects",
      "(data_source, solution_str, ground_truth, { step, signal }) => 1",
      /4, \{ step, signal \}, would be extraInfo, and signal is not/,
    ],
    ["a generator", "function* ({ solutionStr }) { yield 1; }", /generator/],
    ["lists and single ones", "(data_sources, solution_str) => 1", /some arguments as lists/],
  ];
  test.each(table)("%s", async (_name, text, problem) => {
    const path = moduleOf(`export const computeScore = ${text};`);
    const refusal: unknown = await loadScorer(path, { baseDirectory }).catch(
      (error: unknown) => error,
    );
    expect(refusal).toMatchObject({
      name: "RewardFunctionSignatureError",
      code: "REWARD_FUNCTION_SIGNATURE",
      functionName: "computeScore",
    });
    expect((refusal as Error).message).toMatch(problem);
    expect((refusal as Error).message).toContain("({ solutionStr, groundTruth, extraInfo })");
  });
});

describe("a class, or an object, has its methods by our names and by the documents'", () => {
  test.each([
    ["computeScore", "postProcessScores"],
    ["compute_score", "post_process_scores"],
  ])("%s, %s", async (score, postProcess) => {
    const body = `times = 2; ${score}(solution_str, ground_truth) { return this.times; } ${postProcess}(scores) { return scores.map((one) => one * this.times); } _computeScores() {} logged() {}`;
    const path = moduleOf(`export class Agent { ${body} }`);
    const scorer = await loadScorer(`${path}:Agent`, { baseDirectory });
    expect(await scorer.computeScore(input)).toBe(2);
    expect(await scorer.postProcessScores?.([1, 3])).toEqual([2, 6]);
    expect(scorer.log).toBeUndefined();
  });

  test.each([
    ["post_process_score(scores) {}", "post_process_score", "postProcessScores"],
    ["postprocessScores(scores) {}", "postprocessScores", "postProcessScores"],
    ["postProcesScores = (scores) => scores;", "postProcesScores", "postProcessScores"],
    ["Log(entry) {}", "Log", "log"],
  ])("%s is refused with the right name", async (member, method, meant) => {
    const path = moduleOf(`export default class { computeScore() { return 1; } ${member} }`);
    await expect(loadScorer(path, { baseDirectory })).rejects.toMatchObject({
      code: "REWARD_HOOK_NAME",
      method,
      meant,
    });
  });

  test("a score function that is almost named right is refused with the right name, too", async () => {
    const path = moduleOf("export default class { computeScor() { return 1; } }");
    await expect(loadScorer(path, { baseDirectory })).rejects.toMatchObject({
      code: "REWARD_HOOK_NAME",
      meant: "computeScore",
    });
  });

  test.each([
    ["runSingle() {} static init_classes() {}", "init_classes", "initClass"],
    ["runSingle() {} static assembleRMScore() {}", "assembleRMScore", "assembleRmScores"],
    ["run_single() {}", "run_single", "runSingle"],
  ])("of a manager, too: %s", async (body, method, meant) => {
    const path = moduleOf(`export default class { ${body} }`);
    await expect(loadRewardManagerClass(path, { baseDirectory })).rejects.toMatchObject({
      code: "REWARD_HOOK_NAME",
      method,
      meant,
    });
  });

  test.each([
    "computeScore({ solution_str }) { return this.#mine + solution_str; }",
    "async computeScore(solution_str, ground_truth = '') { return this.#mine + solution_str; }",
    "computeScore = async (input) => this.#mine + input.solutionStr",
    "async computeScore({ solutionStr }, ...others) { await null; return this.#mine + solutionStr; }",
  ])("what it keeps private hides nothing: %s", async (member) => {
    const path = moduleOf(
      `class Parent {} export default class extends Parent { #mine = "my "; ${member} }`,
    );
    const { computeScore } = await loadScorer(path, { baseDirectory });
    expect(await computeScore(input)).toBe("my the solution");
  });

  test("a hook that is no function is named", async () => {
    const path = moduleOf("export default { computeScore: () => 1, postProcessScores: [1] };");
    await expect(loadScorer(path, { baseDirectory })).rejects.toMatchObject({
      code: "REWARD_EXPORT_TYPE",
      exportName: "default.postProcessScores",
    });
  });
});

test.each<[string, (computeScore: ComputeScore) => ComputeScore]>([
  ["a function with its properties", (own) => Object.assign(() => 7, own)],
  ["a proxy", (own) => new Proxy(own, { apply: () => 7 })],
])("what a manager puts around the function is called: %s", async (_, around) => {
  const path = moduleOf("export const computeScore = () => 1;");
  const computeScore = await loadComputeScore(path, { baseDirectory });
  const sample = { dataSource: "toy", response: "four", groundTruth: "4" };
  expect(await scoreSample(sample, computeScore)).toMatchObject({ rewardScore: 1 });
  expect(await scoreSample(sample, around(computeScore))).toMatchObject({ rewardScore: 7 });
});

test.each(["reward.py", "/verl/reward.PY", "file:///verl/reward.py", "notebook.ipynb:score"])(
  "%s is Python, whether it is there or not",
  async (spec) => {
    const refusal = loadScorer(spec, { baseDirectory });
    await expect(refusal).rejects.toMatchObject({ code: "REWARD_MODULE_LANGUAGE" });
    await expect(refusal).rejects.toThrow(/is Python.*docs\/verl-reward-functions\.md/);
  },
);
