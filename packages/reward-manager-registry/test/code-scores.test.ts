/** Programs against tests: verl's prime_code on this machine, and sandbox_fusion through a service that runs them for real. */

import { runInNewContext } from "node:vm";
import {
  createDefaultComputeScore,
  LocalSandbox,
  scorePrimeCode,
  scoreSandboxFusion,
} from "@rayling/reward-manager-registry";
import type { CodeScore, Program, ProgramEnd, ScoreInput } from "@rayling/reward-manager-registry";
import { announcements } from "@rayling/reward-manager-registry/values";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { SandboxServer } from "../../../test/servers/sandbox-server.ts";
import type { SandboxFault } from "../../../test/servers/sandbox-server.ts";
import { lastCodeBlock } from "../src/scorers/code/code-block.ts";
import { readCodeTests } from "../src/scorers/code/code-tests.ts";
import { sameOutput, sameValue } from "../src/scorers/code/same-answer.ts";

vi.setConfig({ testTimeout: 120_000 });

const sandbox = new LocalSandbox();
const fenced = (code: string, name = "python"): string =>
  `Some thoughts.\n\`\`\`${name}\n${code}\n\`\`\`\nDone.`;

/** Doubles of 0, 1, 2, … from standard input. */
const doubles = (count: number): string =>
  JSON.stringify({
    inputs: Array.from({ length: count }, (_, n) => `${n}\n`),
    outputs: Array.from({ length: count }, (_, n) => `${2 * n}\n`),
  });
const double = "print(int(input()) * 2)";

/** Tests of a function, the second one as given. */
const calls = (input: unknown, output: unknown): object => ({
  fn_name: "f",
  inputs: ["0", input],
  outputs: ["0", output],
});

/**
 * A sandbox that starts no process: its programs are expressions of JavaScript, which are printed, for the number n on standard input.
 * For the cases about which tests are run and what their results come to.
 */
class ExpressionSandbox extends LocalSandbox {
  override async run({ code, stdin = "" }: Program): Promise<ProgramEnd> {
    const stdout = `${String(runInNewContext(code, { n: Number(stdin) }))}\n`;
    const ended = { status: "finished", exitCode: 0, signal: null } as const;
    return { ...ended, stdout, stderr: "", value: undefined, durationMs: 0 };
  }
}

const expressions = new ExpressionSandbox();
const statuses = ({ metadata }: CodeScore): string[] => metadata.map(({ status }) => status);

interface Scorer {
  readonly score: (response: string, groundTruth: unknown, options?: object) => Promise<CodeScore>;
  /** The same with programs that are expressions. */
  readonly scoreExpression: Scorer["score"];
  /** Options by which a test of a program takes too long after 100 ms. */
  readonly soonLate: object;
}

const locally: Scorer = {
  score: (response, groundTruth, options) =>
    scorePrimeCode(response, groundTruth, { sandbox, ...options }),
  scoreExpression: (code, groundTruth, options) =>
    scorePrimeCode(fenced(code, "js"), groundTruth, { sandbox: expressions, ...options }),
  soonLate: { sandbox: new LocalSandbox({ timeoutMs: 100 }) },
};
const byService: Scorer = {
  async score(response, groundTruth, options) {
    await using server = await SandboxServer.start();
    return await scoreSandboxFusion(response, groundTruth, { url: server.url, ...options });
  },
  async scoreExpression(code, groundTruth, options) {
    await using server = await SandboxServer.start(() => undefined, expressions);
    const all = { url: server.url, ...options };
    return await scoreSandboxFusion(fenced(code, "js"), groundTruth, all);
  },
  soonLate: { timeoutMs: 100 },
};

