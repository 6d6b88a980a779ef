/**
 * Reads JSON Lines as a stream: one value per line, memory bounded by the longest line. Owns
 * splitting bytes into lines and the format of a line: UTF-8, LF or CRLF, a byte order mark at the
 * start allowed, blank lines skipped but counted, the last line with or without a newline.
 *
 * Bytes are split at LF before they are decoded, so a character cut by a chunk border never shows.
 * Nothing is read ahead, so that leaving the loop never waits for further bytes. A bad line is an
 * error, and is skipped only for a caller that takes the error. Must not know what records mean:
 * values are `unknown`.
 */
import { open } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { JsonlError, requireInteger } from "../errors.ts";
import { ArrayReader, beginsArray } from "./array-reader.ts";
import type { ArrayItem } from "./array-reader.ts";
import { chunksOf } from "./chunks.ts";
import type { ChunkOptions, Chunks } from "./chunks.ts";
import { ofFile } from "./file-error.ts";
import { isGzipName } from "./gzip.ts";
import { parseJson } from "./parse-json.ts";
import type { NumberRules } from "./parse-json.ts";
import { reasonOf } from "../shared/file-problem.ts";
import { checkOptions } from "../shared/options.ts";
import type { OptionKinds } from "../shared/options.ts";

/**
 * 64 MiB: far above any rollout (a 1M-token response is about 8 MB of ids), far below V8's longest
 * string (512 MiB).
 */
export const DEFAULT_MAX_LINE_BYTES: number = 64 * 1024 * 1024;

const LF = 0x0a;
const CR = 0x0d;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** One value of a JSON Lines file, with its line. */
export interface JsonlRecord {
  /** 1-based, blank lines counted. */
  readonly line: number;
  /** The value of the line. */
  readonly value: unknown;
  /** With `places`: where the line begins and ends in the unpacked file, in bytes. */
  readonly place?: { readonly start: number; readonly end: number };
}

/** Limits and exceptions for reading a JSON Lines file. */
export interface ReadJsonlOptions {
  /** Ends a wait for the file at once; the iterator rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** The longest accepted line, in bytes without its line ending; default 64 MiB. */
  readonly maxLineBytes?: number;
  /**
   * Takes the JSONL_MALFORMED of each bad line, and reading goes on after it; by default it is
   * thrown. Use it for a log that was appended to after a crash: the truncated line stays in the
   * log.
   */
  readonly onMalformed?: (error: JsonlError) => void;
  /**
   * Whether NaN, Infinity and -Infinity are read, which Python's json module writes. They are no
   * JSON. Default false.
   */
  readonly allowNan?: boolean;
  /** Whether records have their `place`. Default false. */
  readonly places?: boolean;
  /**
   * The byte at which reading begins: the start of a line, which counts as the first one. Default
   * 0. A file whose name ends in .gz is read from its start only.
   */
  readonly from?: number;
}

const readOptions: OptionKinds<ReadJsonlOptions> = {
  signal: "other",
  maxLineBytes: "other",
  onMalformed: "function",
  allowNan: "boolean",
  places: "boolean",
  from: "other",
};

/**
 * Reads a file. A file whose name ends in .gz is decompressed; with `onMalformed` a truncated one
 * is read as far as it goes.
 *
 * Throws JsonlError: JSONL_NOT_FOUND, JSONL_IO, JSONL_MALFORMED, JSONL_LINE_TOO_LONG; and
 * DataProtoError BAD_ARGUMENT for an option. Leaving the loop early closes the file.
 */
export async function* readJsonl(
  path: string | URL,
  options: ReadJsonlOptions = {},
): AsyncGenerator<JsonlRecord, void, undefined> {
  checkOptions("readJsonl", options, readOptions);
  const { maxLineBytes = DEFAULT_MAX_LINE_BYTES, onMalformed = rethrow } = options;
  const { signal, allowNan = false, places = false } = options;
  requireInteger("maxLineBytes", maxLineBytes, 1);
  requireInteger("from", options.from ?? 0, 0);
  const file = typeof path === "string" ? path : fileURLToPath(path);
  const from = isGzipName(file) ? 0 : (options.from ?? 0);
  const rules = { allowNan, exact: false };
  const lines = new LineReader(
    { path: file, maxLineBytes, onMalformed, rules },
    places ? from : undefined,
  );
  const isLog = options.onMalformed !== undefined;
  yield* readWith({ file, signal, isLog, from }, () => lines);
}

/** Reads lines, or one array. Whole numbers that a double cannot hold are bigints. */
export async function* readJson(
  path: string,
  { signal, allowNan = false }: Pick<ReadJsonlOptions, "signal" | "allowNan">,
): AsyncGenerator<JsonlRecord | ArrayItem, void, undefined> {
  const rules = { allowNan, exact: true };
  const ofLines = { path, maxLineBytes: DEFAULT_MAX_LINE_BYTES, onMalformed: rethrow, rules };
  yield* readWith<JsonlRecord | ArrayItem>({ file: path, signal, isLog: false, from: 0 }, (head) =>
    beginsArray(head) ? new ArrayReader(path, rules) : new LineReader(ofLines, undefined),
  );
}

/** Makes records from bytes. */
interface BytesReader<Item> {
  readonly push: (chunk: Buffer) => Iterable<Item>;
  readonly end: () => Iterable<Item>;
}

