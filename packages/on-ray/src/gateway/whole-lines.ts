/**
 * Splits a stream into whole lines. What its writer did not finish is dropped: a writer that is
 * killed stops anywhere in a line.
 */
import type { Readable } from "node:stream";

/** How to read the lines of a stream. */
export interface LineReading {
  /** The longest line, in bytes. */
  readonly maxBytes: number;
  readonly onLine: (line: string) => void;
  /** Called in place of a longer line; nothing more is read. */
  readonly onTooLong: () => void;
}

const lineEnd = 10;

export function readWholeLines(stream: Readable, reading: LineReading): void {
  let parts: Buffer[] = [];
  let bytes = 0;
  const take = (chunk: Buffer): void => {
    let from = 0;
    for (let to = chunk.indexOf(lineEnd); to >= 0; to = chunk.indexOf(lineEnd, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, to)]).toString();
      parts = [];
      bytes = 0;
      from = to + 1;
      reading.onLine(line);
      if (stream.destroyed) return;
    }
    parts.push(chunk.subarray(from));
    bytes += chunk.length - from;
    if (bytes <= reading.maxBytes) return;
    stream.off("data", take);
    parts = [];
    reading.onTooLong();
  };
  stream.on("data", take);
}