describe.each([
  ["prime_code", locally],
  ["sandbox_fusion", byService],
])("%s", (name, { score, scoreExpression, soonLate }) => {
  test("the share of the tests that pass", async () => {
    expect((await score(fenced(double), doubles(1))).score).toBe(1);
    const code = "n = int(input())\nprint(n * 2 if n < 1 else n)";
    const some = await score(fenced(code), doubles(3));
    expect(some.score).toBe(1 / 3);
    expect(statuses(some)).toEqual(["success", "wrong_answer", "wrong_answer"]);
    expect(some.metadata[2]).toMatchObject({ test: 2, stdout: "2\n", stderr: "", exitCode: 0 });
  });

  test("of the first ten", async () => {
    const { score: share, metadata } = await scoreExpression("n > 1 ? n * 2 : -1", doubles(12));
    expect([share, metadata.length]).toEqual([8 / 10, 10]);
  });

  test("and what is behind them", async () => {
    const { score: share, metadata } = await scoreExpression("n < 11 ? n * 2 : n", doubles(14));
    // As in verl: prime_code does not look at it, sandbox_fusion lets no program that is wrong score 1.
    const expected = name === "prime_code" ? [1, 10] : [10 / 11, 12];
    expect([share, metadata.length]).toEqual(expected);
  });

  test("of all of them where it is not continuous", async () => {
    const options = { continuous: false };
    const { score: share } = await scoreExpression("n < 10 ? n * 2 : n", doubles(12), options);
    // verl's prime_code: all or nothing.
    expect(share).toBe(name === "prime_code" ? 0 : 10 / 12);
    expect((await scoreExpression("n * 2", doubles(11), options)).score).toBe(1);
  });

  test.each([0, Number.NaN])("%d tests that may take too long are none", async (mostTimeouts) => {
    const scoring = scoreExpression("n * 2", doubles(1), { mostTimeouts });
    await expect(scoring).rejects.toMatchObject({ option: "mostTimeouts" });
  });

  test("a program that fails, one that takes too long", async () => {
    const code = "n = int(input())\nif n == 1: raise ValueError('one')\nprint(n * 2)";
    const failed = await score(fenced(code), doubles(3));
    expect(statuses(failed)).toEqual(["success", "runtime_error", "success"]);
    expect(failed.metadata[1]?.stderr).toContain("ValueError: one");
    // All take too long, so that no program has to start in time.
    const slow = fenced("import time\ntime.sleep(1000)");
    const late = await score(slow, doubles(3), soonLate);
    expect([late.score, statuses(late)]).toEqual([0, ["timeout", "skipped", "skipped"]]);
    const again = await score(slow, doubles(3), { ...soonLate, mostTimeouts: 2 });
    expect(statuses(again)).toEqual(["timeout", "timeout", "skipped"]);
  });

  test.each([
    ["fn_name", "def add(a, b): return a + b", "python"],
    [
      "fn_name of a class Solution",
      "class Solution:\n  def add(self, a, b): return a + b",
      "python",
    ],
    ["fn_name", "function add(a, b) { return a + b; }", "javascript"],
  ])("%s: a function is called", async (_, code, language) => {
    const tests = {
      fn_name: "add",
      inputs: ["1\n2", "[1]\n[2, 3]", '"a"\n"b"', "1\n1"],
      outputs: ["3", "[1, 2, 3]", '"ab"', "3"],
    };
    const { score: share, metadata } = await score(fenced(code, language), tests);
    // JavaScript adds no lists.
    const right = language === "python" ? 3 : 2;
    expect([share, metadata[2]?.status]).toEqual([right / 4, "success"]);
  });

  test("fn_name: the result is a value, and no part of what is printed", async () => {
    const tests = {
      fn_name: "f",
      inputs: ['"a"', "12", '"12"', '{"1": 2}', "0"],
      outputs: ['"a"', '"12"', '"12"', "[2]", "Infinity"],
    };
    const code = `def f(one):
  print("seen")
  if one == 0: return float("inf")
  return [key + 1 for key in one] if isinstance(one, dict) else one`;
    const result = await score(fenced(code), tests);
    const right = "success";
    expect(statuses(result)).toEqual([right, "wrong_answer", right, right, right]);
    expect(result.metadata[0]?.stdout?.trim()).toBe("seen");
  });

  test("fn_name: a program of JavaScript that reads its input finds none", async () => {
    const tests = { fn_name: "f", inputs: ["1"], outputs: ["[1, 0, true]"] };
    const code = `#!/usr/bin/env node
"use strict";
const given = require("fs").readFileSync(0, "utf8");
const isStrict = (function () { return this === undefined; })();
function f(n) { return [n, given.length, isStrict]; }`;
    expect(statuses(await score(fenced(code, "js"), tests))).toEqual(["success"]);
  });

  test("fn_name: what a program does only where it is run as one does not run", async () => {
    const tests = { fn_name: "f", inputs: ["1"], outputs: ["2"] };
    const python = `from __future__ import annotations
import dataclasses, os, pickle, sys, typing
@dataclasses.dataclass
class Point:
  x: Optional[int]
def f(n):
  point = pickle.loads(pickle.dumps(Point(n)))
  assert typing.get_type_hints(Point) == {"x": Optional[int]}
  return getattr(sys.modules[__name__], "f") is f and point == Point(n) and n + 1
if __name__ == "__main__": os._exit(3)`;
    const javascript =
      "function f(n) { return n + 1; }\nif (require.main === module) process.exit(3);";
    const modern = "export const f = (n) => n + 1;\nif (import.meta.main) process.exit(3);";
    expect(statuses(await score(fenced(python), tests))).toEqual(["success"]);
    expect(statuses(await score(fenced(javascript, "js"), tests))).toEqual(["success"]);
    expect(statuses(await score(fenced(modern, "js"), tests))).toEqual(["success"]);
  });

  test("assert_case: a program whose main part ends, or finds no input, has its functions", async () => {
    const tests = { assert_case: ["assert f(one) == 2", "assert f(one) == 3"] };
    const functions = "def f(n): return n + 1\nif '__main__' == __name__:\n  one = 1";
    const ending = await score(fenced(`${functions}\n  exit(f(1))`), tests);
    expect(statuses(ending)).toEqual(["success", "runtime_error"]);
    const reading = await score(fenced(`${functions}\n  print(f(int(input())))`), {
      assert_case: ["assert f(one) == 2"],
    });
    expect(statuses(reading)).toEqual(["success"]);
    expect(reading.metadata[0]?.stderr).toContain("EOFError");
  });

  test("assert_case: lines that must run behind the program", async () => {
    const tests = { assert_case: ["assert f(1) == 2", "assert f(2) == 3", "assert f(3) == 0"] };
    const result = await score(fenced("print('seen')\ndef f(n): return n + 1"), tests);
    expect(statuses(result)).toEqual(["success", "success", "runtime_error"]);
    expect(result.metadata[0]?.stdout?.trim()).toBe("seen");
  });

  test.each([
    ["Python", "python", "import os\ndef f(n): return n + 1\nos._exit(0)"],
    ["Python, in order", "python", "import sys\ndef f(n): return n + 1\nsys.exit(0)"],
    ["JavaScript", "js", "process.exit(0)"],
  ])("assert_case: a program of %s that ends before the lines", async (_, language, code) => {
    const tests = { assert_case: ["assert f(1) == 2"] };
    expect(statuses(await score(fenced(code, language), tests))).toEqual(["runtime_error"]);
  });

  test("a block of JavaScript is run by Node", async () => {
    const code = "console.log(2 * Number(require('fs').readFileSync(0, 'utf8')))";
    expect((await score(fenced(code, "js"), doubles(2))).score).toBe(1);
  });

  test.each([
    ["not JSON", "JSON of tests"],
    [null, "an object of tests"],
    [["inputs"], "an object of tests"],
    [{ inputs: ["1"] }, "as many outputs as inputs, 1"],
    [{ outputs: ["1"] }, "a list of inputs"],
    [{ inputs: ["1"], outputs: [] }, "as many outputs as inputs, 1"],
    [{ inputs: [1], outputs: ["1"] }, "inputs are texts"],
    [{ inputs: [], outputs: [] }, "at least one"],
    [{ inputs: ["1"], outputs: ["1"], fn_name: "f(); import os" }, "an identifier"],
    [{ assert_case: [1] }, "assert_case holds texts"],
    [calls("1", "hello"), 'outputs[1] is a result of f as JSON; it is the string "hello"'],
    [calls("1", "True"), "outputs[1] is a result of f as JSON"],
    [calls("1", ""), "outputs[1] is a result of f as JSON"],
    [
      calls("1\nabc", "1"),
      'inputs[1] has arguments of f as JSON, one per line; it is the string "abc"',
    ],
    [calls(1, "1"), "inputs[1] is a text, or a list"],
  ])("tests that cannot be read are an error, and no score of 0: %j", async (tests, message) => {
    await expect(score(fenced(double), tests)).rejects.toMatchObject({
      code: "INVALID_SAMPLE",
      field: "groundTruth",
      message: expect.stringContaining(message) as string,
    });
  });
});

