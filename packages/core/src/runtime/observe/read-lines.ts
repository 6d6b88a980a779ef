/**
 * Splits text streams into lines, and keeps the last lines of one.
 */
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

/** A longer line is passed on in pieces. */
const maxLine = 64 * 1024;

/** Calls back with every line, including a last one without an end. */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  stream.on("data", (chunk: Buffer) => {
    const lines = (rest + decoder.write(chunk)).split(/\r?\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
    if (rest.length < maxLine) return;
    onLine(rest);
    rest = "";
  });
  stream.on("end", () => {
    const line = rest + decoder.end();
    rest = "";
    if (line !== "") onLine(line);
  });
  // A broken stream has no more lines; the end of its writer has a cause of its own.
  stream.on("error", () => undefined);
}

/** The last lines of a process: at most 20 lines and 4 KB. */
export class LastLines {
  readonly #lines: string[] = [];
  #length = 0;
  #heapLimit: string | undefined;

  /** V8's report of a full heap, if it ever came: a long trace may follow it. */
  get heapLimit(): string | undefined {
    return this.#heapLimit;
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  add(line: string): void {
    if (heapLimit.test(line)) this.#heapLimit = line;
    const kept = line.slice(0, maxKept);
    this.#lines.push(kept);
    this.#length += kept.length;
    while (this.#lines.length > maxLines || this.#length > maxKept) {
      this.#length -= this.#lines.shift()?.length ?? 0;
    }
  }
}

const heapLimit = /JavaScript heap out of memory/;
const maxLines = 20;
const maxKept = 4096;
