/**
 * A process that forks a process for each program of Python (language/python-fork-server.ts), in a
 * folder and behind walls of its own, as those of one program are. It runs one program at a time.
 * A few of them are kept for the programs to come; one that a program left something behind in, or
 * that had to be ended, is replaced.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { SandboxResourceError } from "../errors.ts";
import { atMost, signalOf } from "./confined-child.ts";
import type { ChildEnd, Hold } from "./confined-child.ts";
import {
  cpuSecondsOf,
  notReached,
  notStarted,
  runProgram,
  throwIfDiskIsFull,
  wallMsOf,
} from "./program-run.ts";
import type { RunRequest } from "./program-run.ts";

/** A program, or one function of it, that is to run. */
export interface ForkedRun {
  readonly code: string;
  readonly stdin: string;
  readonly functionName: string | undefined;
  readonly signal: AbortSignal | undefined;
}

type Walls = Pick<RunRequest, "isolation" | "runtimes" | "limits">;

/** So long, in ms, it has to end a program that takes too long, and to say what it wrote. */
const endTimeoutMs = 5_000;

/** It has so long, in ms, to begin. */
const beginTimeoutMs = 60_000;

/** For so long, in ms, one is kept that nobody needs. */
const idleMs = 10_000;

/** The first line of an answer; the outputs follow. */
interface AnswerHead {
  /** The exit code, or the negative number of the signal that ended it. */
  readonly code: number;
  readonly ms: number;
  readonly isTooMuch: boolean;
  readonly isClean: boolean;
  readonly lengths: readonly number[];
}

interface Answer extends Omit<AnswerHead, "lengths"> {
  readonly outputs: readonly string[];
}

interface Connection {
  readonly channel: Duplex;
  readonly folder: string;
}

/** Why it was ended. */
class Ended extends Error {}

function notBegun(what: string): SandboxResourceError {
  return new SandboxResourceError(`the process that programs are forked from ${what}`);
}

class ForkServer {
  readonly hasNumpy: boolean;
  readonly #walls: Walls;
  readonly #stop = new AbortController();
  readonly #connected = Promise.withResolvers<Connection>();
  readonly #ended: Promise<ChildEnd>;
  /** The program that runs. */
  #running: PromiseWithResolvers<Answer | ChildEnd> | undefined;
  #isUsable = true;
  /** Does nothing until there is a process. */
  #hold: Hold = () => undefined;