describe("prime_code", () => {
  test("a method of a class Solution comes before what Python calls by that name", async () => {
    const tests = { fn_name: "search", inputs: ["[1, 2]\n2"], outputs: ["1"] };
    const code = "class Solution:\n  def search(self, list, n): return list.index(n)";
    expect((await locally.score(fenced(code), tests)).score).toBe(1);
    expect((await byService.score(fenced(code), tests)).score).toBe(1);
  });

  test("takes a response without a block for a program", async () => {
    expect((await locally.score(double, doubles(2))).score).toBe(1);
    const prose = await locally.score("I do not know.", doubles(3));
    expect(prose.score).toBe(0);
    expect(statuses(prose)).toEqual(["compile_error", "skipped", "skipped"]);
  });

  test("compares as verl does: without regard to space, and numbers by how close they are", async () => {
    const tests = { inputs: ["", "", ""], outputs: ["0.3333333\n", "b a\nc", ["1", "2"]] };
    const printing = async (text: string): Promise<string[]> =>
      statuses(await locally.score(fenced(`print(${JSON.stringify(text)})`), tests));
    expect(await printing("0.33333334")).toEqual(["success", "wrong_answer", "wrong_answer"]);
    expect(await printing(" b a \n c ")).toEqual(["wrong_answer", "success", "wrong_answer"]);
    expect(await printing("1\n2\n\n")).toEqual(["wrong_answer", "wrong_answer", "success"]);
  });

  test("a script that ends by sys.exit is compared by what it printed, as in verl", async () => {
    const scripts = [
      "print(2); exit(1)",
      "import sys; print(2); sys.exit('done')",
      "print(3); exit(1)",
    ];
    const tests = { inputs: [""], outputs: ["2"] };
    const all = await Promise.all(scripts.map((code) => locally.score(fenced(code), tests)));
    expect(all.flatMap(statuses)).toEqual(["success", "success", "wrong_answer"]);
  });

  test("a function that ends its program has not returned, whatever was printed", async () => {
    const tests = { fn_name: "f", inputs: ["1"], outputs: ["1"] };
    const code = "import sys\ndef f(n):\n  print(1)\n  sys.exit(0)";
    expect(statuses(await locally.score(fenced(code), tests))).toEqual(["runtime_error"]);
  });

  test("ends with its signal", async () => {
    const late = AbortSignal.timeout(300);
    const code = fenced("import time\ntime.sleep(1000)");
    await expect(locally.score(code, doubles(2), { signal: late })).rejects.toThrow(/timeout/i);
  });
});

