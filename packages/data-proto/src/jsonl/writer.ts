/**
 * Writes JSON Lines as a stream: each record is one line, in the order of the write() calls. Owns
 * the queue between callers and the file.
 *
 * Invariants: records go to the operating system as soon as the previous write is done (there is no
 * timer, and no record waits for a flush); records that arrive meanwhile, or in one turn, leave in
 * one write. The first failure of the file is final: it rejects every later write, flush and close.
 * Where a disk ends within a write, a flush resolves if the lines before that place are all that it
 * waits for: they are in the file. flush() means "handed to the operating system", not "on the
 * platter". A file that another program removes, replaces, truncates or writes meanwhile has failed
 * (JSONL_CHANGED): lost records never count as written.
 */
import { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { JsonlError, requireInteger } from "../errors.ts";
import { fileError } from "./file-error.ts";
import { LineFile } from "./line-file.ts";
import { LineStream } from "./line-stream.ts";
import { DEFAULT_MAX_LINE_BYTES } from "./reader.ts";
import { encodeRecord } from "./record.ts";
import { checkOptions } from "../shared/options.ts";
import type { OptionKinds } from "../shared/options.ts";

/**
 * A writer waits while 1 MiB is in transit: some thousand reward records, some milliseconds of a
 * disk.
 */
const HIGH_WATER_BYTES = 1024 * 1024;

/** Settings of a JSON Lines file that is written. */
export interface JsonlWriterOptions {
  /**
   * Whether to keep the content of the file; default false: start an empty file. A last line
   * without newline is ended first, so that only that line is lost.
   */
  readonly append?: boolean;
  /** The longest accepted record, in bytes; default 64 MiB, the default of readJsonl. */
  readonly maxLineBytes?: number;
}

const writerOptions: OptionKinds<JsonlWriterOptions> = { append: "boolean", maxLineBytes: "other" };

/** The target of lines. All methods reject with JsonlError. */
export interface LineTarget {
  readonly path: string;
  /**
   * Written bytes that are in place, of whole lines. Where a write fails in its middle, those of
   * lines before that place are among them.
   */
  readonly wholeBytes: number;
  /** Resolves when the operating system has all bytes. */
  write(bytes: Buffer): Promise<void>;
  /** Rejects if the target was replaced, as far as a cheap check shows. */
  checkPlace(): Promise<void>;
  /** Rejects if its content differs from the written bytes. */
  verify(): Promise<void>;
  close(): Promise<void>;
}

/** A JSON Lines file that is being written. Failures are JsonlErrors. */
export interface JsonlWriter extends AsyncDisposable {
  /** The path; for a stream a name such as "standard output". */
  readonly path: string;
  /** Takes a snapshot of the record at once; resolves when there is room for the next one. */
  write(value: unknown): Promise<void>;
  /** Resolves when the operating system has every record written before this call. */
  flush(): Promise<void>;
  /**
   * Flushes, reads the file back and rejects with JSONL_CHANGED if it differs from the written
   * records.
   */
  verify(): Promise<void>;
  /** Flushes and closes; every call returns the same promise. */
  close(): Promise<void>;
}

/**
 * Opens a writer. Rejects with JsonlError: JSONL_NOT_FOUND (no such folder) or JSONL_IO; and with
 * DataProtoError BAD_ARGUMENT for an option, also an unknown one: then the file is untouched.
 *
 * @param target a file; or a stream (of a process's standard output), which stays open when the
 * writer is closed
 */
export async function openJsonlWriter(
  target: string | URL | Writable,
  options: JsonlWriterOptions = {},
): Promise<JsonlWriter> {
  checkOptions("openJsonlWriter", options, writerOptions);
  const { append = false, maxLineBytes = DEFAULT_MAX_LINE_BYTES } = options;
  requireInteger("maxLineBytes", maxLineBytes, 1);
  if (target instanceof Writable) return new LineWriter(new LineStream(target), maxLineBytes);
  const file = typeof target === "string" ? target : fileURLToPath(target);
  return new LineWriter(await LineFile.open(file, append), maxLineBytes);
}

class LineWriter implements JsonlWriter {
  readonly #file: LineTarget;
  readonly #maxLineBytes: number;
  #queue: Buffer[] = [];
  #acceptedBytes = 0;
  #draining = false;
  /** Settles, always by value, when the current block is written. */
  #block: Promise<void> = Promise.resolve();
  #failure: JsonlError | null = null;
  #closing: Promise<void> | null = null;

  constructor(file: LineTarget, maxLineBytes: number) {
    this.#file = file;
    this.#maxLineBytes = maxLineBytes;
  }

  get path(): string {
    return this.#file.path;
  }

  async write(value: unknown): Promise<void> {
    if (this.#closing !== null)
      throw new JsonlError("JSONL_CLOSED", { path: this.path, reason: "write after close" });
    if (this.#failure !== null) throw this.#failure;
    const bytes = encodeRecord(value, this.path, this.#maxLineBytes);
    this.#queue.push(bytes);
    this.#acceptedBytes += bytes.length;
    if (!this.#draining) void this.#drain();
    await this.#untilWritten(this.#acceptedBytes - HIGH_WATER_BYTES);
  }

  async flush(): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    await this.#untilWritten(this.#acceptedBytes);
  }

  async verify(): Promise<void> {
    await this.flush();
    await this.#file.verify();
  }

  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #untilWritten(bytes: number): Promise<void> {
    while (this.#file.wholeBytes < bytes) {
      if (this.#failure !== null) throw this.#failure;
      await this.#block;
    }
  }

  async #drain(): Promise<void> {
    this.#draining = true;
    // Records of one turn go in one write: a kill does not come between them.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const lines = this.#queue;
      this.#queue = [];
      this.#block = this.#writeBlock(Buffer.concat(lines));
      await this.#block;
    }
    this.#draining = false;
  }

  async #writeBlock(bytes: Buffer): Promise<void> {
    try {
      await this.#file.write(bytes);
    } catch (cause) {
      this.#failure = fileError(this.path, cause);
      this.#queue = [];
    }
  }

  async #finish(): Promise<void> {
    try {
      await this.flush();
      await this.#file.checkPlace();
    } catch (cause) {
      this.#failure ??= fileError(this.path, cause);
      throw this.#failure;
    } finally {
      await this.#release();
    }
  }

  async #release(): Promise<void> {
    try {
      await this.#file.close();
    } catch (cause) {
      this.#failure ??= fileError(this.path, cause);
      throw this.#failure;
    }
  }
}
