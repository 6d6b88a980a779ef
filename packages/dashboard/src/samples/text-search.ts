/**
 * Finds rows by words of their texts. Texts lie one behind the other in lower case, as bytes, so
 * that a search is a scan of memory.
 */

/** Texts beyond so many bytes are not searched. */
const mostBytes = 1024 ** 3;
const chunkBytes = 16 * 1024 ** 2;

/** Bytes of a UTF-16 unit in UTF-8. */
const mostUtf8 = 3;

/** Stands for a row whose text was replaced. */
const noRow = -1;

interface Chunk {
  readonly bytes: Buffer;
  used: number;
  /** Where the text of each row begins, rising. */
  readonly starts: number[];
  readonly rows: number[];
}

export class TextSearch {
  readonly #chunks: Chunk[] = [];
  /** The place of each row's text. */
  readonly #places: (readonly [chunk: Chunk, at: number])[] = [];
  #bytes = 0;
  /** Whether there are texts that are not searched. */
  isPartial = false;

  /** Gives a row its texts, in place of earlier ones. No phrase goes from one into the next. */
  set(row: number, texts: readonly string[]): void {
    const [before, at] = this.#places[row] ?? [];
    if (before !== undefined && at !== undefined) before.rows[at] = noRow;
    const lower = texts.map((text) => text.toLowerCase());
    const most = lower.reduce((sum, text) => sum + roomFor(text), 0);
    if (this.#bytes + most > mostBytes) {
      this.isPartial = true;
      return;
    }
    const chunk = this.#chunkFor(most);
    this.#places[row] = [chunk, chunk.rows.length];
    chunk.starts.push(chunk.used);
    chunk.rows.push(row);
    const start = chunk.used;
    for (const text of lower) {
      chunk.used += chunk.bytes.write(text, chunk.used);
      chunk.bytes[chunk.used] = 0;
      chunk.used += 1;
    }
    this.#bytes += chunk.used - start;
  }

  clear(): void {
    this.#chunks.length = 0;
    this.#places.length = 0;
    this.#bytes = 0;
    this.isPartial = false;
  }

  /**
   * Returns for each row whether its text has all words; undefined where there are none.
   *
   * @param query words, and phrases in double quotes
   */
  search(query: string, rows: number): Uint8Array | undefined {
    const [first, ...others] = wordsOf(query)
      .map((word) => Buffer.from(word.toLowerCase()))
      .toSorted((a, b) => b.length - a.length);
    if (first === undefined) return undefined;
    const found = new Uint8Array(rows);
    for (const chunk of this.#chunks) searchChunk(chunk, first, others, found);
    return found;
  }

  #chunkFor(length: number): Chunk {
    const last = this.#chunks.at(-1);
    if (last !== undefined && last.used + length <= last.bytes.length) return last;
    const bytes = Buffer.allocUnsafeSlow(Math.max(chunkBytes, length));
    const chunk: Chunk = { bytes, used: 0, starts: [], rows: [] };
    this.#chunks.push(chunk);
    return chunk;
  }
}

/** Returns enough bytes for a text and its end. A short text is not looked through for that. */
function roomFor(text: string): number {
  return 1 + (text.length > 4096 ? Buffer.byteLength(text) : mostUtf8 * text.length);
}

function searchChunk(
  { bytes, used, starts, rows }: Chunk,
  first: Buffer,
  others: readonly Buffer[],
  found: Uint8Array,
): void {
  const all = bytes.subarray(0, used);
  let at = 0;
  for (let hit = all.indexOf(first); hit !== -1; hit = all.indexOf(first, starts[at] ?? used)) {
    at = placeOf(starts, hit, at);
    const end = starts[at + 1] ?? used;
    const text = all.subarray(starts[at], end);
    const row = rows[at];
    if (row !== undefined && row !== noRow && others.every((word) => text.includes(word)))
      found[row] = 1;
    at += 1;
    if (at === starts.length) return;
  }
}

/** Returns the last place from `low` on whose start is not behind `value`. */
function placeOf(starts: readonly number[], value: number, low: number): number {
  let [from, to] = [low, starts.length - 1];
  while (from < to) {
    const middle = Math.ceil((from + to) / 2);
    if ((starts[middle] ?? 0) <= value) from = middle;
    else to = middle - 1;
  }
  return from;
}

export function wordsOf(query: string): string[] {
  return [...query.matchAll(/"([^"]+)"|([^\s"]+)/g)].map(
    ([, phrase, word]) => phrase ?? word ?? "",
  );
}