describe("sandbox_fusion", () => {
  test("asks as verl does", async () => {
    await using server = await SandboxServer.start();
    await scoreSandboxFusion(fenced(double), doubles(1), { url: server.url, memoryLimitMb: 512 });
    expect(server.requests).toEqual([
      {
        compile_timeout: 10,
        run_timeout: 10,
        code: `\n${double}\n`,
        stdin: "0\n",
        memory_limit_MB: 512,
        language: "python",
        files: {},
        fetch_files: [],
      },
    ]);
  });

  test("a result that is no JSON is the value that it is printed as, as in verl", async () => {
    const code = `import decimal, fractions
class Texts:
  def __str__(self): return "[1,\\n 2]"
def f(n): return [decimal.Decimal("1.5"), fractions.Fraction(3, 1), Texts(), {1}][n]`;
    const tests = {
      fn_name: "f",
      inputs: ["0", "1", "2", "3"],
      outputs: ["1.5", "3", "[1, 2]", '"{1}"'],
    };
    expect((await byService.score(fenced(code), tests)).score).toBe(1);
  });

  test("a response without a block of code scores 0, and is not sent", async () => {
    await using server = await SandboxServer.start();
    const { score } = await scoreSandboxFusion(double, doubles(1), { url: server.url });
    expect([score, server.requests.length]).toEqual([0, 0]);
  });

  const doubling = fenced("n * 2", "js");

  test.each([504, 500, 429, "sandbox-error", "malformed", "reset"] as const)(
    "a request that came to %s is sent three times, and those before it once",
    async (fault) => {
      const tests = doubles(3);
      const twice = (count: number): SandboxFault | undefined =>
        count === 1 || count === 2 ? fault : undefined;
      await using server = await SandboxServer.start(twice, expressions);
      const options = { url: server.url, retryDelayMs: 1 };
      const { score } = await scoreSandboxFusion(doubling, tests, options);
      expect(score).toBe(1);
      expect(server.requests.map(({ stdin }) => stdin)).toEqual([
        "0\n",
        "1\n",
        "1\n",
        "1\n",
        "2\n",
      ]);
    },
  );

  test("a request that came to nothing three times fails the sample, whose next attempt goes on", async () => {
    const often = (count: number): SandboxFault | undefined =>
      count >= 1 && count <= 3 ? 504 : undefined;
    await using server = await SandboxServer.start(often, expressions);
    const score = createDefaultComputeScore({ sandboxFusionUrl: server.url, retryDelayMs: 1 });
    const input = { dataSource: "apps", solutionStr: doubling, extraInfo: {} };
    const given = { ...input, groundTruth: doubles(2) };
    await expect(score(given)).rejects.toMatchObject({ code: "SANDBOX_SERVICE", status: 504 });
    expect(await score(given)).toBe(1);
    expect(server.requests.map(({ stdin }) => stdin)).toEqual(["0\n", "1\n", "1\n", "1\n", "1\n"]);
  });

  test.each([
    ["a status of the request's own", { status: 422, detail: "memory_limit_MB too large" }],
    ["a pause that is too long", { status: 429, headers: { "retry-after": "11" }, detail: "full" }],
  ])("%s is not waited for, and says why", async (_, answer) => {
    await using server = await SandboxServer.start(() => answer);
    await expect(
      scoreSandboxFusion(doubling, doubles(1), { url: server.url, retryDelayMs: 1 }),
    ).rejects.toMatchObject({
      message: expect.stringContaining(answer.detail) as string,
      body: expect.stringContaining(answer.detail) as string,
      status: answer.status,
    });
    expect(server.requests.length).toBe(1);
  });

  const finished = { status: "Finished", return_code: 0 };
  test.each([
    ["a number as output", "Success", { ...finished, stdout: 1 }, "run_result.stdout"],
    ["a list as output", "Success", { ...finished, stdout: [] }, "run_result.stdout"],
    ["a text as code", "Success", { ...finished, return_code: "0" }, "run_result.return_code"],
    ["a text as result", "Success", "ran", "run_result of"],
    ["no result", "Success", { status: "Finished" }, "without the result"],
    ["no result that is written", "Success", { status: "Finished", stdout: null }, "without"],
    ["a failure without its code", "Failed", { status: "Finished", stdout: "" }, "without"],
  ])("%s in an answer is the service's failure", async (_, status, run_result, problem) => {
    await using server = await SandboxServer.start(() => ({ status, run_result }));
    await expect(
      scoreSandboxFusion(doubling, doubles(1), { url: server.url, retryDelayMs: 1 }),
    ).rejects.toMatchObject({
      code: "SANDBOX_SERVICE",
      message: expect.stringContaining(problem) as string,
    });
    expect(server.requests.length).toBe(3);
  });

  test("what a good answer announces is passed on", async () => {
    const heard: unknown[] = [];
    const hear = (announced: unknown): void => void heard.push(announced);
    announcements.subscribe(hear);
    onTestFinished(() => {
      announcements.unsubscribe(hear);
    });
    const headers = { "x-ratelimit-remaining": "7", "x-ratelimit-reset": "60" };
    const answer = { status: "Success", headers, run_result: { ...finished, stdout: "0" } };
    await using server = await SandboxServer.start(() => answer);
    await scoreSandboxFusion(doubling, doubles(1), { url: server.url });
    expect(heard).toEqual([{ requests: { remaining: 7, resetMs: 60_000 } }]);
  });

  test("a run that has ended may have no output, as the protocol says", async () => {
    const answer = { status: "Success", run_result: { ...finished, stdout: null } };
    await using server = await SandboxServer.start(() => answer);
    const { metadata } = await scoreSandboxFusion(doubling, doubles(1), { url: server.url });
    expect(metadata).toMatchObject([{ status: "wrong_answer", exitCode: 0 }]);
  });

  test.each([
    [429, { code: "SANDBOX_SERVICE", status: 429 }],
    [500, { code: "SANDBOX_SERVICE", status: 500 }],
    ["sandbox-error", { message: expect.stringContaining("SandboxError no room") as string }],
    ["malformed", { message: expect.stringContaining("no JSON") as string }],
  ] as const)("%s is the service's failure, and no test's", async (fault, expected) => {
    await using server = await SandboxServer.start((count): SandboxFault | undefined =>
      count === 0 ? undefined : fault,
    );
    await expect(
      scoreSandboxFusion(fenced(double), doubles(3), { url: server.url, retryDelayMs: 1 }),
    ).rejects.toMatchObject(expected);
  });

  test.each([0.5, 2 ** 30, 2 ** 32])("a test may take %d ms", async (timeoutMs) => {
    const result = await byService.scoreExpression("n * 2", doubles(1), { timeoutMs });
    expect(result.score).toBe(1);
  });

  test.each([0, Infinity, Number.NaN])("no test may take %d ms", async (timeoutMs) => {
    const scoring = byService.scoreExpression("n * 2", doubles(1), { timeoutMs });
    await expect(scoring).rejects.toMatchObject({ code: "INVALID_SCORER_OPTION" });
  });

  test("a service that is not there, or never answers, is an error", async () => {
    const url = "http://127.0.0.1:1/run_code";
    await expect(scoreSandboxFusion(fenced(double), doubles(1), { url })).rejects.toThrow();
    await using server = await SandboxServer.start(() => "hang");
    const signal = AbortSignal.timeout(200);
    await expect(
      scoreSandboxFusion(fenced(double), doubles(1), { url: server.url, signal }),
    ).rejects.toThrow(/timeout/i);
  });
});

