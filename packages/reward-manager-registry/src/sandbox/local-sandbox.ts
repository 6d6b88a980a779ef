/**
 * Runs untrusted programs on this machine, a few at a time: each in a child process with a folder,
 * limits and a deadline of its own (program-run.ts), behind the strongest isolation of the machine
 * (isolation/). This module reports how a run ended, and what it returned or wrote; the owner of
 * the tests decides its score.
 *
 * docs/security.md says what each isolation prevents, and what it does not.
 */

import { availableParallelism } from "node:os";
import {
  InvalidSampleError,
  InvalidScorerOptionError,
  SandboxResourceError,
  SandboxUnavailableError,
} from "../errors.ts";
import { checkOptionNames } from "../option-names.ts";
import type { OptionNames } from "../option-names.ts";
import { describeValue } from "../value-description.ts";
import { signalOf } from "./confined-child.ts";
import type { ChildEnd } from "./confined-child.ts";
import { ForkServers } from "./fork-server.ts";
import { chooseIsolation, hasFilter } from "./isolation/choose-isolation.ts";
import type { Choice, SandboxReport } from "./isolation/choose-isolation.ts";
import { isolations } from "./isolation/isolation.ts";
import type { Isolation, SandboxIsolation } from "./isolation/isolation.ts";
import { runJudged } from "./judged-run.ts";
import { cpuSecondsOf, runProgram, warn } from "./program-run.ts";
import type { RunLimits } from "./program-run.ts";
import { Runtimes } from "./runtimes.ts";
import type { ProgramLanguage, ProgramPart } from "./runtimes.ts";
import { Turns } from "./concurrency-limit.ts";

/** Limits and isolation of programs. */
export interface LocalSandboxOptions {
  /** The most programs at once, a whole number; others wait. Default: one per CPU. */
  readonly maxConcurrent?: number;
  /**
   * The processor time of a program; its elapsed time may be twice as long. Default 10,000 (verl).
   */
  readonly timeoutMs?: number;
  /** The memory of a program; part of a MiB counts as a whole one. Default 1,024 (verl). */
  readonly memoryLimitMb?: number;
  /** The limit of its standard output, up to 256 MiB. Default 8 MiB. */
  readonly maxOutputBytes?: number;
  /**
   * Permitted isolations; the strongest one that works on this machine is used, and without one no
   * program runs. Default: all four. For possibly malicious programs:
   * `["bubblewrap", "namespaces"]`.
   */
  readonly isolation?: readonly SandboxIsolation[];
}

const optionNames: OptionNames<LocalSandboxOptions> = {
  maxConcurrent: true,
  timeoutMs: true,
  memoryLimitMb: true,
  maxOutputBytes: true,
  isolation: true,
};

/** A program to be run. */
export interface Program {
  /** The language of the code. */
  readonly language: ProgramLanguage;
  /** The source text. */
  readonly code: string;
  /** The standard input. Default: empty. */
  readonly stdin?: string;
  /**
   * A function of the program (or a method of a class Solution) to call with arguments from `stdin`
   * as JSON, one per line; `if __name__ == "__main__":` does not run then. It must be an
   * identifier, else InvalidScorerOptionError. Default: the program runs as a whole.
   */
  readonly functionName?: string | undefined;
  /**
   * Lines of a Python test, which run behind the program and in a process of their own: names of
   * the program stand for objects in its process, and the comparisons are out of the program's
   * reach. They run also where what stands behind `if __name__ == "__main__":` fails. Not together
   * with `functionName`.
   */
  readonly test?: string | undefined;
  /** Ends the run when it is aborted. */
  readonly signal?: AbortSignal | undefined;
}

/** The end of a run. */
export interface ProgramEnd {
  /** How the run ended: by itself, or at a limit. */
  readonly status: "finished" | "compile-error" | "timeout" | "output-limit";
  /** The exit code; null if a signal ended it. */
  readonly exitCode: number | null;
  /** The signal that ended it, if one did. */
  readonly signal: NodeJS.Signals | null;
  /** Its standard output. */
  readonly stdout: string;
  /** At most 64 KiB of its standard error. */
  readonly stderr: string;
  /**
   * JSON of the function's result, as the program's process reports it; undefined if none was
   * called, or it did not return.
   */
  readonly value: string | undefined;
  /**
   * Whether a program of Python ended by SystemExit (`sys.exit`, `exit`), whatever its exit code;
   * undefined for functions, tests and JavaScript.
   */
  readonly isExit?: boolean;
  /** Whether the lines of the test ran to their end; undefined if there were none. */
  readonly isTestPassed?: boolean;
  /** The elapsed time of its process. */
  readonly durationMs: number;
}

/** Runs untrusted programs on this machine. docs/security.md says what it prevents. */
export class LocalSandbox {
  readonly #runtimes = new Runtimes();
  readonly #permitted: readonly SandboxIsolation[];
  readonly #turns: Turns;
  readonly #limits: RunLimits;
  readonly #servers: ForkServers;
  /** How many programs there are, with those that wait for their turn. */
  #programs = 0;
  /** Whether no program has come since. */
  #isClosed = false;
  #choice: Promise<Choice> | undefined;

