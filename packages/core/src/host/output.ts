/**
 * What code in a host writes to stdout and stderr, with who wrote it: so that the driver can show it.
 *
 * Every write is passed on at once, by a way that the end of the host does not cut: what was written before `process.exit` arrives. It is known by
 * context who writes, so that actors which share a host are told apart. Output past `process.stdout` (of native code, of children) has no name.
 */
import { writeSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";
import { currentTask } from "../caller/waits/task-scope.ts";
import { shortId } from "../shared/ids.ts";

export type OutputStream = "stdout" | "stderr";

/** Takes text as it is written: parts of lines, too. */
export type OutputSink = (stream: OutputStream, owner: string, text: string) => void;

/** What a host thread posts to its driver for each write. */
export type OutputMessage = readonly ["output", OutputStream, string, string];

/** From now on all that is written in this thread goes to `sink`. */
export function redirectOutput(sink: OutputSink): void {
  for (const stream of ["stdout", "stderr"] as const) {
    const decoder = new StringDecoder("utf8");
    const write = (
      chunk: string | Uint8Array,
      encoding?: BufferEncoding | ((error?: Error | null) => void),
      done?: (error?: Error | null) => void,
    ): boolean => {
      const text = typeof chunk === "string" ? chunk : decoder.write(Buffer.from(chunk));
      if (text !== "") sink(stream, ownerName(), text);
      const callback = typeof encoding === "function" ? encoding : done;
      if (callback !== undefined) process.nextTick(callback);
      return true;
    };
    process[stream].write = write;
  }
}

/** The actor or task that writes; "" for what belongs to none. */
function ownerName(): string {
  const task = currentTask();
  if (task === undefined) return "";
  const { actor } = task;
  return actor === undefined
    ? task.functionName
    : `${actor.info.className} ${shortId(actor.info.actorId)}`;
}

const begin = "\u001E";
const end = "\u001F";

/** Puts who writes before each line, for ways that carry text and nothing else. */
export class LineMarker {
  #isLineStart = true;
  #owner = "";

  mark(owner: string, text: string): string {
    // Two who write to one line at the same time get a line each.
    const split = this.#isLineStart || owner === this.#owner ? "" : "\n";
    if (split !== "") this.#isLineStart = true;
    this.#owner = owner;
    const mark = `${begin}${owner}${end}`;
    const marked = text.replaceAll(/\n(?=[^])/g, `\n${mark}`);
    const first = this.#isLineStart ? mark : "";
    this.#isLineStart = text.endsWith("\n");
    return `${split}${first}${marked}`;
  }
}

/** The line and who wrote it. */
export function readMark(line: string): { readonly owner: string; readonly text: string } {
  const close = line.startsWith(begin) ? line.indexOf(end) : -1;
  return close < 0
    ? { owner: "", text: line }
    : { owner: line.slice(1, close), text: line.slice(close + 1) };
}

/** How long the end of a process waits for a driver that reads slowly. */
const lastWordsMs = 2000;

/** A full pipe is tried again after this time. */
const retryMs = 2;

/**
 * Writes to a file of this process at once, and keeps what does not go: a pipe takes a few hundred lines, and Node forgets the rest when the process exits.
 */
export class PipeWriter {
  readonly #fd: number;
  /** Of what is being written. */
  #rest: Buffer = Buffer.alloc(0);
  readonly #waiting: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isEnding = false;

  constructor(fd: number) {
    this.#fd = fd;
  }

  write(text: string): void {
    this.#waiting.push(text);
    if (this.#isEnding) this.end();
    else if (this.#timer === undefined) this.#send();
  }

  /** The process ends: waits until all is written, but not for ever. */
  end(): void {
    this.#isEnding = true;
    const until = performance.now() + lastWordsMs;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    while (!this.#try() && performance.now() < until) Atomics.wait(pause, 0, 0, retryMs);
  }

  #send(): void {
    this.#timer = undefined;
    if (!this.#try()) this.#timer = setTimeout(() => this.#send(), retryMs).unref();
  }

  /** Whether nothing is left. */
  #try(): boolean {
    try {
      while (this.#rest.length > 0 || this.#waiting.length > 0) {
        if (this.#rest.length === 0) this.#rest = Buffer.from(this.#waiting.splice(0).join(""));
        this.#rest = this.#rest.subarray(writeSync(this.#fd, this.#rest));
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EAGAIN") return false;
      // Nobody reads it any more.
      this.#rest = Buffer.alloc(0);
      this.#waiting.length = 0;
    }
    return true;
  }
}