describe("the default score function", () => {
  const input = (dataSource: string): ScoreInput => ({
    dataSource,
    solutionStr: fenced(double),
    groundTruth: doubles(1),
    extraInfo: {},
  });

  test.each(["codecontests", "apps", "codeforces", "taco"])(
    "tests programs of %s here, or by a service",
    async (dataSource) => {
      await using server = await SandboxServer.start();
      expect(await createDefaultComputeScore()(input(dataSource))).toBe(1);
      expect(server.requests.length).toBe(0);
      const score = createDefaultComputeScore({ sandboxFusionUrl: server.url, memoryLimitMb: 256 });
      expect(await score(input(dataSource))).toBe(1);
      expect(server.requests.map((one) => one.memory_limit_MB)).toEqual([256]);
    },
  );
});

test.each([
  ["```python\na\n```", "python", "\na\n"],
  ["```python\na\n```\n```python\nb\n``` ```c```", "python", "\nb\n"],
  ["```python\nopen", "python", "\nopen"],
  ["```\nplain\n```", "python", "\nplain\n"],
  ["```py\nx = 1\n```", "python", "x = 1\n"],
  ["```JavaScript\nx\n```", "javascript", "x\n"],
  ["```x = 1```", "python", "x = 1"],
  ["```js\nfirst\n```\n```python\nlast\n```", "python", "\nlast\n"],
  ["```python\nfirst\n```\n```js\nlast\n```", "python", "\nfirst\n"],
  ["```js\ndraft\n```\nNo:\n```js\nfinal\n```", "javascript", "final\n"],
  ["```py\ndraft\n```\nNo:\n```Python\nfinal\n```\n```\n1\n```", "python", "final\n"],
  ["```bash\nnpm i\n```\n```JavaScript\nright\n```\n```c++\nno\n```", "javascript", "right\n"],
  ["```\n1\n```\n``` ts title=a.ts\r\nright\n```", "javascript", "right\n"],
  ["```json\n1\n```\n```\n2\n```", "python", "1\n"],
  ["```js``` opens a block:\n```\nx\n```", "python", "js"],
])("the program of %j", (response, language, code) => {
  expect(lastCodeBlock(response)).toEqual({ language, code });
});

