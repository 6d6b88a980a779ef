/**
 * What code in a host writes to stdout and stderr, with who wrote it: so that the driver can show it.
 *
 * Every write is passed on at once, by a way that the end of the host does not cut: what was written before `process.exit` arrives. It is known by
 * context who writes, so that actors which share a host are told apart. Output past `process.stdout` (of native code, of children) has no name.
 */
import { StringDecoder } from "node:string_decoder";
import { currentTask } from "../caller/task-scope.ts";
import { shortId } from "../shared/ids.ts";

export type OutputStream = "stdout" | "stderr";

/** Takes text as it is written: parts of lines, too. */
export type OutputSink = (stream: OutputStream, owner: string, text: string) => void;

/** What a host thread posts to its driver for each write. */
export type OutputMessage = readonly ["output", OutputStream, string, string];

type Write = typeof process.stdout.write;

/** From now on all that is written in this thread goes to `sink`. Returns the ways that it went before. */
export function redirectOutput(sink: OutputSink): Readonly<Record<OutputStream, Write>> {
  const before = {
    stdout: process.stdout.write.bind(process.stdout),
    stderr: process.stderr.write.bind(process.stderr),
  };
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
  return before;
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
