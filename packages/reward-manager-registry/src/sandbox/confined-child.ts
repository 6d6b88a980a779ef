/**
 * An untrusted child process: it has a process group of its own, limits of its shell, and an
 * environment without this process's variables. It ends with all of its child processes when it
 * ends, when its time is over, when it writes too much, when the caller aborts, and when this
 * process ends for any reason.
 *
 * The maker of its command decides what it may reach (isolation/, runtimes.ts). The last trusted
 * step before the program's own code writes "ready", and what else there is to report, to file
 * descriptor 5, and closes it: an end without that says nothing about the program.
 */

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { constants } from "node:os";
import { Duplex } from "node:stream";
import type { Readable } from "node:stream";
import { killGroup } from "../values/processes.ts";

export interface ChildRequest {
  readonly command: readonly [string, ...string[]];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The file that is its standard input: a file can also be opened by name. */
  readonly stdinPath: string;
  /** The limit of processor time, in whole seconds; undefined: it has none, or sets it itself. */
  readonly cpuSeconds: number | undefined;
  /** The limit of elapsed time, in ms; undefined: none. */
  readonly wallMs: number | undefined;
  /** Its folder, which is removed where this process ends before it. */
  readonly folder: string;
  /** The limit of writable memory; undefined: as above. Only Linux enforces it. */
  readonly dataMb: number | undefined;
  /** The limit of address space, shared mappings included; undefined: no limit. */
  readonly addressMb: number | undefined;
  /** The limit of its standard output. Its standard error is cut at 64 KiB. */
  readonly maxOutputBytes: number;
  /** The file that it finds open as file descriptor 6. */
  readonly filterPath?: string | undefined;
  /** Talks to it over file descriptor 3. Default: its output there is collected. */
  readonly talk?: ((channel: Duplex, hold: Hold) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Whether this process goes on for as long as the child does. It does so at first. */
export type Hold = (isHeld: boolean) => void;

export interface ChildEnd {
  readonly reason: "ended" | "timeout" | "output-limit";
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /**
   * The point that it reached: "" before the program's own code, else "ready", or "ready
   * compile-error".
   */
  readonly reached: string;
  /** Its output on file descriptor 3, unless `talk` was used. */
  readonly reported: string;
  readonly durationMs: number;
}

/** The limit of a written file in blocks of 512 bytes: 16 MiB. */
const fileBlocks = 32_768;
const maxErrorBytes = 65_536;
const maxReachedBytes = 64;
/**
 * The time, in ms, in which output after its end is read; a process that left its group may keep
 * the pipe open and write on.
 */
const lingerMs = 500;
const mostLingers = 20;

/** The longest timer of Node: a longer one would fire at once. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * A limit that the shell cannot set ends the run, unless a stricter one holds already. Other
 * systems than Linux may lack those of memory.
 *
 * The watching process ends the whole group when this end of file descriptor 4 closes, and removes
 * the folder.
 */
const limited = `
limit() {
  ulimit "$1" "$2" 2>/dev/null && return
  strictest=$(ulimit -H "$1" 2>/dev/null)
  [ "$strictest" -le "$2" ] 2>/dev/null && return
  ${process.platform === "linux" ? "" : 'case "$1" in -d | -v) return ;; esac'}
  echo "the shell sets no ulimit $1 of $2" >&2
  exit 125
}
limit -c 0; limit -f "$2"; limit -n 256
[ "$1" = 0 ] || limit -t "$1"
[ "$3" = 0 ] || limit -d "$3"
[ "$4" = 0 ] || limit -v "$4"
folder=$5
shift 5
(cat <&4; kill -KILL $$; cd /; rm -rf -- "$folder"; kill -KILL 0) </dev/null >/dev/null 2>&1 3>&- 5>&- 6<&- &
exec "$@" 4<&-`;

/**
 * Runs a child. Rejects with the error of a shell that cannot start, and with the signal's reason.
 */
export function runConfined(request: ChildRequest): Promise<ChildEnd> {
  const { command, cwd, env, cpuSeconds = 0, dataMb = 0, addressMb = 0 } = request;
  const { filterPath, folder, signal } = request;
  signal?.throwIfAborted();
  const limits = [cpuSeconds, fileBlocks, dataMb * 1024, addressMb * 1024].map(String);
  const files: number[] = [];
  const startedAt = performance.now();
  let child: ChildProcess;
  try {
    files.push(openSync(request.stdinPath, "r"));
    if (filterPath !== undefined) files.push(openSync(filterPath, "r"));
    const [stdin = "ignore", filter = "ignore"] = files;
    const covered = coverInherited(files);
    child = spawn("sh", ["-c", limited, "sh", ...limits, folder, ...command], {
      cwd,
      env,
      detached: true,
      stdio: [stdin, "pipe", "pipe", "pipe", "pipe", "pipe", filter, ...covered],
    });
  } finally {
    for (const file of files) closeSync(file);
  }
  // Without a process there are no pipes, and its error comes in the next turn.
  return child.pid === undefined ? notSpawned(child) : endOf(child, request, startedAt);
}

async function notSpawned(child: ChildProcess): Promise<never> {
  const [error]: readonly unknown[] = await once(child, "error");
  throw error;
}

/**
 * Covers file descriptors from 7 on: /dev/null replaces those that this process inherited, which
 * any child would inherit. Node marks its own as not inheritable.
 *
 * @param files gets the descriptor of /dev/null
 */
function coverInherited(files: number[]): ("ignore" | number)[] {
  const inherited = inheritedDescriptors();
  const limit = inherited.length === 0 ? 0 : mostCovered();
  const covered = inherited.filter((one) => one < limit);
  if (covered.length === 0) return [];
  const nothing = openSync("/dev/null", "r");
  files.push(nothing);
  const length = Math.max(...covered) - 6;
  return Array.from({ length }, (_, at) => (covered.includes(at + 7) ? nothing : "ignore"));
}

/**
 * Returns the inherited descriptors that a child still has, for its own first step to close: no
 * other one can take the place of one at or above the limit of descriptors.
 */
export function uncoveredDescriptors(): number[] {
  const inherited = inheritedDescriptors();
  const limit = inherited.length === 0 ? 0 : mostCovered();
  return inherited.filter((one) => one >= limit);
}

/** So many below the limit are for the descriptors that a start makes above the covered ones. */
const spareDescriptors = 64;

function mostCovered(): number {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const limit = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
  return limit - spareDescriptors;
}

/**
 * Returns those from 7 on. Reads O_CLOEXEC, octal 02000000, from /proc. Other systems than Linux do
 * not show it.
 */
function inheritedDescriptors(): number[] {
  if (!existsSync("/proc/self/fdinfo")) return [];
  return readdirSync("/proc/self/fdinfo").flatMap((name) => {
    if (Number(name) < 7) return [];
    try {
      const info = readFileSync(`/proc/self/fdinfo/${name}`, "utf8");
      const flags = Number.parseInt(/^flags:\s*(\d+)/m.exec(info)?.[1] ?? "0", 8);
      return (flags & 0o2000000) === 0 ? [Number(name)] : [];
    } catch {
      // The file was closed meanwhile.
      return [];
    }
  });
}

function endOf(child: ChildProcess, request: ChildRequest, startedAt: number): Promise<ChildEnd> {
  const { wallMs, maxOutputBytes, talk, signal } = request;
  return new Promise((resolve, reject) => {
    let reason: ChildEnd["reason"] = "ended";
    const end = (why: ChildEnd["reason"]): void => {
      if (reason === "ended") reason = why;
      killGroup(child.pid);
    };
    // Events that happened while this thread was busy are handled before the child counts as late.
    const late = (): void => void setImmediate(() => exit ?? end("timeout"));
    const timer = wallMs === undefined ? undefined : setTimeout(late, atMost(wallMs));
    const abort = (): void => killGroup(child.pid);
    signal?.addEventListener("abort", abort, { once: true });
    const tooMuch = (): void => end("output-limit");
    const stdout = new Collected(pipeOf(child.stdout), maxOutputBytes, tooMuch);
    const stderr = new Collected(pipeOf(child.stderr), maxErrorBytes);
    const channel = pipeOf(child.stdio[3]);
    const reported =
      talk === undefined ? new Collected(channel, maxOutputBytes, tooMuch) : undefined;
    if (talk !== undefined) talk(channel, (isHeld) => hold(child, isHeld));
    const stdio: readonly unknown[] = child.stdio;
    const reached = new Collected(pipeOf(stdio[5]), maxReachedBytes);
    const all = [stdout, stderr, reached, ...(reported === undefined ? [] : [reported])];
    child.stdio[4]?.on("error", () => undefined);

    let lingering: NodeJS.Timeout | undefined;
    let exit: Pick<ChildEnd, "exitCode" | "signal" | "durationMs"> | undefined;
    const over = (): void => {
      clearTimeout(timer);
      clearTimeout(lingering);
      signal?.removeEventListener("abort", abort);
      for (const stream of child.stdio) stream?.destroy();
    };
    const settle = (): void => {
      over();
      if (signal?.aborted === true) return reject(signal.reason);
      if (exit === undefined) return;
      const output = { stdout: stdout.text, stderr: stderr.text, reported: reported?.text ?? "" };
      resolve({ reason, ...exit, reached: reached.text, ...output });
    };
    /** Waits as long as output comes. */
    const linger = (lingers: number, before: number): void => {
      const bytes = all.reduce((sum, one) => sum + one.bytes, 0);
      if (bytes === before || lingers === mostLingers) return settle();
      lingering = setTimeout(() => linger(lingers + 1, bytes), lingerMs);
    };
    child.once("error", (error) => {
      over();
      reject(error);
    });
    child.once("exit", (exitCode, signalName) => {
      exit = { exitCode, signal: signalName, durationMs: performance.now() - startedAt };
      clearTimeout(timer);
      // The group contains processes that it started and left behind.
      killGroup(child.pid);
      linger(0, Number.NaN);
      void Promise.all(all.map(({ ended }) => ended)).then(settle);
    });
  });
}

/** Returns the name of a signal. */
export function signalOf(number: number): NodeJS.Signals | undefined {
  const [name] = Object.entries(constants.signals).find(([, one]) => one === number) ?? [];
  return name as NodeJS.Signals | undefined;
}

/** Returns the limit, or what a timer can wait for. */
export function atMost(ms: number): number {
  return Math.min(ms, longestTimerMs);
}

function hold(child: ChildProcess, isHeld: boolean): void {
  const name = isHeld ? "ref" : "unref";
  child[name]();
  for (const stream of child.stdio) if (stream instanceof Socket) stream[name]();
}

/** The output of a stream so far; output above the limit is dropped. */
class Collected {
  readonly #chunks: Buffer[] = [];
  /** The number of bytes, including dropped ones. */
  bytes = 0;
  readonly ended: Promise<void>;

  constructor(stream: Readable, maxBytes: number, onTooMuch: () => void = () => undefined) {
    stream.on("error", () => undefined);
    stream.on("data", (chunk: Buffer) => {
      const room = maxBytes - this.bytes;
      this.bytes += chunk.length;
      if (room > 0) this.#chunks.push(chunk.subarray(0, room));
      if (this.bytes > maxBytes) onTooMuch();
    });
    this.ended = new Promise((resolve) => {
      stream.once("end", resolve);
      stream.once("close", resolve);
    });
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString("utf8");
  }
}

/** Returns a pipe to the program, which is a socket. */
function pipeOf(stream: unknown): Duplex {
  if (stream instanceof Duplex) return stream;
  throw new Error("a program was started without a pipe");
}

/**
 * Removes a folder that a program has written to, whatever permissions it removed and however deep
 * it is, without following links. Rejects when something stays.
 */
export async function removeWritten(folder: string): Promise<void> {
  // Only folders change: a file may be another name of a user's file. Each folder is opened before
  // it is entered.
  const command =
    'find "$1" -type d ! -perm -700 -exec chmod u+rwx {} \\; 2>/dev/null; exec rm -rf -- "$1"';
  const child = spawn("sh", ["-c", command, "sh", folder], { stdio: "ignore" });
  const [code]: readonly unknown[] = await once(child, "exit");
  if (code !== 0) throw new Error(`${folder} cannot be removed: rm ended with ${String(code)}`);
}
