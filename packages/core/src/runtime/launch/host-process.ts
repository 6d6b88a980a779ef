/**
 * A process that runs a host: its start, its output, and its end.
 *
 * It leads a process group of its own, so that its child processes end with it and signals of a
 * terminal do not reach it. It inherits two sockets (without a path or a token, so no other process
 * can have them), and gets its settings over one of them. Its last lines on stderr are part of the
 * cause of its death.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { inherited, type ProcessSettings } from "../../host/host-control.ts";
import { type OutputStream, readMark } from "../../host/output.ts";
import { writeCredentials, writeSettings } from "../../host/settings.ts";
import type { ResourceLimits, RuntimeEnv } from "../../rpc/directory.ts";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import { codeOf } from "../../shared/errors/thrown.ts";
import { hostEntry } from "../../shared/own-files.ts";
import type { Credentials } from "../../transport/tls/credentials.ts";
import type { Guard } from "./driver-watchdog.ts";
import { changesProcess } from "./host.ts";
import { hostEnv } from "./host-env.ts";
import { hostFlags, processFlags } from "./host-flags.ts";
import { LastLines, readLines } from "../observe/read-lines.ts";
import { timers } from "../../shared/machine/timers.ts";

/**
 * The most time, in ms, that a process may live after its sockets closed, and that its sockets and
 * output are read after its end.
 */
const lingerMs = 1000;

export interface HostProcessRequest {
  readonly settings: ProcessSettings;
  readonly runtimeEnv: RuntimeEnv | undefined;
  /** The module that it is started for, if that is known. */
  readonly moduleUrl: string | undefined;
  /** The folders of its code, if that was copied to this machine. */
  readonly codeFolders?: readonly string[];
  /** The working directory. Default: that of this process, or the guard's folder if it is gone. */
  readonly cwd?: string;
}

export interface HostProcessParts {
  readonly guard: Guard;
  readonly onLine: (stream: OutputStream, owner: string, line: string) => void;
}

export class HostProcess {
  readonly pid: number | undefined;
  /** The driver's ends of its inherited sockets. */
  readonly data: Socket;
  readonly control: Socket;
  /** Resolves with the cause of its end, when all of its messages are in. */
  readonly exited: Promise<DeathCause>;
  /** Resolves when it has ended; its last messages may still be in transit. */
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  #known: DeathCause | undefined;
  #isReady: boolean;
  #hasEnded = false;
  #lastWords: Promise<unknown> = Promise.resolve();

  /** @throws RaySystemError when the system has no file descriptors left */
  constructor(request: HostProcessRequest, { guard, onLine }: HostProcessParts) {
    const cwd = request.cwd ?? ownDirectory(guard.folder);
    const child = start(request, guard.folder, cwd);
    this.#child = child;
    this.#isReady = !changesProcess(request.runtimeEnv);
    this.pid = child.pid;
    this.data = socketOf(child, inherited.data);
    this.control = socketOf(child, inherited.control);
    if (child.pid !== undefined) guard.watch(child.pid);
    writeSettings(this.control, request.settings);
    // A host without its sockets is ended, whatever broke them.
    for (const socket of [this.data, this.control]) {
      socket.once("close", () => {
        timers.setTimeout(() => void this.terminate(unreachable), lingerMs).unref();
      });
    }
    const lastLines = new LastLines();
    const outputEnded = readOutput(child, lastLines, onLine);
    const ended = endOf(child, cwd).then((end) => {
      this.#hasEnded = true;
      if (child.pid !== undefined) {
        guard.forget(child.pid);
        killGroup(child.pid);
      }
      return end;
    });
    this.ended = ended.then(() => undefined);
    this.exited = ended.then(async (end) => {
      await this.#lastMessages(outputEnded);
      const cause = this.#known ?? causeOfEnd(end, lastLines);
      return this.#isReady || cause.kind !== "exited" ? cause : notReady(cause);
    });
  }

