/**
 * Sends the output of code in a host, with the name of its writer, to the driver for display.
 *
 * Every write is passed on at once, over a channel that the end of the host does not cut: output
 * before `process.exit` arrives. The async context identifies the writer, so that actors in one
 * host are told apart. Output past `process.stdout` (of native code, of child processes) has no
 * name.
 */
import { writeSync } from "node:fs";
import { StringDecoder } from "node:string_decoder";
import { currentTask } from "../caller/waits/task-scope.ts";
import { clockMs } from "../shared/clock.ts";
import { shortId } from "../shared/ids.ts";
import { codeOf } from "../shared/errors/thrown.ts";
import { timers } from "../shared/machine/timers.ts";

export type OutputStream = "stdout" | "stderr";

/** Takes text as it is written, including parts of lines. */
export type OutputSink = (stream: OutputStream, owner: string, text: string) => void;

/** The message of a host thread to its driver for each write. */
export type OutputMessage = readonly ["output", OutputStream, string, string];

/** Sends all output of this thread to `sink` from now on. */
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
      if (callback !== undefined) timers.nextTick(callback);
      return true;
    };
    process[stream].write = write;
  }
}

/** Returns the actor or task that writes; "" for other code. */
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

/** Marks each line with its writer, for pipes that carry only text. */
export class LineMarker {
  #isLineStart = true;
  #owner = "";

  mark(owner: string, text: string): string {
    // Two writers of one line get a line each.
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

/** Returns the line and its writer. */
export function readMark(line: string): { readonly owner: string; readonly text: string } {
  const close = line.startsWith(begin) ? line.indexOf(end) : -1;
  return close < 0
    ? { owner: "", text: line }
    : { owner: line.slice(1, close), text: line.slice(close + 1) };
}

/** The end of a process waits this long for a driver that reads slowly, in ms. */
const lastWordsMs = 2000;

/** The pause before another write to a full pipe, in ms. */
const retryMs = 2;

/**
 * Writes to a file of this process at once, and keeps the rest: a pipe takes a few hundred lines,
 * and Node drops the others when the process exits.
 */
export class PipeWriter {
  readonly #fd: number;
  /** The unwritten rest of the current text. */
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

  /** Waits at the end of the process until all is written, within a limit. */
  end(): void {
    this.#isEnding = true;
    const until = clockMs() + lastWordsMs;
    const pause = new Int32Array(new SharedArrayBuffer(4));
    while (!this.#try() && clockMs() < until) Atomics.wait(pause, 0, 0, retryMs);
  }

  #send(): void {
    this.#timer = undefined;
    if (!this.#try()) this.#timer = timers.setTimeout(() => this.#send(), retryMs).unref();
  }

  /** Writes what fits. Returns whether nothing is left. */
  #try(): boolean {
    try {
      while (this.#rest.length > 0 || this.#waiting.length > 0) {
        if (this.#rest.length === 0) this.#rest = Buffer.from(this.#waiting.splice(0).join(""));
        this.#rest = this.#rest.subarray(writeSync(this.#fd, this.#rest));
      }
    } catch (error) {
      if (codeOf(error) === "EAGAIN") return false;
      // The pipe has no reader any more.
      this.#rest = Buffer.alloc(0);
      this.#waiting.length = 0;
    }
    return true;
  }
}
