/**
 * Writes JSON Lines as a stream: each record is one line, in the order of the write() calls. Owns
 * the queue between callers and the file.
 *
 * Invariants: records go to the operating system as soon as the write before them is done (no
 * timer, nothing lies waiting for a flush); records that arrive meanwhile leave in one write. The
 * first failure of the file is final: it rejects every later write, flush and close. flush() means
 * "handed to the operating system", not "on the platter". Two writers on one file are the caller's
 * business.
 */
import { open } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { JsonlError, requireInteger } from "../errors.ts";
import { fileError } from "./file-error.ts";
import { DEFAULT_MAX_LINE_BYTES } from "./reader.ts";
import { encodeRecord } from "./record.ts";

/**
 * A writer waits while 1 MiB is on its way: some thousand reward records, some milliseconds of a
 * disk.
 */
const HIGH_WATER_BYTES = 1024 * 1024;

export interface JsonlWriterOptions {
  /**
   * Keep what the file has; default false: start an empty file. A last line without newline is
   * ended first, so that only it is lost.
   */
  readonly append?: boolean;
  /** Longest record accepted, in bytes; default 64 MiB, what readJsonl accepts. */
  readonly maxLineBytes?: number;
}

export interface JsonlWriter extends AsyncDisposable {
  readonly path: string;
  /** Takes a snapshot of the record at once; resolves when there is room for the next one. */
  write(value: unknown): Promise<void>;
  /** Resolves when every record written before this call is with the operating system. */
  flush(): Promise<void>;
  /** Flushes and closes; every call returns the same promise. */
  close(): Promise<void>;
}

/** Throws JsonlError: JSONL_NOT_FOUND (no such folder) or JSONL_IO. */
export async function openJsonlWriter(
  path: string | URL,
  options: JsonlWriterOptions = {},
): Promise<JsonlWriter> {
  const { append = false, maxLineBytes = DEFAULT_MAX_LINE_BYTES } = options;
  requireInteger("maxLineBytes", maxLineBytes, 1);
  const file = typeof path === "string" ? path : fileURLToPath(path);
  let handle: FileHandle | null = null;
  try {
    handle = await open(file, append ? "a+" : "w");
    if (append) await endLastLine(handle);
    return new FileWriter(handle, file, maxLineBytes);
  } catch (cause) {
    await handle?.close();
    throw fileError(file, cause);
  }
}

class FileWriter implements JsonlWriter {
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #maxLineBytes: number;
  #queue: Buffer[] = [];
  #acceptedBytes = 0;
  #writtenBytes = 0;
  #draining = false;
  /** Settles, always by value, when the block that is being written is done. */
  #block: Promise<void> = Promise.resolve();
  #failure: JsonlError | null = null;
  #closing: Promise<void> | null = null;

  constructor(handle: FileHandle, path: string, maxLineBytes: number) {
    this.#handle = handle;
    this.path = path;
    this.#maxLineBytes = maxLineBytes;
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
    await this.#untilWritten(this.#acceptedBytes);
  }

  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #untilWritten(bytes: number): Promise<void> {
    while (this.#writtenBytes < bytes && this.#failure === null) await this.#block;
    if (this.#failure !== null) throw this.#failure;
  }

  async #drain(): Promise<void> {
    this.#draining = true;
    while (this.#queue.length > 0) {
      const bytes = Buffer.concat(this.#queue);
      this.#queue = [];
      this.#block = this.#writeBlock(bytes);
      await this.#block;
    }
    this.#draining = false;
  }

  async #writeBlock(bytes: Buffer): Promise<void> {
    try {
      await writeFully(this.#handle, bytes);
      this.#writtenBytes += bytes.length;
    } catch (cause) {
      this.#failure = fileError(this.path, cause);
      this.#queue = [];
    }
  }

  async #finish(): Promise<void> {
    try {
      await this.flush();
    } finally {
      await this.#release();
    }
  }

  async #release(): Promise<void> {
    try {
      await this.#handle.close();
    } catch (cause) {
      this.#failure ??= fileError(this.path, cause);
      throw this.#failure;
    }
  }
}

/** A write may take less than it is given, for one when the disk is nearly full. */
async function writeFully(handle: FileHandle, bytes: Buffer): Promise<void> {
  for (let offset = 0; offset < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, offset);
    offset += bytesWritten;
  }
}

async function endLastLine(handle: FileHandle): Promise<void> {
  const stats = await handle.stat();
  if (!stats.isFile() || stats.size === 0) return;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, stats.size - 1);
  if (buffer[0] !== 0x0a) await writeFully(handle, Buffer.from("\n"));
}