  /**
   * Waits for messages of the ended process that are in transit: the control channel may name the
   * cause, and stderr belongs to it. Then its sockets are destroyed.
   */
  async #lastMessages(outputEnded: Promise<unknown>): Promise<void> {
    const late = pause(lingerMs);
    await Promise.race([Promise.all([this.#lastWords, outputEnded]), late.over]);
    late.end();
    this.data.destroy();
    this.control.destroy();
  }

  /** Marks it as started: from now on, an end is not caused by its settings. */
  ready(): void {
    this.#isReady = true;
  }

  /** Sends certificates to a dialled host, whose control socket carries nothing else. */
  renew(credentials: Credentials): void {
    if (!this.#hasEnded) writeCredentials(this.control, credentials);
  }

  /** Records why it is about to end; the first reason stays. */
  dying(cause: DeathCause): void {
    this.#known ??= cause;
  }

  /** Delays the report of its end until that promise has settled, too. */
  hearsUntil(lastWords: Promise<unknown>): void {
    this.#lastWords = lastWords;
  }

  /** Ends it and its child processes. */
  async terminate(cause: DeathCause): Promise<void> {
    if (!this.#hasEnded) {
      this.dying(cause);
      // The caller waits for its end, so the process must see it.
      this.#child.ref();
      if (this.pid !== undefined && !killGroup(this.pid)) {
        // It ends by itself when its sockets close.
        this.data.destroy();
        this.control.destroy();
      }
    }
    await this.exited;
  }
}

const unreachable: DeathCause = { kind: "unreachable", message: "its sockets closed" };

/** @throws RaySystemError when the system has no file descriptors left */
function start(
  { settings, runtimeEnv, moduleUrl, codeFolders = [] }: HostProcessRequest,
  guardFolder: string,
  cwd: string | undefined,
): ChildProcess {
  const child: ChildProcess = spawn(
    process.execPath,
    [
      ...processFlags(process.execArgv),
      ...limitFlags(runtimeEnv?.resourceLimits),
      ...hostFlags({
        runtimeEnv,
        moduleUrl: moduleUrl ?? "",
        directories: [guardFolder, settings.spillDirectory],
        codeFolders,
      }),
      fileURLToPath(hostEntry("process")),
    ],
    {
      detached: true,
      stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
      ...(cwd === undefined ? {} : { cwd }),
      env: hostEnv(runtimeEnv?.env),
    },
  );
  child.unref();
  // Node's types do not say that a process without descriptors fails before it has any streams.
  const streams: readonly unknown[] | undefined = child.stdio;
  if (streams === undefined) {
    child.on("error", () => undefined);
    throw new RaySystemError("a process cannot be started: too many files are open");
  }
  return child;
}

/** Returns this side's end of a pipe of the process, which is a socket of Node. */
function socketOf(child: ChildProcess, fd: 1 | 2 | 3 | 4): Socket {
  const stream = child.stdio[fd];
  if (stream instanceof Socket) return stream;
  throw new RaySystemError(`internal: the pipe ${fd} of a host process is no socket`);
}

function notReady(cause: DeathCause): DeathCause {
  return { ...cause, kind: "runtime-env-failed", message: `before it was ready, ${cause.message}` };
}

interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
}

function endOf(child: ChildProcess, cwd: string | undefined): Promise<ProcessEnd> {
  return new Promise((resolve) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
    child.on("error", (error) => {
      if (child.pid !== undefined) return;
      resolve({ exitCode: null, signal: null, error: whyNotStarted(error, cwd) });
    });
  });
}

/** Names the working directory if it is not there: Node blames the executable for that. */
function whyNotStarted(error: Error, cwd: string | undefined): Error {
  const isMissing = codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR";
  if (!isMissing || cwd === undefined || existsSync(join(cwd, "."))) return error;
  return new RaySystemError(`its working directory ${cwd} is not there`, { cause: error });
}

/**
 * Returns undefined where a process may begin in this one's directory. Node starts in none that was
 * removed: one that is there again by its name is taken, else `fallback`.
 */
function ownDirectory(fallback: string): string | undefined {
  try {
    const path = process.cwd();
    const [named, own] = [statSync(path), statSync(".")];
    return named.ino === own.ino && named.dev === own.dev ? undefined : path;
  } catch (error) {
    return codeOf(error) === "ENOENT" ? fallback : undefined;
  }
}

function causeOfEnd({ exitCode, signal, error }: ProcessEnd, lastLines: LastLines): DeathCause {
  const stderr = lastLines.lines;
  const said = stderr.length === 0 ? "" : `; its last lines on stderr:\n${stderr.join("\n")}`;
  if (error !== undefined) {
    return { kind: "unreachable", message: `its process did not start: ${error.message}`, error };
  }
  // V8 aborts at the limit: SIGABRT, or 134 with a shell in between.
  if ((signal === "SIGABRT" || exitCode === 134) && lastLines.heapLimit !== undefined) {
    return {
      kind: "out-of-memory",
      message: `its process reached its heap limit (${lastLines.heapLimit})`,
      stderr,
      ...(signal === null ? {} : { signal }),
    };
  }
  if (signal !== null) {
    return { kind: "signal", signal, message: `its process was ended by ${signal}${said}`, stderr };
  }
  return {
    kind: "exited",
    exitCode: exitCode ?? -1,
    message: `its process exited with code ${exitCode}${said}`,
    stderr,
  };
}

/**
 * Kills the process and its child processes. Returns whether none is left; false when this user may
 * not end the rest.
 */
function killGroup(pid: number): boolean {
  try {
    return process.kill(-pid, "SIGKILL");
  } catch (error) {
    const code = codeOf(error);
    // The group is empty, as wanted.
    if (code === "ESRCH") return true;
    // They belong to another user now; or, on macOS, they are zombies.
    if (code === "EPERM") return false;
    throw error;
  }
}

function readOutput(
  child: ChildProcess,
  lastLines: LastLines,
  onLine: HostProcessParts["onLine"],
): Promise<unknown> {
  const ends = (
    [
      ["stdout", 1],
      ["stderr", 2],
    ] as const
  ).map(([stream, fd]) => {
    const output = socketOf(child, fd);
    readLines(output, (line) => {
      const { owner, text } = readMark(line);
      if (stream === "stderr") lastLines.add(text);
      onLine(stream, owner, text);
    });
    output.unref();
    return once(output, "close");
  });
  return Promise.all(ends);
}

/**
 * Converts the limits of a worker thread to flags of a process. The young generation has three
 * halves of a semi-space.
 */
function limitFlags(limits: ResourceLimits | undefined): string[] {
  const {
    maxOldGenerationSizeMb: old,
    maxYoungGenerationSizeMb: young,
    stackSizeMb,
  } = limits ?? {};
  return [
    ...(old === undefined ? [] : [`--max-old-space-size=${Math.ceil(old)}`]),
    ...(young === undefined ? [] : [`--max-semi-space-size=${Math.max(1, Math.floor(young / 3))}`]),
    ...(stackSizeMb === undefined ? [] : [`--stack-size=${Math.floor(stackSizeMb * 1024)}`]),
  ];
}

function pause(ms: number): { readonly over: Promise<void>; readonly end: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = timers.setTimeout(resolve, ms);
  return { over: promise, end: () => timers.clearTimeout(timer) };
}