  /** Throws InvalidScorerOptionError. */
  constructor(options: LocalSandboxOptions = {}) {
    checkOptionNames(options, optionNames);
    const { maxConcurrent = availableParallelism(), timeoutMs = 10_000 } = options;
    const { memoryLimitMb = 1024, maxOutputBytes = 8 * 2 ** 20, isolation = isolations } = options;
    this.#permitted = knownIsolations(isolation);
    this.#turns = new Turns(wholeFrom1("maxConcurrent", maxConcurrent));
    this.#servers = new ForkServers(maxConcurrent);
    this.#limits = {
      timeoutMs: positive("timeoutMs", timeoutMs),
      memoryLimitMb: Math.ceil(positive("memoryLimitMb", memoryLimitMb, mostMemoryMb)),
      maxOutputBytes: positive("maxOutputBytes", maxOutputBytes, mostOutputBytes),
    };
  }

  /**
   * Returns the isolation. Rejects with SandboxUnavailableError when no permitted one works on this
   * machine, and with SandboxResourceError when it cannot be known at the moment.
   */
  async isolation(): Promise<SandboxIsolation> {
    return (await this.#isolation("any language")).name;
  }

  /** Returns the isolation, and why no stronger one is used. */
  async inspect(): Promise<SandboxReport> {
    return (await this.#chosen()).report;
  }

  /**
   * Runs a program. Rejects with SandboxUnavailableError, with SandboxResourceError where the disk
   * is full or there are too many files or processes, with InvalidSampleError for lines of a test
   * that are at fault themselves, and with the signal's reason. The program's own failures are in
   * its end.
   */
  async run(program: Program): Promise<ProgramEnd> {
    const { language, functionName, test } = program;
    if (functionName !== undefined && !/^[A-Za-z_$][\w$]*$/.test(functionName)) {
      throw new InvalidScorerOptionError(
        "functionName",
        "an identifier",
        describeValue(functionName),
      );
    }
    if (test !== undefined && (functionName !== undefined || language !== "python")) {
      const expected = "left out, but for a program of Python without functionName";
      throw new InvalidScorerOptionError("test", expected, describeValue(test));
    }
    this.#isClosed = false;
    this.#programs += 1;
    try {
      return await this.#runInTurn(program);
    } finally {
      this.#programs -= 1;
      if (this.#isClosed) await this.#servers.shrink(this.#programs);
    }
  }

  async #runInTurn(program: Program): Promise<ProgramEnd> {
    const done = await this.#turns.take(program.signal);
    try {
      return await this.#run(program);
    } finally {
      done();
    }
  }

  /**
   * Ends the processes that it keeps for programs to come: one for each program at once, for 10 s.
   * Those of programs that run, or wait for their turn, end behind these. A later run starts anew.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#servers.shrink(this.#programs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #run(program: Program): Promise<ProgramEnd> {
    const { language, code, stdin = "", functionName, test, signal } = program;
    const isolation = await this.#isolation(language);
    const [runtimes, limits] = [this.#runtimes, this.#limits];
    const request = { language, code, stdin, isolation, runtimes, limits, signal };
    const cpuSeconds = cpuSecondsOf(limits);
    if (test !== undefined) {
      const { program: own, judge } = await runJudged(request, test);
      throwIfUnfit(judge);
      const endOf = (one: ChildEnd): ProgramEnd =>
        programEnd(withSignal(one, isolation), cpuSeconds);
      return judgedEnd(endOf(own), endOf(judge));
    }
    const part: ProgramPart =
      functionName === undefined ? { kind: "script" } : { kind: "function", name: functionName };
    const isForked = language === "python" && hasFilter(isolation);
    const end = isForked
      ? await this.#servers.run(
          { isolation, runtimes, limits },
          { code, stdin, functionName, signal },
        )
      : await runProgram({ ...request, part });
    const how = programEnd(isForked ? end : withSignal(end, isolation), cpuSeconds);
    if (functionName !== undefined) return { ...how, value: valueIn(end.reported) };
    if (language !== "python") return how;
    return { ...how, isExit: end.reported === '{"exit": true}' };
  }

  async #isolation(language: string): Promise<Isolation> {
    const { isolation, report } = await this.#chosen();
    if (isolation !== undefined) return isolation;
    // A later attempt may succeed.
    this.#choice = undefined;
    const problems = report.missing.map((one) => `${one.isolation}: ${one.problem}`).join("; ");
    throw new SandboxUnavailableError(language, `no permitted isolation works here (${problems})`);
  }

  #chosen(): Promise<Choice> {
    this.#choice ??= chooseIsolation(this.#permitted, (one) => this.#attempt(one)).then(
      (choice) => {
        warnOfWeakness(choice.report);
        return choice;
      },
      (error: unknown) => {
        // A later attempt may succeed.
        this.#choice = undefined;
        throw error;
      },
    );
    return this.#choice;
  }

  /** Tries Python if it is there: it needs more of the kernel than JavaScript does. */
  async #attempt(isolation: Isolation): Promise<void> {
    const hasPython = await this.#runtimes.hasPython();
    const language = hasPython ? "python" : "javascript";
    const limits = { timeoutMs: 30_000, memoryLimitMb: 1024, maxOutputBytes: 1024 };
    const program = { language, part: { kind: "script" }, code: "", stdin: "" } as const;
    const end = await runProgram({ ...program, isolation, runtimes: this.#runtimes, limits });
    if (end.exitCode === 0) return;
    if (end.reason === "timeout") {
      const ms = end.durationMs.toFixed(0);
      const problem = `an empty program behind ${isolation.name} had not ended after ${ms} ms`;
      throw new SandboxResourceError(problem);
    }
    throw new SandboxUnavailableError(language, `an empty program ended with ${end.exitCode}`);
  }
}

let isWarned = false;

/** Warns once where programs of a model are held by little. */
function warnOfWeakness({ isolation, missing }: SandboxReport): void {
  if (isWarned || isolation !== "process" || missing.length === 0) return;
  isWarned = true;
  const names = missing.map((one) => one.isolation).join(", ");
  warn(
    `programs of a model run by the isolation "process", and little of it is the kernel's: this machine has no ${names}, and inspect() of a LocalSandbox says why`,
  );
}

function knownIsolations(given: readonly SandboxIsolation[]): readonly SandboxIsolation[] {
  const isKnown = (one: unknown): boolean => isolations.some((known) => known === one);
  if (Array.isArray(given) && given.length > 0 && given.every(isKnown)) return given;
  const expected = `a list of ${isolations.join(", ")}`;
  throw new InvalidScorerOptionError("isolation", expected, describeValue(given));
}

/**
 * Throws InvalidSampleError for lines that would be a failure of any program: they do not compile,
 * or fail where they do what the judge cannot do.
 */
function throwIfUnfit({ reached, stderr }: ChildEnd): void {
  const problem = JSON.stringify(stderr.trim().split("\n").at(-1)?.slice(0, 300));
  if (reached.endsWith("compile-error")) {
    throw new InvalidSampleError("groundTruth", "lines of a test that compile", problem);
  }
  if (reached.endsWith("unfit")) {
    const expected = "lines of a test that the judge can run (docs/sandbox.md)";
    throw new InvalidSampleError("groundTruth", expected, problem);
  }
}

/** Merges the two ends; a failure of the program precedes the judge's report. */
function judgedEnd(own: ProgramEnd, judge: ProgramEnd): ProgramEnd {
  const isOwnFault = own.status !== "finished" || own.exitCode !== 0;
  const isPassed = !isOwnFault && judge.status === "finished" && judge.exitCode === 0;
  const { status, exitCode, signal } = isOwnFault ? own : judge;
  return {
    status,
    exitCode,
    signal,
    stdout: own.stdout + judge.stdout,
    stderr: own.stderr + judge.stderr,
    value: undefined,
    isTestPassed: isPassed,
    durationMs: Math.max(own.durationMs, judge.durationMs),
  };
}

function programEnd(end: ChildEnd, cpuSeconds: number): ProgramEnd {
  const { reason, exitCode, signal, stdout, stderr, reached, durationMs } = end;
  // The kernel ends it in this way at the limit of its processor time.
  const isOutOfTime =
    ["SIGKILL", "SIGXCPU"].includes(signal ?? "") && durationMs > 900 * cpuSeconds;
  const finished = reached.endsWith("compile-error") ? "compile-error" : "finished";
  const status = reason === "ended" ? (isOutOfTime ? "timeout" : finished) : reason;
  return { status, exitCode, signal, stdout, stderr, value: undefined, durationMs };
}

/**
 * The process that such an isolation has in between reports 128 plus the number of a signal, and
 * cannot be told from a program that exits with that code.
 */
function withSignal(end: ChildEnd, { endsProcesses }: Isolation): ChildEnd {
  const { exitCode } = end;
  const signal = endsProcesses && exitCode !== null ? signalOf(exitCode - 128) : undefined;
  return signal === undefined ? end : { ...end, exitCode: null, signal };
}

/** Numbers may have any size, so the text is not parsed here. */
function valueIn(reported: string): string | undefined {
  return /^\{"value": ?([\s\S]*)\}$/.exec(reported)?.[1];
}

/** 256 MiB: outputs are texts, and Node has none of twice as many characters. */
const mostOutputBytes = 2 ** 28;

/** 4 PiB; shells and Node count the bytes of far more wrongly. */
const mostMemoryMb = 2 ** 32;

function positive(option: string, value: number, most = Number.MAX_VALUE): number {
  if (Number.isFinite(value) && value > 0 && value <= most) return value;
  const upTo = most === Number.MAX_VALUE ? "" : `, up to ${most}`;
  throw new InvalidScorerOptionError(option, `a number above 0${upTo}`, describeValue(value));
}

/** With less than one turn every run would wait for ever. */
function wholeFrom1(option: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new InvalidScorerOptionError(option, "a whole number of at least 1", describeValue(value));
}
