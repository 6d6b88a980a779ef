/**
 * One run of one process: its folder, its files, its walls, its end. local-sandbox.ts interprets
 * the end.
 */

import { mkdirSync, symlinkSync } from "node:fs";
import { mkdtemp, readdir, realpath, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { SandboxResourceError, SandboxUnavailableError } from "../errors.ts";
import { removeWritten, runConfined } from "./confined-child.ts";
import { isPassing } from "./passing-error.ts";
import type { ChildEnd, Hold } from "./confined-child.ts";
import type { Isolation } from "./isolation/isolation.ts";
import { endMarked, newMark } from "./leftovers.ts";
import type { Mark } from "./leftovers.ts";
import type { Preparation, ProgramLanguage, ProgramPart, Runtimes } from "./runtimes.ts";
import { codeOf, messageOf } from "../values/caught.ts";

export interface RunLimits {
  readonly timeoutMs: number;
  /** A whole number: the shell and Node take no other. */
  readonly memoryLimitMb: number;
  readonly maxOutputBytes: number;
}

export interface RunRequest {
  readonly language: ProgramLanguage;
  readonly part: ProgramPart;
  readonly code: string;
  readonly stdin: string;
  readonly isolation: Isolation;
  readonly runtimes: Runtimes;
  readonly limits: RunLimits;
  readonly talk?: ((channel: Duplex, hold: Hold, folder: string) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Rejects with SandboxUnavailableError when the program itself was not reached, with
 * SandboxResourceError when that, or its failure, was for what this machine lacks at the moment,
 * and with the signal's reason.
 */
export async function runProgram(request: RunRequest): Promise<ChildEnd> {
  const { language, part, code, isolation, runtimes, limits, signal } = request;
  const folder = await newFolder(language);
  try {
    const places = isolation.places(folder);
    const { memoryLimitMb } = limits;
    const wanted = { language, part, code, places, isolation, memoryLimitMb };
    const preparation = await runtimes.prepare(wanted);
    const mark = newMark();
    const end = await runPrepared(folder, preparation, { ...request, mark })
      .catch((error: unknown) => {
        signal?.throwIfAborted();
        throw notStarted(language, error, "no shell can be started");
      })
      .finally(() =>
        isolation.endsProcesses || preparation.isFiltered ? undefined : endMarked(mark),
      );
    if (end.reached === "") throw notReached(language, end, isolation);
    await throwIfDiskIsFull(end, folder, isolation);
    return end;
  } finally {
    await remove(folder);
  }
}

async function runPrepared(
  folder: string,
  { files, command, view, isFiltered, ownMb, mappedMb }: Preparation,
  { part, stdin, isolation, limits, talk, signal, mark }: RunRequest & { readonly mark: Mark },
): Promise<ChildEnd> {
  const { memoryLimitMb, maxOutputBytes } = limits;
  // It has no end; those of the programs that it forks are its own to set.
  const isServer = part.kind === "forks";
  const wrapping = isolation.wrap({ command, folder, view, isFiltered });
  const hasFilter = isFiltered || wrapping.filter !== undefined;
  const at = (name: string): string => join(folder, name);
  for (const name of ["code", "scratch", "root", ...(wrapping.folders ?? [])]) {
    // Outer folders come first; each needs a system call.
    mkdirSync(at(name), { recursive: true });
  }
  for (const [name, target] of Object.entries(wrapping.links ?? {})) symlinkSync(target, at(name));
  const written = {
    "code/stdin.txt": stdin,
    ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`code/${name}`, text])),
    ...wrapping.files,
  };
  await Promise.all(Object.entries(written).map(([name, text]) => writeFile(at(name), text)));
  return runConfined({
    command: wrapping.command,
    folder,
    cwd: at("scratch"),
    env: { ...environment(isolation.places(folder).scratch), ...mark },
    stdinPath: at("code/stdin.txt"),
    cpuSeconds: isServer ? undefined : cpuSecondsOf(limits),
    wallMs: isServer ? undefined : wallMsOf(limits),
    dataMb: isServer ? undefined : memoryLimitMb + ownMb,
    // The filter refuses what this limit prevents, and address space exceeds memory: libraries take
    // gigabytes of it.
    addressMb: mappedMb === undefined || hasFilter ? undefined : memoryLimitMb + ownMb + mappedMb,
    maxOutputBytes,
    filterPath: wrapping.filter === undefined ? undefined : at(wrapping.filter),
    talk: talk && ((channel, hold) => talk(channel, hold, folder)),
    signal,
  });
}

