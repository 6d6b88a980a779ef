/** Text streams as lines, and the last lines of one. */
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

/** A longer line is passed on in pieces. */
const maxLine = 64 * 1024;

/** Calls back with every line, the last one too if it has no end. */
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
  // A stream that breaks has no more lines; why its writer is gone is told by the writer's end.
  stream.on("error", () => undefined);
}

/** What a process said last: at most 20 lines and 4 KB. */
export class LastLines {
  readonly #lines: string[] = [];
  #length = 0;
  #heapLimit: string | undefined;

  /** Whether V8 said at any time that its heap is full: a long trace may follow. */
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
