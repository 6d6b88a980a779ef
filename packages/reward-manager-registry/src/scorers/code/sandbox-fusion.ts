/**
 * verl's sandbox_fusion: the program of a response against the tests of its task, in a sandbox
 * service that speaks SandboxFusion's `run_code`. Each test is one request, one after the other, so
 * that a limit on samples at once is also a limit on requests at once.
 *
 * A failure of the service is an error, and no failed test: verl counts both as 0.
 */

import { randomUUID } from "node:crypto";
import { InvalidScorerOptionError, SandboxServiceError } from "../../errors.ts";
import { checkOptionNames } from "../../option-names.ts";
import type { OptionNames } from "../../option-names.ts";
import { describeValue } from "../../value-description.ts";
import { lastCodeBlock } from "./code-block.ts";
import type { CodeBlock } from "./code-block.ts";
import { mostTests, readCodeTests } from "./code-tests.ts";
import type { CodeScore, CodeTest, CodeTestResult } from "./code-tests.ts";
import type { KeptTests } from "./kept-tests.ts";
import { checkMostTimeouts, isHopeless, skipped } from "./prime-code.ts";
import { sameValue } from "./same-answer.ts";
import { askService } from "./sandbox-service.ts";
import type { CommandResult, RunCodeAnswer } from "./sandbox-service.ts";
import { callingProgram, testedProgram } from "./service-caller.ts";

/** Settings of a sandbox service. */
export interface SandboxFusionOptions {
  /** The URL of its `run_code`. */
  readonly url: string;
  /** The memory of a program. Default 1,024. */
  readonly memoryLimitMb?: number;
  /**
   * The share of the first ten tests that pass, and less than 1 if a later answer is wrong; false:
   * the share of all. Default true.
   */
  readonly continuous?: boolean;
  /** The time for a test's compilation, and for its run. Default 10,000. */
  readonly timeoutMs?: number;
  /**
   * So many tests may take too long: those behind them are skipped, and count as failed. Default 1;
   * verl (Infinity) sends all.
   */
  readonly mostTimeouts?: number;
  /**
   * The pause between the three attempts of a request at which the service failed (408, 409, 429,
   * 5xx, a broken connection, an answer of no use), where it asks for none itself (`retry-after`,
   * at most 10 s); twice as long the second time. Default 1,000.
   */
  readonly retryDelayMs?: number;
  /** Ends the requests when it is aborted. */
  readonly signal?: AbortSignal | undefined;
}

const optionNames: OptionNames<SandboxFusionOptions> = {
  url: true,
  memoryLimitMb: true,
  continuous: true,
  timeoutMs: true,
  mostTimeouts: true,
  retryDelayMs: true,
  signal: true,
};

/** The time of a request beyond that of its program. */
const spareMs = 10_000;

/**
 * Scores a response; without a block of code it is 0. Rejects with InvalidSampleError for malformed
 * tests, with InvalidScorerOptionError, with SandboxServiceError, with fetch's errors when the
 * service is unreachable or late, and with the signal's reason.
 */
export async function scoreSandboxFusion(
  response: string,
  groundTruth: unknown,
  options: SandboxFusionOptions,
): Promise<CodeScore> {
  return await scoreByService(response, groundTruth, options);
}

/**
 * As scoreSandboxFusion.
 *
 * @param kept has the results of an earlier attempt, and keeps those of one that fails
 */
export async function scoreByService(
  response: string,
  groundTruth: unknown,
  options: SandboxFusionOptions,
  kept?: KeptTests,
): Promise<CodeScore> {
  checkOptionNames(options, optionNames);
  const { tests, functionName } = readCodeTests(groundTruth);
  const { continuous = true, mostTimeouts = 1, timeoutMs = 10_000 } = options;
  if (!Number.isFinite(timeoutMs) || timeoutMs <= 0) {
    throw new InvalidScorerOptionError("timeoutMs", "a number above 0", describeValue(timeoutMs));
  }
  checkMostTimeouts(mostTimeouts);
  const block = lastCodeBlock(response);
  if (block === undefined) return { score: 0, metadata: [] };
  const counted = continuous ? Math.min(mostTests, tests.length) : tests.length;
  const metadata: CodeTestResult[] = [...(kept?.take(response, groundTruth) ?? [])];
  for (const [index, test] of tests.entries()) {
    if (index < metadata.length) continue;
    // Tests behind the first ten run only for a program that has passed those, and only until one
    // is wrong.
    if (index === counted && passedOf(metadata) < counted) break;
    let result: CodeTestResult;
    try {
      result = await resultBy(index, test, { block, functionName, options });
    } catch (error) {
      kept?.keep(response, groundTruth, metadata);
      throw error;
    }
    metadata.push(result);
    if (isHopeless(metadata, mostTimeouts)) break;
    if (index >= counted && result.status === "wrong_answer") {
      return { score: counted / (counted + 1), metadata };
    }
  }
  const passed = passedOf(metadata.slice(0, counted));
  metadata.push(...skipped(metadata.length, counted));
  return { score: passed / counted, metadata };
}

