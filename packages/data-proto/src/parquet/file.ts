/**
 * A Parquet file as its library needs it (any range of bytes, at any time) over one open handle,
 * with failures of node:fs as ParquetErrors. Only this module touches the file system for reading
 * Parquet.
 */
import { open } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import type { AsyncBuffer } from "hyparquet";
import { ParquetError } from "../errors.ts";
import { fileKind, HEAD_BYTES } from "../shared/file-kind.ts";
import { isMissing, reasonOf } from "../shared/file-problem.ts";

export interface ParquetFile {
  readonly path: string;
  readonly bytes: AsyncBuffer;
  readonly close: () => Promise<void>;
}

/**
 * Throws PARQUET_NOT_FOUND, PARQUET_IO, and PARQUET_MALFORMED for a file that is not plain: its end
 * is read first.
 */
export async function openParquet(path: string): Promise<ParquetFile> {
  const handle = await ofFile(path, open(path, "r"));
  try {
    const stats = await ofFile(path, handle.stat());
    if (!stats.isFile()) {
      const reason = "it must be a plain file: a Parquet file is read from its end";
      throw new ParquetError("PARQUET_MALFORMED", { path, reason });
    }
    await refuseOther(handle, path, stats.size);
    const slice = (start: number, end: number = stats.size): Promise<ArrayBuffer> =>
      readRange(handle, path, start, end);
    return { path, bytes: { byteLength: stats.size, slice }, close: () => handle.close() };
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Throws a PARQUET_MALFORMED that names the kind of the file, if its first bytes reveal it. */
async function refuseOther(handle: FileHandle, path: string, size: number): Promise<void> {
  if (size === 0) throw new ParquetError("PARQUET_MALFORMED", { path, reason: "it is empty" });
  const head = new Uint8Array(await readRange(handle, path, 0, Math.min(HEAD_BYTES, size)));
  const kind = fileKind(head);
  if (kind !== undefined && kind !== "Parquet") {
    const reason = `it is ${kind}, not Parquet`;
    throw new ParquetError("PARQUET_MALFORMED", { path, reason });
  }
}

export function ioError(path: string, cause: unknown): ParquetError {
  if (cause instanceof ParquetError) return cause;
  const reason = reasonOf(cause);
  return new ParquetError(isMissing(cause) ? "PARQUET_NOT_FOUND" : "PARQUET_IO", {
    path,
    reason,
    cause,
  });
}

async function readRange(
  handle: FileHandle,
  path: string,
  start: number,
  end: number,
): Promise<ArrayBuffer> {
  const bytes = new Uint8Array(Math.max(0, end - start));
  for (let filled = 0; filled < bytes.length;) {
    const left = bytes.length - filled;
    const { bytesRead } = await ofFile(path, handle.read(bytes, filled, left, start + filled));
    if (bytesRead === 0) {
      const reason = `it ends before byte ${end}: it was cut off or is being written`;
      throw new ParquetError("PARQUET_MALFORMED", { path, reason });
    }
    filled += bytesRead;
  }
  return bytes.buffer;
}

/** Rejects with the ParquetError of what failed. */
export async function ofFile<Value>(path: string, work: Promise<Value>): Promise<Value> {
  try {
    return await work;
  } catch (cause) {
    throw ioError(path, cause);
  }
}