  constructor(walls: Walls, hasNumpy: boolean) {
    this.hasNumpy = hasNumpy;
    this.#walls = walls;
    const { maxOutputBytes } = walls.limits;
    const cpuSeconds = cpuSecondsOf(walls.limits);
    const part = { kind: "forks", maxOutputBytes, cpuSeconds, hasNumpy } as const;
    let connection: Connection | undefined;
    const answers = new Answers((answer) => {
      // The first one says that it has begun.
      if (connection === undefined) this.#running?.resolve(answer);
      else this.#connected.resolve(connection);
      connection = undefined;
    });
    const late = (): void =>
      this.#stop.abort(notBegun(`has not begun within ${beginTimeoutMs / 1000} s`));
    const timer = setTimeout(late, beginTimeoutMs);
    const begun = (): void => clearTimeout(timer);
    this.#connected.promise.then(begun, begun);
    this.#ended = runProgram({
      ...walls,
      language: "python",
      part,
      code: "",
      stdin: "",
      signal: this.#stop.signal,
      talk: (channel, hold, folder) => {
        channel.on("error", () => undefined);
        channel.on("data", (chunk: Buffer) => answers.add(chunk));
        this.#hold = hold;
        connection = { channel, folder };
      },
    }).finally(() => {
      this.#isUsable = false;
    });
    this.#ended.then(
      (end) => {
        this.#connected.reject(notBegun(`was ended by ${end.signal ?? `code ${end.exitCode}`}`));
        this.#running?.resolve(lost(end));
      },
      (error: unknown) => {
        this.#connected.reject(error);
        this.#running?.reject(error);
      },
    );
  }

  /** Whether it can run another program. */
  get isUsable(): boolean {
    return this.#isUsable;
  }

  /** Ends it with the program that runs. Resolves when its folder is removed. */
  async end(): Promise<void> {
    this.#isUsable = false;
    this.#hold(true);
    this.#stop.abort(new Ended());
    await this.#ended.catch(() => undefined);
  }

  /** Rejects as runProgram does. */
  async run(run: ForkedRun): Promise<ChildEnd> {
    const { signal } = run;
    signal?.throwIfAborted();
    const stop = (): void => void this.end();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      return await this.#run(run);
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  async #run({ code, stdin, functionName }: ForkedRun): Promise<ChildEnd> {
    const running = Promise.withResolvers<Answer | ChildEnd>();
    running.promise.catch(() => undefined);
    this.#running = running;
    const { channel, folder } = await this.#connected.promise;
    this.#hold(true);
    try {
      await writeAll(join(folder, "code"), { "program.py": code, "stdin.txt": stdin });
      channel.write(`${JSON.stringify({ name: functionName ?? null })}\n`);
      const end = await this.#endOf(running.promise, channel);
      await throwIfDiskIsFull(end, folder, this.#walls.isolation);
      return end;
    } finally {
      if (this.#isUsable) this.#hold(false);
    }
  }

  async #endOf(answered: Promise<Answer | ChildEnd>, channel: Duplex): Promise<ChildEnd> {
    const startedAt = performance.now();
    let isOver = false;
    let isLate = false;
    let timer: NodeJS.Timeout;
    const giveUp = (): void => void this.end();
    const late = (): void => {
      if (isOver) return;
      isLate = true;
      channel.write("end\n");
      timer = setTimeout(giveUp, endTimeoutMs);
    };
    // An answer that came while this thread was busy is read before the program counts as late.
    timer = setTimeout(() => void setImmediate(late), atMost(wallMsOf(this.#walls.limits)));
    try {
      const answer = await answered;
      return "reason" in answer ? answer : this.#endBy(answer, isLate);
    } catch (error) {
      if (!isLate || !(error instanceof Ended)) throw error;
      return { ...killed, reason: "timeout", durationMs: performance.now() - startedAt };
    } finally {
      isOver = true;
      clearTimeout(timer);
    }
  }

  #endBy({ code, ms, isTooMuch, isClean, outputs }: Answer, isLate: boolean): ChildEnd {
    if (!isClean) this.#isUsable = false;
    const [stdout = "", stderr = "", reported = "", reached = ""] = outputs;
    const how = {
      exitCode: code < 0 ? null : code,
      signal: code < 0 ? (signalOf(-code) ?? null) : null,
    };
    const isKilled = how.signal === "SIGKILL";
    const ended = isLate && isKilled ? "timeout" : "ended";
    const reason = isTooMuch ? "output-limit" : ended;
    const end: ChildEnd = { reason, ...how, stdout, stderr, reached, reported, durationMs: ms };
    if (reason !== "ended" || reached !== "") return end;
    throw notReached("python", end, this.#walls.isolation);
  }
}

async function writeAll(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  const written = Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text));
  await Promise.all(written).catch((cause: unknown) => {
    throw notStarted("python", cause, "its files cannot be written");
  });
}

const killed: Omit<ChildEnd, "reason" | "durationMs"> = {
  exitCode: null,
  signal: "SIGKILL",
  stdout: "",
  stderr: "",
  reached: "ready",
  reported: "",
};

/** The end of a program whose server ended with it: the kernel does so where memory is short. */
function lost({ stderr, durationMs }: ChildEnd): ChildEnd {
  return { ...killed, reason: "ended", stderr, durationMs };
}

/** Reads its answers, one after the other. */
class Answers {
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** How many bytes the next answer has, its line and the line's end included. */
  #wanted: number | undefined;
  #head: AnswerHead | undefined;
  readonly #heard: (answer: Answer) => void;

  constructor(heard: (answer: Answer) => void) {
    this.#heard = heard;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#wanted !== undefined && this.#bytes < this.#wanted) return;
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all];
    const line = all.indexOf("\n");
    if (line === -1) return;
    const read: AnswerHead = this.#head ?? JSON.parse(all.toString("utf8", 0, line));
    this.#head = read;
    const { lengths, ...head } = read;
    this.#wanted = line + 1 + lengths.reduce((sum, one) => sum + one, 0);
    if (this.#bytes < this.#wanted) return;
    let from = line + 1;
    const outputs = lengths.map((length) => all.toString("utf8", from, (from += length)));
    this.#chunks = [];
    this.#bytes = 0;
    this.#wanted = undefined;
    this.#head = undefined;
    this.#heard({ ...head, outputs });
  }
}

/** The servers of one sandbox. */
export class ForkServers {
  /** With the timer after which each is ended; the last one was used last. */
  readonly #idle: Map<ForkServer, NodeJS.Timeout> = new Map();

  /** Rejects as runProgram does. */
  async run(walls: Walls, run: ForkedRun): Promise<ChildEnd> {
    // A program that does not use it has its memory for itself.
    const hasNumpy = /\b(?:numpy|np)\b/.test(run.code);
    const server = this.#take(hasNumpy) ?? new ForkServer(walls, hasNumpy);
    try {
      return await server.run(run);
    } finally {
      if (server.isUsable) this.#keep(server);
      else await server.end();
    }
  }

  /** Ends those that nobody needs now. */
  async close(): Promise<void> {
    const all = [...this.#idle.keys()];
    for (const timer of this.#idle.values()) clearTimeout(timer);
    this.#idle.clear();
    await Promise.all(all.map((server) => server.end()));
  }

  #take(hasNumpy: boolean): ForkServer | undefined {
    for (const [server, timer] of [...this.#idle].toReversed()) {
      if (server.hasNumpy !== hasNumpy) continue;
      clearTimeout(timer);
      this.#idle.delete(server);
      if (server.isUsable) return server;
    }
    return undefined;
  }

  #keep(server: ForkServer): void {
    const timer = setTimeout(() => {
      this.#idle.delete(server);
      void server.end();
    }, idleMs);
    timer.unref();
    this.#idle.set(server, timer);
  }
}
