/**
 * Messages between a Python process and its Node process, over one stream of bytes in each
 * direction: a length of 4 bytes (little endian, of what follows), one byte that says how the text
 * is to be read, and JSON. Python's side is `python/src/rayling/frames.py`.
 *
 * JSON has no integers beyond 2^53 and no number that is not finite. Where a message has one, its
 * text is marked, and the number stands there as `{ "$int": "…" }` or `{ "$float": "…" }`.
 */

/** How the text of a frame is to be read. */
const plain = 0;
const marked = 1;

const headBytes = 5;

/** Longer ones are refused: a length that is read in the wrong place. */
const maxBytes: number = 2 ** 31 - 1;

export class FrameError extends Error {
  override readonly name: string = "FrameError";
}

/** Returns the frame of a message that JSON can carry, but for its numbers. */
export function frameOf(message: unknown): Buffer {
  let kind = plain;
  const text = JSON.stringify(message, (_, value: unknown) => {
    if (typeof value === "bigint") {
      kind = marked;
      return { $int: String(value) };
    }
    if (typeof value !== "number" || Number.isFinite(value)) return value;
    kind = marked;
    return { $float: String(value) };
  });
  const bytes = Buffer.byteLength(text);
  const frame = Buffer.allocUnsafe(headBytes + bytes);
  frame.writeUInt32LE(bytes + 1);
  frame.writeUInt8(kind, 4);
  frame.write(text, headBytes);
  return frame;
}

/** Takes bytes as they come, and gives the messages that are whole. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #bytes = 0;

  /** Throws FrameError for what is no frame. */
  *read(chunk: Buffer): Generator {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    for (;;) {
      if (this.#bytes < headBytes) return;
      const head = this.#atLeast(headBytes);
      const length = head.readUInt32LE();
      if (length === 0 || length > maxBytes) throw new FrameError(`a frame of ${length} bytes`);
      if (this.#bytes < 4 + length) return;
      const whole = this.#atLeast(4 + length);
      const text = whole.toString("utf8", headBytes, 4 + length);
      const kind = whole.readUInt8(4);
      this.#keep(whole.subarray(4 + length));
      yield messageOf(kind, text);
    }
  }

  /** Returns the first chunk, which is made longer where it has fewer bytes. */
  #atLeast(bytes: number): Buffer {
    const [first = Buffer.alloc(0)] = this.#chunks;
    if (first.length >= bytes) return first;
    const whole = Buffer.concat(this.#chunks);
    this.#chunks = [whole];
    return whole;
  }

  #keep(rest: Buffer): void {
    this.#chunks[0] = rest;
    this.#bytes = this.#chunks.reduce((sum, { length }) => sum + length, 0);
  }
}

function messageOf(kind: number, text: string): unknown {
  if (kind === plain) return JSON.parse(text);
  if (kind === marked) return JSON.parse(text, (_, value: unknown) => numberIn(value) ?? value);
  throw new FrameError(`a frame of kind ${kind}`);
}

/** Returns what a mark stands for; undefined for anything else. */
function numberIn(value: unknown): number | bigint | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if ("$int" in value && typeof value.$int === "string") return BigInt(value.$int);
  if ("$float" in value && typeof value.$float === "string") return Number(value.$float);
  return undefined;
}
