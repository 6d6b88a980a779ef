/**
 * verl's sandbox_fusion: the program of a response against the tests of its task, in a sandbox
 * service that speaks SandboxFusion's `run_code`. Each test is one request, one after the other, so
 * that a limit on samples is also a limit on requests.
 *
 * A failure of the service is an error, and no failed test: verl counts both as 0.
 */

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { InvalidScorerOptionError, SandboxServiceError } from "../../errors.ts";
import { checkOptionNames } from "../../option-names.ts";
import type { OptionNames } from "../../option-names.ts";
import { describeValue } from "../../value-description.ts";
import { lastCodeBlock } from "./code-block.ts";
import type { CodeBlock } from "./code-block.ts";
import { mostTests, readCodeTests } from "./code-tests.ts";
import type { CodeScore, CodeTest, CodeTestResult } from "./code-tests.ts";
import { checkMostTimeouts, isHopeless, skipped } from "./prime-code.ts";
import { sameValue } from "./same-answer.ts";
import { callingProgram } from "./service-caller.ts";

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
   * The pause between the three attempts of a request that the service's gateway gave up (504);
   * twice as long the second time. Default 1,000.
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

const tries = 3;
/** The time of a request beyond that of its program. */
const spareMs = 10_000;
/** A timer of Node that is to wait longer fires at once. */
const longestTimer = 2 ** 31 - 1;

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
  const metadata: CodeTestResult[] = [];
  for (const [index, test] of tests.entries()) {
    // Tests behind the first ten run only for a program that has passed those, and only until one
    // is wrong.
    if (index === counted && passedOf(metadata) < counted) break;
    const isMarked = test.assertion !== undefined || functionName !== undefined;
    const mark = isMarked ? `rayling-${randomUUID()}` : undefined;
    const answer = await runCode(block, { ...test, mark }, functionName, options);
    const result = resultOf(index, { ...test, mark }, functionName, answer);
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

/** The used part of the service's answer. */
interface RunCodeAnswer {
  readonly status?: "Success" | "Failed" | "SandboxError";
  readonly message?: string;
  readonly compile_result?: CommandResult | null;
  readonly run_result?: CommandResult | null;
}

interface CommandResult {
  readonly status?: "Finished" | "Error" | "TimeLimitExceeded";
  readonly execution_time?: number | null;
  readonly return_code?: number | null;
  readonly stdout?: string | null;
  readonly stderr?: string | null;
}

async function runCode(
  { language, code }: CodeBlock,
  { stdin, assertion, mark }: SentTest,
  functionName: string | undefined,
  options: SandboxFusionOptions,
): Promise<RunCodeAnswer> {
  const { url, timeoutMs = 10_000, memoryLimitMb = 1024, retryDelayMs = 1000, signal } = options;
  const seconds = timeoutMs / 1000;
  const isCall = functionName !== undefined && mark !== undefined;
  const end = `${language === "python" ? '__import__("sys").__stdout__' : "process.stdout"}.write`;
  const program =
    assertion === undefined ? code : `${code}\n\n${assertion}\n${end}("\\n${mark}\\n")\n`;
  const body = JSON.stringify({
    compile_timeout: seconds,
    run_timeout: seconds,
    code: isCall ? callingProgram(language, program, { name: functionName, mark }) : program,
    stdin,
    memory_limit_MB: memoryLimitMb,
    language: language === "python" ? "python" : "nodejs",
    files: {},
    fetch_files: [],
  });
  for (let attempt = 1; ; attempt++) {
    const answer = await post(url, body, 2 * timeoutMs + spareMs, signal);
    if (answer.status !== 504 || attempt === tries) return read(answer);
    await answer.body?.cancel();
    const pauseMs = Math.min(attempt * retryDelayMs, longestTimer);
    await delay(pauseMs, undefined, signal === undefined ? {} : { signal });
  }
}

function post(
  url: string,
  body: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const late = AbortSignal.timeout(Math.min(Math.ceil(timeoutMs), longestTimer));
  return fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body,
    signal: signal === undefined ? late : AbortSignal.any([signal, late]),
  });
}

async function read(answer: Response): Promise<RunCodeAnswer> {
  const { status, headers } = answer;
  const text = await answer.text();
  if (!answer.ok) throw new SandboxServiceError(`it answered ${status}`, { status, headers });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new SandboxServiceError("its answer is no JSON", { cause });
  }
  if (typeof value !== "object" || value === null) {
    throw new SandboxServiceError("its answer is no object");
  }
  return value;
}

/** Throws SandboxServiceError when the answer says nothing about the program. */
function resultOf(
  test: number,
  { expected, mark }: SentTest,
  functionName: string | undefined,
  answer: RunCodeAnswer,
): CodeTestResult {
  const { status, message = "", compile_result: compiled, run_result: run } = answer;
  const [stdout = null, behind] =
    mark === undefined ? [run?.stdout] : (run?.stdout?.split(`\n${mark}\n`) ?? []);
  const measured = {
    test,
    stdout,
    stderr: run?.stderr ?? compiled?.stderr ?? null,
    exitCode: run?.return_code ?? null,
    durationMs: typeof run?.execution_time === "number" ? 1000 * run.execution_time : null,
  };
  if (status === "Failed" && compiled !== null && compiled !== undefined) {
    const isFinished = compiled.status === "Finished";
    const failed = isFinished ? compiled.return_code !== 0 : compiled.status !== undefined;
    if (failed) return { ...measured, status: "compile_error" };
  }
  if (status === "Failed" && run?.status === "TimeLimitExceeded") {
    return { ...measured, status: "timeout" };
  }
  const broke = run?.status === "Error" || (run?.status === "Finished" && run.return_code !== 0);
  if (status === "Failed" && broke) return { ...measured, status: "runtime_error" };
  if (status === "Success" && run?.status === "Finished") {
    if (mark !== undefined && behind === undefined) return { ...measured, status: "runtime_error" };
    const isRight =
      functionName === undefined
        ? isOutput(stdout ?? "", expected)
        : sameValue(behind?.split("\n", 1)[0] ?? "", expected ?? "");
    return { ...measured, status: isRight ? "success" : "wrong_answer" };
  }
  throw new SandboxServiceError(`it answered ${String(status)} ${message}`.trimEnd());
}

/** verl compares texts without their final line ends. */
function isOutput(stdout: string, expected: string | undefined): boolean {
  return expected === undefined || stdout.replace(/\n+$/, "") === expected.replace(/\n+$/, "");
}
