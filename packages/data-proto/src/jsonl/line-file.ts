/**
 * The file that lines are appended to, under gzip if its name ends with .gz. Owns the failures of a
 * file during writing: it is removed, another one takes its place, it is truncated, another program
 * writes to it, the disk is full.
 *
 * Invariants: bytes go to the end of the file, wherever that is (O_APPEND). After each write the
 * path still leads to this file, and the file has the expected length; else the write rejects with
 * JSONL_CHANGED. A file that is not plain (a pipe, a terminal, a device) has no length and is not
 * checked. A write that fails in its middle leaves whole lines, which count as written.
 */
import { constants } from "node:fs";
import { open, stat } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { JsonlError } from "../errors.ts";
import { fileError } from "./file-error.ts";
import { isGzipName, mendGzip, packed } from "./gzip.ts";

const { O_APPEND, O_CREAT, O_RDWR, O_TRUNC, O_WRONLY } = constants;

/** Reads of 1 MiB when a file is compared with its written bytes. */
const COMPARE_BYTES = 1024 * 1024;

/** Bytes that were written to the file, all of them or those before a place. */
interface Written {
  readonly bytes: number;
  /** CRC-32. */
  readonly checksum: number;
}

export class LineFile {
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #isPlain: boolean;
  readonly #startBytes: number;
  readonly #isGzip: boolean;
  #written: Written = { bytes: 0, checksum: 0 };
  #wholeBytes = 0;

  private constructor(path: string, handle: FileHandle, isPlain: boolean, startBytes: number) {
    this.path = path;
    this.#handle = handle;
    this.#isPlain = isPlain;
    this.#startBytes = startBytes;
    this.#isGzip = isGzipName(path);
  }

  /**
   * Opens the file. Throws JSONL_NOT_FOUND (no such folder) or JSONL_IO.
   *
   * @param append whether to keep the content of the file; its last line is ended
   */
  static async open(path: string, append: boolean): Promise<LineFile> {
    let handle: FileHandle | null = null;
    try {
      const how = append ? O_RDWR : O_WRONLY | O_TRUNC;
      handle = await open(path, how | O_CREAT | O_APPEND);
      const isPlain = (await handle.stat()).isFile();
      if (append && isPlain)
        await (isGzipName(path) ? mendGzip(path, handle) : endLastLine(handle));
      const { size } = await handle.stat();
      return new LineFile(path, handle, isPlain, isPlain ? size : 0);
    } catch (cause) {
      await handle?.close();
      throw fileError(path, cause);
    }
  }

  get wholeBytes(): number {
    return this.#wholeBytes;
  }

  /** Rejects with JSONL_IO, or JSONL_CHANGED. */
  async write(lines: Buffer): Promise<void> {
    const before = this.#written;
    try {
      const bytes = this.#isGzip ? await packed(lines) : lines;
      // A write may take only a part, for example when the disk is nearly full.
      for (let offset = 0; offset < bytes.length;) {
        const { bytesWritten } = await this.#handle.write(bytes, offset);
        this.#written = behind(this.#written, bytes.subarray(offset, offset + bytesWritten));
        offset += bytesWritten;
      }
    } catch (cause) {
      // The caller has to know why it was not written.
      await this.#keepWholeLines(lines, before).catch(() => undefined);
      throw fileError(this.path, cause);
    }
    await this.checkPlace();
    this.#wholeBytes += lines.length;
  }

  /**
   * Lines that the file has would be read as written although their writers were refused: whole
   * ones count as written, and the rest is removed.
   */
  async #keepWholeLines(lines: Buffer, before: Written): Promise<void> {
    if (!this.#isPlain) return;
    await this.checkPlace();
    const taken = lines.subarray(0, this.#written.bytes - before.bytes);
    // A part of a gzip member is removed as a whole.
    const whole = this.#isGzip ? taken.subarray(0, 0) : upToLineEnd(taken);
    this.#wholeBytes += whole.length;
    this.#written = behind(before, whole);
    await this.#handle.truncate(this.#startBytes + this.#written.bytes);
  }

  /** Reads the written bytes back, and rejects with JSONL_CHANGED when the file differs. */
  async verify(): Promise<void> {
    if (!this.#isPlain) return;
    await this.checkPlace();
    const checksum = await this.#checksum().catch((cause: unknown) => {
      throw fileError(this.path, cause);
    });
    if (checksum !== this.#written.checksum)
      throw this.#changed("it has other bytes than were written");
  }

  /** Resolves with that of the bytes in the file where this one wrote. */
  async #checksum(): Promise<number> {
    const file = await open(this.path, "r");
    try {
      let checksum = 0;
      const chunk = Buffer.allocUnsafe(COMPARE_BYTES);
      const end = this.#startBytes + this.#written.bytes;
      for (let position = this.#startBytes; position < end;) {
        const wanted = Math.min(chunk.length, end - position);
        const { bytesRead } = await file.read(chunk, 0, wanted, position);
        if (bytesRead === 0) break;
        checksum = crc32(chunk.subarray(0, bytesRead), checksum);
        position += bytesRead;
      }
      return checksum;
    } finally {
      await file.close();
    }
  }

  /** Rejects with JSONL_IO. */
  async close(): Promise<void> {
    try {
      await this.#handle.close();
    } catch (cause) {
      throw fileError(this.path, cause);
    }
  }

  /** Rejects with JSONL_CHANGED when the path leads elsewhere, or the file has another length. */
  async checkPlace(): Promise<void> {
    if (!this.#isPlain) return;
    const bigint = true;
    const [own, there] = await Promise.all([
      this.#handle.stat({ bigint }),
      stat(this.path, { bigint }).catch(goneOrThrow),
    ]).catch((cause: unknown) => {
      throw fileError(this.path, cause);
    });
    if (there === undefined) throw this.#changed("it was removed");
    if (there.dev !== own.dev || there.ino !== own.ino) {
      throw this.#changed("another file took its place");
    }
    const wanted = this.#startBytes + this.#written.bytes;
    const size = Number(own.size);
    if (size === wanted) return;
    const what = size < wanted ? "it was cut off" : "something else writes it, too";
    throw this.#changed(`${what} (${size} bytes in place of ${wanted})`);
  }

  #changed(what: string): JsonlError {
    const reason = `${what}, while it was being written`;
    return new JsonlError("JSONL_CHANGED", { path: this.path, reason });
  }
}

function behind({ bytes, checksum }: Written, more: Buffer): Written {
  return { bytes: bytes + more.length, checksum: crc32(more, checksum) };
}

function upToLineEnd(lines: Buffer): Buffer {
  return lines.subarray(0, lines.lastIndexOf(0x0a) + 1);
}

function goneOrThrow(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT" && error.code !== "ENOTDIR") throw error;
}

async function endLastLine(handle: FileHandle): Promise<void> {
  const { size } = await handle.stat();
  if (size === 0) return;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  if (buffer[0] !== 0x0a) await handle.write("\n");
}
