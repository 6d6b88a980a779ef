/**
 * verl's sandbox_fusion: the program of a response against the tests of its task, in a sandbox service that speaks SandboxFusion's `run_code`. One request per test, one after the other,
 * so that a limit on samples at once is one on requests at once.
 *
 * What the service could not do is an error, and no test that failed: verl counts both as 0.
 */

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxServiceError } from "../../errors.ts";
import { lastCodeBlock } from "./code-block.ts";
import type { CodeBlock } from "./code-block.ts";
import { mostTests, readCodeTests } from "./code-tests.ts";
import type { CodeScore, CodeTest, CodeTestResult } from "./code-tests.ts";
import { skipped } from "./prime-code.ts";
import { sameValue } from "./same-answer.ts";
import { callingProgram } from "./service-caller.ts";

export interface SandboxFusionOptions {
  /** Of its `run_code`. */
  readonly url: string;
  /** Default 1,024. */
  readonly memoryLimitMb?: number;
  /** The share of the first ten tests that pass, and less than 1 where a later answer is wrong; false: the share of all. Default true. */
  readonly continuous?: boolean;
  /** Of a test's compilation, and of its run. Default 10,000. */
  readonly timeoutMs?: number;
  /** Between the three tries of a request that the service's gateway gave up (504); twice that the second time. Default 1,000. */
  readonly retryDelayMs?: number;
  readonly signal?: AbortSignal | undefined;
}

const tries = 3;
/** What a request may take beside what its program may. */
const spareMs = 10_000;

/**
 * A response without a block of code scores 0. Rejects with InvalidSampleError for tests that cannot be read, with SandboxServiceError, with what fetch does when the service cannot be
 * reached or is late, and with the signal's reason.
 */
export async function scoreSandboxFusion(
  response: string,
  groundTruth: unknown,
  options: SandboxFusionOptions,
): Promise<CodeScore> {
  const { tests, functionName } = readCodeTests(groundTruth);
  const { continuous = true } = options;
  const block = lastCodeBlock(response);
  if (block === undefined) return { score: 0, metadata: [] };
  const counted = continuous ? Math.min(mostTests, tests.length) : tests.length;
  const metadata: CodeTestResult[] = [];
  for (const [index, test] of tests.entries()) {
    // Behind the first ten only a program that has passed them is looked at, and only until it is wrong.
    if (index === counted && passedOf(metadata) < counted) break;
    const mark = test.assertion === undefined ? undefined : `rayling-${randomUUID()}`;
    const answer = await runCode(block, { ...test, mark }, functionName, options);
    const result = resultOf(index, { ...test, mark }, functionName, answer);
    metadata.push(result);
    if (result.status === "compile_error") break;
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
  /** What is written behind the lines of a test: an end without it came before them. A program that reads its own text finds it there. */
  readonly mark: string | undefined;
}

/** Of the service, as far as it matters. */
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
  const end = `${language === "python" ? '__import__("sys").__stdout__' : "process.stdout"}.write`;
  const program =
    assertion === undefined ? code : `${code}\n\n${assertion}\n${end}("\\n${mark}\\n")\n`;
  const body = JSON.stringify({
    compile_timeout: seconds,
    run_timeout: seconds,
    code: functionName === undefined ? program : callingProgram(language, program, functionName),
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
    await delay(attempt * retryDelayMs, undefined, signal === undefined ? {} : { signal });
  }
}

function post(
  url: string,
  body: string,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const late = AbortSignal.timeout(timeoutMs);
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

/** Throws SandboxServiceError where the answer says nothing about the program. */
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
    const isRight = isAnswer(stdout ?? "", expected, functionName !== undefined);
    return { ...measured, status: isRight ? "success" : "wrong_answer" };
  }
  throw new SandboxServiceError(`it answered ${String(status)} ${message}`.trimEnd());
}

/** verl compares texts without the ends of their last lines; what functions return may be written otherwise and be the same. */
function isAnswer(stdout: string, expected: string | undefined, isValue: boolean): boolean {
  if (expected === undefined) return true;
  const [own, its] = [stdout, expected].map((text) => text.replace(/\n+$/, "")) as [string, string];
  return own === its || (isValue && sameValue(own, its));
}