interface Reading extends ChunkOptions {
  readonly file: string;
  readonly signal: AbortSignal | undefined;
}

/** @param readerFor called once, with the first bytes */
async function* readWith<Item>(
  { file, signal, ...options }: Reading,
  readerFor: (head: Buffer) => BytesReader<Item>,
): AsyncGenerator<Item, void, undefined> {
  signal?.throwIfAborted();
  const opening = ofFile(file, open(file, "r"));
  let work: Promise<unknown> = opening;
  let reader: BytesReader<Item> | undefined;
  let chunks: Chunks | undefined;
  try {
    chunks = chunksOf(await untilAborted(opening, signal), file, options);
    for (;;) {
      const reading = chunks.next();
      work = reading;
      const chunk = await untilAborted(reading, signal);
      reader ??= readerFor(chunk);
      for (const record of chunk.length === 0 ? reader.end() : reader.push(chunk)) {
        yield record;
        signal?.throwIfAborted();
      }
      if (chunk.length === 0) return;
    }
  } finally {
    // The close follows the current read, if there is one.
    const ended = chunks?.end();
    const closed = closeAfter(opening, Promise.allSettled([work, ended]));
    // A read that hangs (a pipe) cannot be cancelled: an abort does not wait for it.
    if (signal?.aborted !== true) await closed;
  }
}

async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

/** Never rejects: a file that was only read loses nothing when closing it fails. */
async function closeAfter(opening: Promise<FileHandle>, work: Promise<unknown>): Promise<void> {
  const [opened] = await Promise.allSettled([opening, work]);
  if (opened.status === "fulfilled") await Promise.allSettled([opened.value.close()]);
}

function rethrow(error: JsonlError): never {
  throw error;
}

interface LineSettings {
  readonly path: string;
  readonly maxLineBytes: number;
  readonly onMalformed: (error: JsonlError) => void;
  readonly rules: NumberRules;
}

/** Bytes in, records out. Holds at most one unfinished line. */
class LineReader {
  readonly #path: string;
  readonly #maxLineBytes: number;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  readonly #onMalformed: (error: JsonlError) => void;
  readonly #rules: NumberRules;
  #pieces: Buffer[] = [];
  #heldBytes = 0;
  #line = 0;
  /** Where the next line begins; undefined: places are not asked for. */
  #start: number | undefined;

  constructor(settings: LineSettings, start: number | undefined) {
    this.#path = settings.path;
    this.#maxLineBytes = settings.maxLineBytes;
    this.#onMalformed = settings.onMalformed;
    this.#rules = settings.rules;
    this.#start = start;
  }

  *push(chunk: Buffer): Generator<JsonlRecord, void, undefined> {
    let start = 0;
    for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
      const record = this.#finish(chunk.subarray(start, end), false);
      if (record !== undefined) yield record;
      start = end + 1;
    }
    const rest = chunk.subarray(start);
    this.#pieces.push(rest);
    this.#heldBytes += rest.length;
    // Four bytes of grace: a byte order mark and a CR do not count.
    if (this.#heldBytes > this.#maxLineBytes + 4) throw this.#tooLong(this.#line + 1);
  }

  *end(): Generator<JsonlRecord, void, undefined> {
    if (this.#heldBytes === 0) return;
    const record = this.#finish(Buffer.alloc(0), true);
    if (record !== undefined) yield record;
  }

  /** Returns undefined for a line without a value. */
  #finish(tail: Buffer, unterminated: boolean): JsonlRecord | undefined {
    let bytes = this.#heldBytes === 0 ? tail : Buffer.concat([...this.#pieces, tail]);
    this.#pieces = [];
    this.#heldBytes = 0;
    const line = ++this.#line;
    const place = this.#placeOf(bytes.length);
    if (line === 1 && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK)) bytes = bytes.subarray(3);
    if (bytes.at(-1) === CR) bytes = bytes.subarray(0, -1);
    if (bytes.length > this.#maxLineBytes) throw this.#tooLong(line);
    const value = this.#parse(bytes, line, unterminated);
    if (value === undefined) return undefined;
    return place === undefined ? { line, value } : { line, value, place };
  }

  #placeOf(length: number): JsonlRecord["place"] {
    if (this.#start === undefined) return undefined;
    const place = { start: this.#start, end: this.#start + length };
    this.#start = place.end + 1;
    return place;
  }

  /** Returns undefined for a blank line, and for a bad one that onMalformed took. */
  #parse(bytes: Buffer, line: number, unterminated: boolean): unknown {
    try {
      const text = this.#decoder.decode(bytes);
      return /[^ \t\r]/.test(text) ? parseJson(text, this.#rules) : undefined;
    } catch (cause) {
      const kind = cause instanceof TypeError ? "UTF-8" : "JSON";
      const reason = `the line is not valid ${kind}: ${reasonOf(cause)}`;
      const path = this.#path;
      this.#onMalformed(
        new JsonlError("JSONL_MALFORMED", { path, line, unterminated, reason, cause }),
      );
      return undefined;
    }
  }

  #tooLong(line: number): JsonlError {
    return new JsonlError("JSONL_LINE_TOO_LONG", {
      path: this.#path,
      line,
      reason: `the line is longer than ${this.#maxLineBytes} bytes`,
    });
  }
}
