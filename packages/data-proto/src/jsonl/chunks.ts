/**
 * The bytes of a file of JSON, chunk by chunk, unpacked where its name ends in .gz. Nothing is
 * read ahead but by gunzip. What a file is instead is said at its first bytes: gzip under another
 * name, Parquet, UTF-16.
 */
import type { FileHandle } from "node:fs/promises";
import { createGunzip } from "node:zlib";
import { JsonlError } from "../errors.ts";
import { fileKind } from "../shared/file-kind.ts";
import { fileError } from "./file-error.ts";

/** Reads of 256 KiB: beyond that a local disk gains nothing. */
const CHUNK_BYTES = 256 * 1024;

export interface Chunks {
  /** No bytes at the end. Rejects with JsonlError. */
  readonly next: () => Promise<Buffer>;
}

export function chunksOf(handle: FileHandle, path: string): Chunks {
  const source = path.endsWith(".gz") ? unpacked(handle, path) : { next: () => readChunk(handle) };
  let isFirst = true;
  return {
    next: async () => {
      const chunk = await ofFile(path, source.next());
      if (isFirst) refuseOther(chunk, path);
      isFirst = false;
      return chunk;
    },
  };
}

function refuseOther(head: Buffer, path: string): void {
  const kind = fileKind(head);
  if (kind === undefined) return;
  const advice = kind === "compressed by gzip" ? ": it is read under a name that ends in .gz" : "";
  const reason = `it is ${kind}, not JSON in UTF-8${advice}`;
  throw new JsonlError("JSONL_MALFORMED", { path, reason });
}

function unpacked(handle: FileHandle, path: string): Chunks {
  const packed = handle.createReadStream({ autoClose: false, highWaterMark: CHUNK_BYTES });
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  // pipe() leaves what comes out open when what goes in fails.
  packed.on("error", (error) => gunzip.destroy(error));
  const chunks = packed.pipe(gunzip)[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  return {
    next: async () => {
      try {
        const { done, value } = await chunks.next();
        return done === true ? Buffer.alloc(0) : value;
      } catch (cause) {
        if (!isOfZlib(cause)) throw cause;
        const reason = `its gzip cannot be unpacked: ${cause.message}`;
        throw new JsonlError("JSONL_MALFORMED", { path, reason, cause });
      }
    },
  };
}

function isOfZlib(error: unknown): error is Error {
  return error instanceof Error && "code" in error && String(error.code).startsWith("Z_");
}

/** In memory of their own: a line is held across chunks. */
async function readChunk(handle: FileHandle): Promise<Buffer> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const { bytesRead } = await handle.read(chunk, 0, CHUNK_BYTES, null);
  return chunk.subarray(0, bytesRead);
}

async function ofFile<T>(path: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    throw fileError(path, cause);
  }
}
