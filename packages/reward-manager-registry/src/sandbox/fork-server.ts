/**
 * A process that forks a process for each program of Python (language/python-fork-server.ts), in a
 * folder and behind walls of its own, as those of one program are. It runs one program at a time.
 * A few of them are kept for the programs to come; one that a program left something behind in, or
 * that failed, is replaced.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { SandboxResourceError, SandboxUnavailableError } from "../errors.ts";
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
  /** Why no program ran; undefined: one did. */
  readonly problem?: string;
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

function failed(how: string): SandboxResourceError {
  return new SandboxResourceError(`the process that programs are forked from ${how}`);
}

class ForkServer {
  readonly hasNumpy: boolean;
  readonly #walls: Walls;
  readonly #stop = new AbortController();
  readonly #connected = Promise.withResolvers<Connection>();
  readonly #ended: Promise<ChildEnd>;
  /** The program that runs. */
  #running: PromiseWithResolvers<Answer> | undefined;
  #isUsable = true;
  /** Does nothing until there is a process. */
  #hold: Hold = () => undefined;

  constructor(walls: Walls, hasNumpy: boolean) {
    this.hasNumpy = hasNumpy;
    this.#walls = walls;
    const { maxOutputBytes, memoryLimitMb } = walls.limits;
    const cpuSeconds = cpuSecondsOf(walls.limits);
    const part = { kind: "forks", maxOutputBytes, memoryLimitMb, cpuSeconds, hasNumpy } as const;
    let connection: Connection | undefined;
    const answers = new Answers((answer) => {
      // The first one says that it has begun.
      if (connection === undefined) this.#running?.resolve(answer);
      else this.#connected.resolve(connection);
      connection = undefined;
    });
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
    });
    this.#watch();
  }

  #watch(): void {
    const late = (): void =>
      this.#stop.abort(failed(`has not begun within ${beginTimeoutMs / 1000} s`));
    const timer = setTimeout(late, beginTimeoutMs);
    const begun = (): void => clearTimeout(timer);
    this.#connected.promise.then(begun, begun);
    const over = (error: unknown): void => {
      this.#isUsable = false;
      this.#connected.reject(error);
      this.#running?.reject(error);
    };
    // The kernel ends it where memory is short.
    const lost = ({ signal, exitCode, stderr }: ChildEnd): void =>
      over(failed(`has ended by ${signal ?? `code ${exitCode}`} ${stderr.slice(-300)}`.trim()));
    this.#ended.then(lost, over);
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

  /** Rejects as runProgram does; it runs no other program then. */
  async run(run: ForkedRun): Promise<ChildEnd> {
    const { signal } = run;
    signal?.throwIfAborted();
    const stop = (): void => void this.end();
    signal?.addEventListener("abort", stop, { once: true });
    try {
      return await this.#run(run);
    } catch (error) {
      this.#isUsable = false;
      signal?.throwIfAborted();
      throw error;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  async #run({ code, stdin, functionName }: ForkedRun): Promise<ChildEnd> {
    const running = Promise.withResolvers<Answer>();
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

  async #endOf(answered: Promise<Answer>, channel: Duplex): Promise<ChildEnd> {
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
      return this.#endBy(await answered, isLate);
    } catch (error) {
      // It stands still itself, and nothing says that the program has begun.
      if (isLate && error instanceof Ended) throw failed("does not end its program");
      throw error;
    } finally {
      isOver = true;
      clearTimeout(timer);
    }
  }

  #endBy(answer: Answer, isLate: boolean): ChildEnd {
    const { problem, code, ms, isTooMuch, isClean, outputs } = answer;
    if (problem !== undefined) throw failed(`cannot fork: ${problem}`);
    if (!isClean) this.#isUsable = false;
    const [stdout = "", stderr = "", reported = "", reached = ""] = outputs;
    const how =
      code < 0
        ? { exitCode: null, signal: signalOf(-code) ?? null }
        : { exitCode: code, signal: null };
    const ended = isLate && how.signal === "SIGKILL" ? "timeout" : "ended";
    const reason = isTooMuch ? "output-limit" : ended;
    const end: ChildEnd = { reason, ...how, stdout, stderr, reached, reported, durationMs: ms };
    if (reached !== "") return end;
    throw notReached("python", end, this.#walls.isolation);
  }
}

async function writeAll(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  const written = Object.entries(files).map(([name, text]) => writeFile(join(folder, name), text));
  await Promise.all(written).catch((cause: unknown) => {
    throw notStarted("python", cause, "its files cannot be written");
  });
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
  readonly #most: number;
  /** With the timer after which each is ended; the last one was used last. */
  readonly #idle: Map<ForkServer, NodeJS.Timeout> = new Map();
  /** How many there are, with those that run a program. */
  #count = 0;

  /** @param most so many are kept at most */
  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Rejects as runProgram does. A server that has run programs and fails at this one was lost or
   * damaged since: the program runs on a new one.
   */
  async run(walls: Walls, run: ForkedRun): Promise<ChildEnd> {
    // A program that does not use it has its memory for itself.
    const hasNumpy = /\b(?:numpy|np)\b/.test(run.code);
    const kept = this.#take(hasNumpy);
    if (kept === undefined) return this.#runOn(await this.#start(walls, hasNumpy), run);
    try {
      return await this.#runOn(kept, run);
    } catch (error) {
      const isOfServer =
        error instanceof SandboxResourceError || error instanceof SandboxUnavailableError;
      if (!isOfServer) throw error;
      return this.#runOn(await this.#start(walls, hasNumpy), run);
    }
  }

  /** Ends those that run nothing now, until there are no more than so many with the others. */
  async shrink(most: number): Promise<void> {
    const unneeded = [...this.#idle.keys()].slice(0, Math.max(0, this.#count - most));
    await Promise.all(unneeded.map((server) => this.#end(server)));
  }

  async #runOn(server: ForkServer, run: ForkedRun): Promise<ChildEnd> {
    try {
      return await server.run(run);
    } finally {
      if (server.isUsable) this.#keep(server);
      else await this.#end(server);
    }
  }

  async #start(walls: Walls, hasNumpy: boolean): Promise<ForkServer> {
    const [unused] = this.#idle.keys();
    // One of the other kind.
    if (this.#count >= this.#most && unused !== undefined) await this.#end(unused);
    this.#count += 1;
    return new ForkServer(walls, hasNumpy);
  }

  #take(hasNumpy: boolean): ForkServer | undefined {
    for (const [server, timer] of [...this.#idle].toReversed()) {
      if (server.hasNumpy !== hasNumpy || !server.isUsable) continue;
      clearTimeout(timer);
      this.#idle.delete(server);
      return server;
    }
    return undefined;
  }

  #keep(server: ForkServer): void {
    const timer = setTimeout(() => void this.#end(server), idleMs);
    timer.unref();
    this.#idle.set(server, timer);
  }

  async #end(server: ForkServer): Promise<void> {
    clearTimeout(this.#idle.get(server));
    this.#idle.delete(server);
    this.#count -= 1;
    await server.end();
  }
}