test("a response may have no program", () => {
  expect(lastCodeBlock("x = 1")).toBeUndefined();
});

test.each([
  ["1 2 3", "1 2 3\n", true],
  [" a \n b ", "a\nb", true],
  ["a\n\nb", "a\nb", true],
  ["1 2 \r\n3 4 \r\n", "1 2 \n3 4 \n", true],
  ["1 2 \r\n3 4", "1 2\n3 4 ", true],
  ["3 1 2", "1 2 3", false],
  ["1 1 2", "1 2", false],
  ["b\na", "a\nb", false],
  ["1 2\n3", "1 2 3", false],
  ["0.1234", "0.1234001", true],
  ["a \n\nb", "a\nb", false],
  ["100000000", "100000001", false],
  ["-100000000", "-100000001", true],
  ["0.1234 1", "0.1234001 1", false],
  ["0.124", "0.123", false],
  ["1e-9", "0", true],
  ["1_000", "1000", true],
  ["inf", "Infinity", true],
  ["nan", "nan", true],
  ["nan", "1", false],
  ["", "", true],
  ["1.5\n2", "1.500001\n2", true],
  ["1.5\n2", "1.5", false],
  ["", "a", false],
  ["yes", "YES", false],
  [".", "0", false],
])("as output %j is %j: %s", (output, expected, is) => {
  expect(sameOutput(output, expected)).toBe(is);
});