function passedOf(results: readonly CodeTestResult[]): number {
  return results.filter(({ status }) => status === "success").length;
}

/** A test as it is sent. */
interface SentTest extends CodeTest {
  /**
   * Text that is written behind the lines of a test, and before the result of a function: an end
   * without it came earlier. A program that reads its own source finds it.
   */
  readonly mark: string | undefined;
}

/** A program, for all tests of its sample. */
interface TestedProgram {
  readonly block: CodeBlock;
  readonly functionName: string | undefined;
  readonly options: SandboxFusionOptions;
}

/** Runs a test by the service. */
async function resultBy(
  index: number,
  test: CodeTest,
  { block, functionName, options }: TestedProgram,
): Promise<CodeTestResult> {
  const { url, timeoutMs = 10_000, retryDelayMs = 1000, signal } = options;
  const isMarked = test.assertion !== undefined || functionName !== undefined;
  const sent: SentTest = { ...test, mark: isMarked ? `rayling-${randomUUID()}` : undefined };
  const body = requestOf(block, sent, functionName, options);
  const use = { url, timeoutMs: 2 * timeoutMs + spareMs, retryDelayMs, signal };
  return await askService(body, use, (answer) => resultOf(index, sent, functionName, answer));
}

/** The body of the request for a test. */
function requestOf(
  block: CodeBlock,
  sent: SentTest,
  functionName: string | undefined,
  { timeoutMs = 10_000, memoryLimitMb = 1024 }: SandboxFusionOptions,
): string {
  const seconds = timeoutMs / 1000;
  return JSON.stringify({
    compile_timeout: seconds,
    run_timeout: seconds,
    code: programOf(block, sent, functionName),
    stdin: sent.stdin,
    memory_limit_MB: memoryLimitMb,
    language: block.language === "python" ? "python" : "nodejs",
    files: {},
    fetch_files: [],
  });
}

function programOf(
  { language, code }: CodeBlock,
  { assertion, mark }: SentTest,
  functionName: string | undefined,
): string {
  if (mark === undefined) return code;
  if (functionName !== undefined) {
    return callingProgram(language, code, { name: functionName, mark });
  }
  return testedProgram(language, code, { lines: assertion ?? "", mark });
}

/** Throws SandboxServiceError when the answer says nothing about the program. */
function resultOf(
  test: number,
  { expected, mark }: SentTest,
  functionName: string | undefined,
  answer: RunCodeAnswer,
): CodeTestResult {
  const { status, message, compiled, run } = answer;
  const [stdout = null, behind] =
    mark === undefined ? [run?.stdout] : (run?.stdout?.split(`\n${mark}\n`) ?? []);
  const measured = {
    test,
    stdout,
    stderr: run?.stderr ?? compiled?.stderr ?? null,
    exitCode: run?.returnCode ?? null,
    durationMs: typeof run?.seconds === "number" ? 1000 * run.seconds : null,
  };
  if (status === "Failed") {
    if (compiled !== undefined && isFailed(compiled)) {
      return { ...measured, status: "compile_error" };
    }
    if (run?.status === "TimeLimitExceeded") return { ...measured, status: "timeout" };
    if (run !== undefined && isFailed(run)) return { ...measured, status: "runtime_error" };
  }
  if (status === "Success" && run?.status === "Finished" && !isPartial(run)) {
    if (mark !== undefined && behind === undefined) return { ...measured, status: "runtime_error" };
    const isRight =
      functionName === undefined
        ? isOutput(stdout ?? "", expected)
        : sameValue(behind?.split("\n", 1)[0] ?? "", expected ?? "");
    return { ...measured, status: isRight ? "success" : "wrong_answer" };
  }
  const without = run?.status === "Finished" ? "without the result of a run" : "";
  throw new SandboxServiceError(
    ["it answered", String(status), message, without].filter(Boolean).join(" "),
  );
}

/** By the service's protocol a command that has failed says so by its status or its code. */
function isFailed({ status, returnCode }: CommandResult): boolean {
  if (status === "Finished") return returnCode !== null && returnCode !== 0;
  return status === "Error" || status === "TimeLimitExceeded";
}

/** A run that has finished has a code or an output: the protocol lets one of both be null. */
function isPartial({ stdout, returnCode }: CommandResult): boolean {
  return stdout === null && returnCode === null;
}

/** verl compares texts without their final line ends. */
function isOutput(stdout: string, expected: string | undefined): boolean {
  return expected === undefined || stdout.replace(/\n+$/, "") === expected.replace(/\n+$/, "");
}