/** Returns the limit of a program's elapsed time, in ms. */
export function wallMsOf({ timeoutMs }: RunLimits): number {
  return 2 * timeoutMs;
}

/** Returns at most what each shell takes: 68 years. */
export function cpuSecondsOf({ timeoutMs }: RunLimits): number {
  return Math.min(Math.ceil(timeoutMs / 1000), 2 ** 31 - 1);
}

/** The program gets no variable of this process: environments contain keys of services. */
function environment(scratch: string): Readonly<Record<string, string>> {
  return {
    PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin",
    HOME: scratch,
    TMPDIR: scratch,
    LANG: "C.UTF-8",
    // Each arena of the C library takes 64 MB of the limited address space.
    MALLOC_ARENA_MAX: "2",
    // Node does not start if it may not read its configuration.
    OPENSSL_CONF: "/dev/null",
    // Numpy's libraries start a thread per CPU, each with memory of its own.
    OMP_NUM_THREADS: "1",
    OPENBLAS_NUM_THREADS: "1",
    MKL_NUM_THREADS: "1",
  };
}

async function newFolder(language: ProgramLanguage): Promise<string> {
  const path = join(tmpdir(), "rayling-program-");
  try {
    return await realpath(await mkdtemp(path));
  } catch (error) {
    throw notStarted(language, error, `no folder can be made in ${tmpdir()}`);
  }
}

/** Returns the error for a program that could not be started. */
export function notStarted(language: ProgramLanguage, cause: unknown, what: string): Error {
  const problem = `${what}: ${messageOf(cause)}`;
  return isPassing(cause)
    ? new SandboxResourceError(problem, { cause })
    : new SandboxUnavailableError(language, problem, { cause });
}

/** Returns the error for an end before the program began. */
export function notReached(
  language: ProgramLanguage,
  { reason, exitCode, signal, stderr, durationMs }: ChildEnd,
  { name }: Isolation,
): Error {
  if (reason === "timeout") {
    const waited = `isolation by ${name} had not begun the program after ${durationMs.toFixed(0)} ms`;
    return new SandboxResourceError(`${waited} (timeoutMs is the time for both)`);
  }
  const said = stderr.trim().split("\n").slice(-3).join(" ") || "it said nothing";
  const how = signal === null ? `code ${exitCode}` : signal;
  const problem = `isolation by ${name} ended with ${how} before the program began: ${said}`;
  // Node's own words stand above a trace.
  const ofSystem = /Resource temporarily unavailable|Cannot (fork|allocate memory)/;
  return ofSystem.test(said) || /Assertion failed:.*\buv_thread_create\b/.test(stderr)
    ? new SandboxResourceError(problem)
    : new SandboxUnavailableError(language, problem);
}

/** With less room, in bytes, a disk is full. */
const leastRoom = 2 ** 20;

/**
 * Rejects with SandboxResourceError for a program that failed where the disk that it writes to, and
 * others too, is full: it may be right.
 */
export async function throwIfDiskIsFull(
  { reason, exitCode }: ChildEnd,
  folder: string,
  isolation: Isolation,
): Promise<void> {
  const { scratch } = isolation.places(folder);
  if (reason !== "ended" || exitCode === 0 || !scratch.startsWith(folder)) return;
  // The folder of a process that was ended is gone.
  const { bavail, bsize } = await statfs(folder).catch(() => ({ bavail: leastRoom, bsize: 1 }));
  if (bavail * bsize >= leastRoom) return;
  throw new SandboxResourceError(`the disk of ${tmpdir()} is full, and the program failed`);
}

/** Removes a run's folder; a folder that stays is no fault of the sample. */
async function remove(folder: string): Promise<void> {
  const written = await readdir(join(folder, "scratch")).catch(() => []);
  try {
    if (written.length > 0) await removeWritten(folder);
    else await rm(folder, { recursive: true, force: true });
  } catch (error) {
    // The error's own message could contain names that the program chose.
    const code = codeOf(error) ?? "unknown";
    warn(`the folder ${folder} of a program stays: ${code}`);
  }
}

/** Core's own is not to be had here. The text has nothing that a program wrote. */
export function warn(text: string): void {
  process.emitWarning(text, "RaylingWarning");
}
