/**
 * A process that runs a host: how it is started, what it writes, how it ends.
 *
 * It is the leader of a process group of its own, so that what it started ends with it and signals of a terminal do not reach it. It inherits two sockets
 * (no path, no token: nobody else can have them), and is told over one of them what it is. The last lines it wrote to stderr are part of the cause of its death.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { inherited, type ProcessSettings } from "../../host/control.ts";
import { type OutputStream, readMark } from "../../host/output.ts";
import { writeCredentials, writeSettings } from "../../host/settings.ts";
import type { ResourceLimits, RuntimeEnv } from "../../rpc/directory.ts";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import { hostEntry } from "../../shared/own-files.ts";
import type { Credentials } from "../../transport/tls/credentials.ts";
import type { Guard } from "./guard.ts";
import { changesProcess } from "./host.ts";
import { hostEnv } from "./host-env.ts";
import { hostFlags, processFlags } from "./host-flags.ts";
import { LastLines, readLines } from "../observe/lines.ts";

/** How long a process may live whose sockets are closed, and its sockets and output after its end. */
const lingerMs = 1000;

export interface HostProcessRequest {
  readonly settings: ProcessSettings;
  readonly runtimeEnv: RuntimeEnv | undefined;
  /** The module it is started for, if that is known. */
  readonly moduleUrl: string | undefined;
  /** Where its code lies, if that was brought here. */
  readonly codeFolders?: readonly string[];
  /** Default: that of this process. */
  readonly cwd?: string;
}

export interface HostProcessParts {
  readonly guard: Guard;
  readonly onLine: (stream: OutputStream, owner: string, line: string) => void;
}

export class HostProcess {
  readonly pid: number | undefined;
  /** The other ends of what it inherits. */
  readonly data: Socket;
  readonly control: Socket;
  /** Why it ended, when all that it said is in. */
  readonly exited: Promise<DeathCause>;
  /** Resolves when it has ended; its last words may still be on their way. */
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;
  #known: DeathCause | undefined;
  #isReady: boolean;
  #hasEnded = false;
  #lastWords: Promise<unknown> = Promise.resolve();

  /** @throws RaySystemError when there are no more files to be had */
  constructor(
    { settings, runtimeEnv, moduleUrl, codeFolders = [], cwd }: HostProcessRequest,
    { guard, onLine }: HostProcessParts,
  ) {
    const child = spawn(
      process.execPath,
      [
        ...processFlags(process.execArgv),
        ...limitFlags(runtimeEnv?.resourceLimits),
        ...hostFlags({
          runtimeEnv,
          moduleUrl: moduleUrl ?? "",
          directories: [guard.folder, settings.spillDirectory],
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
    if ((child.stdio as unknown) === undefined) {
      // It fails before it has any.
      child.on("error", () => undefined);
      throw new RaySystemError("a process cannot be started: too many files are open");
    }
    const { pid } = child;
    this.pid = pid;
    this.#child = child;
    this.#isReady = !changesProcess(runtimeEnv);
    if (pid !== undefined) guard.watch(pid);
    const sockets = [child.stdio[inherited.data], child.stdio[inherited.control]] as [
      Socket,
      Socket,
    ];
    [this.data, this.control] = sockets;
    writeSettings(this.control, settings);
    // Whatever broke, one that cannot be talked to is ended.
    for (const socket of sockets) {
      socket.once("close", () => {
        setTimeout(() => void this.terminate(unreachable), lingerMs).unref();
      });
    }
    const lastLines = new LastLines();
    const outputEnded = readOutput(child, lastLines, onLine);
    const ended = endOf(child).then((end) => {
      this.#hasEnded = true;
      if (pid !== undefined) {
        guard.forget(pid);
        killGroup(pid);
      }
      return end;
    });
    this.ended = ended.then(() => undefined);
    this.exited = ended.then(async (end) => {
      // What it said last is on its way: the control may name the cause, and stderr belongs to it.
      const late = pause(lingerMs);
      await Promise.race([Promise.all([this.#lastWords, outputEnded]), late.over]);
      late.end();
      for (const socket of sockets) socket.destroy();
      const cause = this.#known ?? causeOfEnd(end, lastLines);
      return this.#isReady || cause.kind !== "exited" ? cause : notReady(cause);
    });
  }

  /** It has started, and what ends it from now on is not its settings. */
  ready(): void {
    this.#isReady = true;
  }

  /** For one that is dialled: its control is spoken to by nobody else. */
  renew(credentials: Credentials): void {
    if (!this.#hasEnded) writeCredentials(this.control, credentials);
  }

  /** Why it is about to end; the first who knows is right. */
  dying(cause: DeathCause): void {
    this.#known ??= cause;
  }

  /** Its end is told when that has resolved, too. */
  hearsUntil(lastWords: Promise<unknown>): void {
    this.#lastWords = lastWords;
  }

  /** Ends it and what it started. */
  async terminate(cause: DeathCause): Promise<void> {
    if (!this.#hasEnded) {
      this.dying(cause);
      // Whoever waits for its end is to see it.
      this.#child.ref();
      if (this.pid !== undefined && !killGroup(this.pid)) {
        // It ends by itself when nobody can speak to it.
        this.data.destroy();
        this.control.destroy();
      }
    }
    await this.exited;
  }
}

const unreachable: DeathCause = { kind: "unreachable", message: "its sockets closed" };

function notReady(cause: DeathCause): DeathCause {
  return { ...cause, kind: "runtime-env-failed", message: `before it was ready, ${cause.message}` };
}

interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
}

function endOf(child: ChildProcess): Promise<ProcessEnd> {
  return new Promise((resolve) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
    child.on("error", (error) => {
      if (child.pid === undefined) resolve({ exitCode: null, signal: null, error });
    });
  });
}

function causeOfEnd({ exitCode, signal, error }: ProcessEnd, lastLines: LastLines): DeathCause {
  const stderr = lastLines.lines;
  const said = stderr.length === 0 ? "" : `; its last lines on stderr:\n${stderr.join("\n")}`;
  if (error !== undefined) {
    return { kind: "unreachable", message: `its process did not start: ${error.message}`, error };
  }
  // V8 aborts at the limit: SIGABRT, or 134 where a shell stands between.
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

/** The process and what it started. Returns whether that is all: not where nobody who is left may be ended by us. */
function killGroup(pid: number): boolean {
  try {
    return process.kill(-pid, "SIGKILL");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Nobody is left in it, which is what is wanted.
    if (code === "ESRCH") return true;
    // They have another user now; or, as macOS says it, they have ended and wait to be asked how.
    if (code === "EPERM") return false;
    throw error;
  }
}

function readOutput(
  child: ChildProcess,
  lastLines: LastLines,
  onLine: HostProcessParts["onLine"],
): Promise<unknown> {
  const ends = (["stdout", "stderr"] as const).map((stream) => {
    const output = child[stream] as Socket;
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

/** Limits of a worker thread, as flags of a process. The young generation has three halves of a semi-space. */
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
  const timer = setTimeout(resolve, ms);
  return { over: promise, end: () => clearTimeout(timer) };
}
