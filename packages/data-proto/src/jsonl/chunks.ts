/**
 * The bytes of a JSON file, chunk by chunk, decompressed if they are gzip'ed. Only gunzip reads
 * ahead. The first bytes reveal another kind of file: gzip under another name, Parquet, UTF-16.
 */
import type { FileHandle } from "node:fs/promises";
import { JsonlError } from "../errors.ts";
import { fileKind } from "../shared/file-kind.ts";
import { ofFile } from "./file-error.ts";
import { isGzipName, unpacked } from "./gzip.ts";

/** Reads of 256 KiB: larger ones gain nothing on a local disk. */
const CHUNK_BYTES = 256 * 1024;

export interface Chunks {
  /** Returns the next bytes; none at the end. Rejects with JsonlError. */
  readonly next: () => Promise<Buffer>;
  /** Ends the reading. Never rejects. */
  readonly end: () => Promise<void>;
}

export interface ChunkOptions {
  /** Whether this is a log, whose gzip may be truncated: it is read as far as it goes. */
  readonly isLog: boolean;
  /** The byte at which reading begins; 0 in a packed file. */
  readonly from: number;
}

export function chunksOf(handle: FileHandle, path: string, { isLog, from }: ChunkOptions): Chunks {
  // Pipes have no positions: they are read from where they are.
  let at = from > 0 ? from : null;
  const next = async (): Promise<Buffer> => {
    const chunk = await readChunk(handle, at);
    if (at !== null) at += chunk.length;
    return chunk;
  };
  const plain: Chunks = { next, end: async () => undefined };
  let source: Chunks | undefined;
  const begin = async (): Promise<Buffer> => {
    const first = await ofFile(path, plain.next());
    const isPacked = isGzipName(path);
    source = isPacked ? unpackedChunks(first, plain, path, isLog) : plain;
    const chunk = isPacked ? await ofFile(path, source.next()) : first;
    if (from === 0) refuseOther(chunk, path);
    return chunk;
  };
  return {
    next: () => (source === undefined ? begin() : ofFile(path, source.next())),
    end: async () => source?.end(),
  };
}

function refuseOther(head: Buffer, path: string): void {
  const kind = fileKind(head);
  if (kind === undefined) return;
  const advice = kind === "compressed by gzip" ? ": it is read under a name that ends in .gz" : "";
  const reason = `it is ${kind}, not JSON in UTF-8${advice}`;
  throw new JsonlError("JSONL_MALFORMED", { path, reason });
}

function unpackedChunks(first: Buffer, plain: Chunks, path: string, isLog: boolean): Chunks {
  async function* packed(): AsyncGenerator<Buffer> {
    for (let chunk = first; chunk.length > 0; chunk = await plain.next()) yield chunk;
  }
  const chunks = unpacked(packed(), { chunkSize: CHUNK_BYTES, mayBeCutOff: isLog });
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
    end: async () => {
      await chunks.return?.().catch(() => undefined);
    },
  };
}

function isOfZlib(error: unknown): error is Error {
  return error instanceof Error && "code" in error && String(error.code).startsWith("Z_");
}

/** Each chunk has memory of its own, because a line is held across chunks. */
async function readChunk(handle: FileHandle, at: number | null): Promise<Buffer> {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  const { bytesRead } = await handle.read(chunk, 0, CHUNK_BYTES, at);
  return chunk.subarray(0, bytesRead);
}
