/**
 * verl's prime_code: the program of a response against the tests of its task, on this machine.
 * Every test is a run of its own in a local sandbox. The expected answer never gets there, so a
 * program cannot look it up.
 */

import { InvalidScorerOptionError } from "../../errors.ts";
import { checkOptionNames } from "../../option-names.ts";
import type { OptionNames } from "../../option-names.ts";
import { describeValue } from "../../value-description.ts";
import type { LocalSandbox, ProgramEnd } from "../../sandbox/local-sandbox.ts";
import { lastCodeBlock } from "./code-block.ts";
import type { CodeBlock } from "./code-block.ts";
import { mostTests, readCodeTests } from "./code-tests.ts";
import type { CodeScore, CodeTest, CodeTestResult, CodeTests } from "./code-tests.ts";
import { sameOutput, sameValue } from "./same-answer.ts";

/** Settings of `prime_code`. */
export interface PrimeCodeOptions {
  /** The sandbox that runs the programs. */
  readonly sandbox: LocalSandbox;
  /**
   * The share of the first ten tests that pass; false: 1 if all tests pass, else 0. Default true.
   */
  readonly continuous?: boolean;
  /**
   * So many tests may take too long: those behind them are skipped, and count as failed. Default 1;
   * in verl (Infinity) a program that never ends takes the time of ten tests.
   */
  readonly mostTimeouts?: number;
  /** Ends the runs when it is aborted. */
  readonly signal?: AbortSignal | undefined;
}

const optionNames: OptionNames<PrimeCodeOptions> = {
  sandbox: true,
  continuous: true,
  mostTimeouts: true,
  signal: true,
};

/**
 * Runs the tests one after the other. Without a block of code the whole response is a Python
 * program. Rejects with InvalidSampleError for malformed tests, InvalidScorerOptionError,
 * SandboxUnavailableError, and the signal's reason.
 */
export async function scorePrimeCode(
  response: string,
  groundTruth: unknown,
  options: PrimeCodeOptions,
): Promise<CodeScore> {
  checkOptionNames(options, optionNames);
  const { sandbox, continuous = true, mostTimeouts = 1, signal } = options;
  checkMostTimeouts(mostTimeouts);
  const all = readCodeTests(groundTruth, continuous ? mostTests : Infinity);
  const { tests } = all;
  const block = lastCodeBlock(response) ?? { language: "python", code: response };
  const metadata: CodeTestResult[] = [];
  for (const [index, test] of tests.entries()) {
    const result = await runTest(block, test, { index, all, sandbox, signal });
    metadata.push(result);
    if (isHopeless(metadata, mostTimeouts)) break;
    if (!continuous && result.status !== "success") break;
  }
  const passed = metadata.filter(({ status }) => status === "success").length;
  metadata.push(...skipped(metadata.length, tests.length));
  return {
    score: continuous ? passed / tests.length : Number(passed === tests.length),
    metadata,
  };
}

const unrun = { stdout: null, stderr: null, exitCode: null, durationMs: null } as const;

interface TestRun {
  readonly index: number;
  readonly all: CodeTests;
  readonly sandbox: LocalSandbox;
  readonly signal: AbortSignal | undefined;
}

async function runTest(
  { language, code }: CodeBlock,
  test: CodeTest,
  { index, all: { functionName }, sandbox, signal }: TestRun,
): Promise<CodeTestResult> {
  const { stdin, assertion } = test;
  if (assertion !== undefined && language !== "python") {
    const stderr = "The lines of the test are Python: no program of another language passes them.";
    return { ...unrun, test: index, status: "runtime_error", stderr };
  }
  const program = { language, code, stdin, functionName, test: assertion, signal };
  const end = await sandbox.run(program);
  const { stdout, stderr, exitCode, durationMs } = end;
  const status = statusOf(end, test, functionName !== undefined);
  return { test: index, status, stdout, stderr, exitCode, durationMs };
}

function statusOf(
  end: ProgramEnd,
  { expected, assertion }: CodeTest,
  isCall: boolean,
): CodeTestResult["status"] {
  const { status, exitCode, value, stdout, isTestPassed, isExit = false } = end;
  if (status === "timeout") return "timeout";
  if (status === "output-limit") return "output_limit";
  if (status === "compile-error") return "compile_error";
  // A function that ended the program did not return.
  // verl compares what a script printed before `sys.exit(1)`, too.
  if ((exitCode !== 0 && !isExit) || (isCall && value === undefined)) return "runtime_error";
  if (assertion !== undefined && isTestPassed !== true) return "runtime_error";
  if (expected === undefined) return "success";
  const isSame = value === undefined ? sameOutput(stdout, expected) : sameValue(value, expected);
  return isSame ? "success" : "wrong_answer";
}

/**
 * Whether the tests behind these results are not worth their time: the program does not compile, or
 * takes too long again and again. All of them together have the one deadline of their sample.
 */
export function isHopeless(results: readonly CodeTestResult[], mostTimeouts: number): boolean {
  if (results.at(-1)?.status === "compile_error") return true;
  return results.filter(({ status }) => status === "timeout").length >= mostTimeouts;
}

/** Throws InvalidScorerOptionError. */
export function checkMostTimeouts(mostTimeouts: number): void {
  if (mostTimeouts >= 1) return;
  throw new InvalidScorerOptionError("mostTimeouts", "at least 1", describeValue(mostTimeouts));
}

/** Returns results of tests that did not run, and count as failed. */
export function skipped(from: number, to: number): CodeTestResult[] {
  return Array.from({ length: Math.max(0, to - from) }, (_, index) => ({
    ...unrun,
    test: from + index,
    status: "skipped",
  }));
}