test.each([
  ["1", "1.0", true],
  ["true", "1", true],
  ["[1, [2]]", "[1,[2]]", true],
  ["[1, 2]", "[[1, 2]]", true],
  ["[]", "[]", true],
  ['{"a": 1, "b": 2}', '{"b": 2, "a": 1}', true],
  ['{"a": 1}', '{"a": 1, "b": 2}', false],
  ["12345678901234567890", "12345678901234567891", false],
  ["10000000000000000000000", "1e22", true],
  ["null", "0", false],
  ["[]", "{}", false],
  ['"a"', "a", false],
  ["[1, 2]", "[1, 3]", false],
  ["[[1], 2]", "[[3], 2]", false],
  ['{"a": [1]}', '{"a": [2]}', false],
  ['{"a": 1}', '{"a": 2}', false],
  ['["a"]', '["b"]', false],
  ["[null]", "[0]", false],
  ["[1, 2]", '{"0": 1, "1": 2}', false],
  ["[1, 2]", "[[1, 3]]", false],
  ["Infinity", "Infinity", true],
  ["[-Infinity, 1]", "[-Infinity, 1.0]", true],
  ["Infinity", "-Infinity", false],
  ["NaN", "NaN", false],
  ['["NaN", "\\"Infinity"]', '["NaN", "\\"Infinity"]', true],
  ["1Infinity", "1e999", false],
])("as value %s is %s: %s", (value, expected, is) => {
  expect(sameValue(value, expected)).toBe(is);
});

test("tests may be given as lists of lines, and arguments as lists of values", () => {
  expect(readCodeTests({ inputs: [["1", "2"]], outputs: [["3", "4"]] }).tests).toEqual([
    { stdin: "1\n2", expected: "3\n4", assertion: undefined },
  ]);
  const { tests, functionName } = readCodeTests({
    fn_name: "f",
    inputs: [[1, [2]]],
    outputs: [{ a: 1 }],
  });
  expect(functionName).toBe("f");
  expect(tests).toEqual([{ stdin: "1\n[2]", expected: '{"a":1}', assertion: undefined }]);
});

test("a whole number that Python refuses to read is no value", () => {
  const digits = "9".repeat(4300);
  expect(sameValue(`-${digits}`, `-${digits}`)).toBe(true);
  expect(sameValue(`${digits}9`, `${digits}9`)).toBe(false);
});

test("numbers that Python has may stand beside texts of any length", () => {
  const input = JSON.stringify("1\n".repeat(3_000_000));
  const text = `{ "inputs": [${input}], "outputs": ["1"], "rating": NaN }`;
  expect(readCodeTests(text).tests).toHaveLength(1);
});

test("tests keep the numbers that Python has, and those that are not run are not looked at", () => {
  const text = `{ "fn_name": "f", "inputs": [[12345678901234567890, NaN], "x"], "outputs": [{ "a": [-Infinity] }, "x"] }`;
  expect(readCodeTests(text, 1).tests).toEqual([
    { stdin: "12345678901234567890\nNaN", expected: '{"a":[-Infinity]}', assertion: undefined },
  ]);
});
