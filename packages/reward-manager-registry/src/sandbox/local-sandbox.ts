/**
 * Programs that nobody has looked at, run on this machine: each in a child process with a folder, limits and a deadline of its own (confined-child), denied what its language lets be
 * denied (runtimes), a few at a time. It keeps accidents and careless programs apart from this process and its secrets. It is no jail for programs that are made to break out:
 * those belong behind a sandbox service. What exactly is denied is in the package's README.
 */

import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { availableParallelism, constants, tmpdir } from "node:os";
import { join } from "node:path";
import { InvalidScorerOptionError, SandboxUnavailableError } from "../errors.ts";
import { describeValue } from "../value-description.ts";
import type { ChildEnd } from "./confined-child.ts";
import { runConfined } from "./confined-child.ts";
import { Runtimes } from "./runtimes.ts";
import type { ProgramLanguage } from "./runtimes.ts";
import { Turns } from "./turns.ts";

export interface LocalSandboxOptions {
  /** Programs at once; others wait. Default: one per CPU. */
  readonly maxConcurrent?: number;
  /** Time of the processor that a program may take; of the clock it may take twice as much. Default 10,000 (verl). */
  readonly timeoutMs?: number;
  /** Default 1,024 (verl). */
  readonly memoryLimitMb?: number;
  /** What it may write to its standard output. Default 8 MiB. */
  readonly maxOutputBytes?: number;
  /** Namespaces of the kernel around each program: true: where it gives them (default); "required": where it does not, nothing is run. */
  readonly namespaces?: boolean | "required";
}

export interface Program {
  readonly language: ProgramLanguage;
  readonly code: string;
  /** Default: nothing. */
  readonly stdin?: string;
  /**
   * Calls this function of the program's (or the method of a class Solution) with the arguments that stand in `stdin` as JSON, one per line. Default: the program runs as a whole. An
   * identifier, or InvalidScorerOptionError.
   */
  readonly functionName?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** How a run ended. */
export interface ProgramEnd {
  readonly status: "finished" | "compile-error" | "timeout" | "output-limit";
  /** null: a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  /** At most 64 KiB of it. */
  readonly stderr: string;
  /** JSON of what the function returned; undefined where none was called, or it did not return. */
  readonly value: string | undefined;
  readonly durationMs: number;
}

export class LocalSandbox {
  readonly #runtimes: Runtimes;
  readonly #needsNamespaces: boolean;
  readonly #turns: Turns;
  readonly #timeoutMs: number;
  readonly #memoryLimitMb: number;
  readonly #maxOutputBytes: number;

  /** Throws InvalidScorerOptionError. */
  constructor(options: LocalSandboxOptions = {}) {
    const { maxConcurrent = availableParallelism(), timeoutMs = 10_000 } = options;
    const { memoryLimitMb = 1024, maxOutputBytes = 8 * 2 ** 20 } = options;
    this.#runtimes = new Runtimes(options.namespaces !== false);
    this.#needsNamespaces = options.namespaces === "required";
    this.#turns = new Turns(positive("maxConcurrent", maxConcurrent));
    this.#timeoutMs = positive("timeoutMs", timeoutMs);
    this.#memoryLimitMb = positive("memoryLimitMb", memoryLimitMb);
    this.#maxOutputBytes = positive("maxOutputBytes", maxOutputBytes);
  }

  /** "namespaces": programs have no network and see no other processes, by the kernel. "process": what is denied is denied by their languages alone. */
  async isolation(): Promise<"namespaces" | "process"> {
    return (await this.#runtimes.hasNamespaces()) ? "namespaces" : "process";
  }

  /** Rejects with SandboxUnavailableError, and with the signal's reason. What the program does wrong is in its end. */
  async run(program: Program): Promise<ProgramEnd> {
    const { functionName, signal } = program;
    if (functionName !== undefined && !/^[A-Za-z_$][\w$]*$/.test(functionName)) {
      throw new InvalidScorerOptionError(
        "functionName",
        "an identifier",
        describeValue(functionName),
      );
    }
    const done = await this.#turns.take(signal);
    try {
      return await this.#run(program);
    } finally {
      done();
    }
  }

  async #run({ language, code, stdin = "", functionName, signal }: Program): Promise<ProgramEnd> {
    if (this.#needsNamespaces && !(await this.#runtimes.hasNamespaces())) {
      throw new SandboxUnavailableError(language, "the kernel gives no namespaces");
    }
    const folder = await realpath(await mkdtemp(join(tmpdir(), "rayling-program-")));
    try {
      const memoryLimitMb = this.#memoryLimitMb;
      const request = { language, code, functionName, folder, memoryLimitMb };
      const { files, command, ownMb } = await this.#runtimes.prepare(request);
      const stdinPath = join(folder, "stdin.txt");
      await Promise.all([
        writeFile(stdinPath, stdin),
        ...Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text)),
      ]);
      const cpuSeconds = Math.ceil(this.#timeoutMs / 1000);
      const end = await runConfined({
        command,
        cwd: folder,
        env: environment(folder),
        stdinPath,
        cpuSeconds,
        wallMs: 2 * this.#timeoutMs,
        dataMb: memoryLimitMb + ownMb,
        maxOutputBytes: this.#maxOutputBytes,
        signal,
      }).catch((error: unknown) => {
        signal?.throwIfAborted();
        throw new SandboxUnavailableError(language, "no shell can be started", { cause: error });
      });
      return programEnd(end, cpuSeconds);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

/** Nothing of ours: keys of services stand in environments. */
function environment(folder: string): Readonly<Record<string, string>> {
  return {
    PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin",
    HOME: folder,
    TMPDIR: folder,
    LANG: "C.UTF-8",
    // Numpy's libraries start a thread per CPU, each with memory of its own.
    OMP_NUM_THREADS: "1",
    OPENBLAS_NUM_THREADS: "1",
    MKL_NUM_THREADS: "1",
  };
}

function programEnd(end: ChildEnd, cpuSeconds: number): ProgramEnd {
  const { reason, stdout, stderr, told, durationMs } = end;
  const { value, compileError } = readTold(told);
  const { exitCode, signal } = withSignal(end);
  // The kernel ends it so at the limit of its processor time.
  const isOutOfTime =
    ["SIGKILL", "SIGXCPU"].includes(signal ?? "") && durationMs > 900 * cpuSeconds;
  const finished = compileError === true ? "compile-error" : "finished";
  const status = reason === "ended" ? (isOutOfTime ? "timeout" : finished) : reason;
  return { status, exitCode, signal, stdout, stderr, value, durationMs };
}

/** A shell that stood between says 128 and the signal's number. */
function withSignal({ exitCode, signal }: ChildEnd): Pick<ProgramEnd, "exitCode" | "signal"> {
  const [name] = Object.entries(constants.signals).find(([, n]) => n + 128 === exitCode) ?? [];
  return name === undefined
    ? { exitCode, signal }
    : { exitCode: null, signal: name as NodeJS.Signals };
}

function readTold(told: string): { readonly value?: string; readonly compileError?: boolean } {
  if (told === "") return {};
  if (told === '{"compileError": true}') return { compileError: true };
  // Numbers of any size, so not parsed here.
  const value = /^\{"value": ?([\s\S]*)\}$/.exec(told)?.[1];
  return value === undefined ? {} : { value };
}

function positive(option: string, value: number): number {
  if (Number.isFinite(value) && value > 0) return value;
  throw new InvalidScorerOptionError(option, "a number above 0", describeValue(value));
}
