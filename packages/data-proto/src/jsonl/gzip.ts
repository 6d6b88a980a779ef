/**
 * JSON Lines under gzip. Each written block is a member of its own (RFC 1952 allows many in a
 * file), so that a truncated file has lost at most its last block, and can be appended to; tools
 * read the members as one.
 */
import { createReadStream } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { Readable } from "node:stream";
import { promisify } from "node:util";
import { constants, createGunzip, gunzipSync, gzip, gzipSync } from "node:zlib";
import { JsonlError } from "../errors.ts";

export const packed: (bytes: Buffer) => Promise<Buffer> = promisify(gzip);

export function isGzipName(path: string): boolean {
  return path.endsWith(".gz");
}

/**
 * Decompresses a stream.
 *
 * @param mayBeCutOff whether a truncated end is read as far as it goes, without an error
 */
export function unpacked(
  chunks: AsyncIterable<Buffer>,
  { chunkSize, mayBeCutOff }: { readonly chunkSize: number; readonly mayBeCutOff: boolean },
): AsyncIterator<Buffer> {
  const { Z_FINISH, Z_SYNC_FLUSH } = constants;
  const gunzip = createGunzip({ chunkSize, finishFlush: mayBeCutOff ? Z_SYNC_FLUSH : Z_FINISH });
  const source = Readable.from(chunks);
  // pipe() leaves its target open when its source fails.
  source.on("error", (error) => gunzip.destroy(error));
  gunzip.on("close", () => source.destroy());
  return source.pipe(gunzip)[Symbol.asyncIterator]();
}

/** Every member that this module writes begins with this header. */
const header = gzipSync(Buffer.alloc(0)).subarray(0, 10);

/**
 * Makes a file ready for further members: its last member is whole, and its last line has an end.
 * The readable part of a truncated member is written again.
 *
 * Throws JSONL_MALFORMED for a file that is no gzip, or that is truncated in a member of another
 * writer.
 */
export async function mendGzip(path: string, handle: FileHandle): Promise<void> {
  const { size } = await handle.stat();
  if (size === 0) return;
  const end = await lastByte(path, size);
  if (end !== "torn") {
    if (end !== 0x0a && end !== undefined) await handle.write(await packed(Buffer.from("\n")));
    return;
  }
  for (const start of await membersFromBehind(handle, size)) {
    if (start > 0 && (await lastByte(path, start)) === "torn") continue;
    const tail = Buffer.alloc(size - start);
    await handle.read(tail, 0, tail.length, start);
    const text = tail.length < header.length ? Buffer.alloc(0) : readable(tail);
    await handle.truncate(start);
    // A partial line stays a line, as in a file without gzip.
    const ending = text.at(-1) === 0x0a ? "" : "\n";
    if (text.length > 0)
      await handle.write(await packed(Buffer.concat([text, Buffer.from(ending)])));
    return;
  }
  const reason = "it was cut off, and its end was written by another program";
  throw new JsonlError("JSONL_MALFORMED", { path, reason, unterminated: true });
}

/**
 * Decompresses the first `bytes` of a file, for their last byte; undefined if there is none.
 * Rejects for a file that is no gzip.
 */
async function lastByte(path: string, bytes: number): Promise<number | "torn" | undefined> {
  let last: number | undefined;
  const gunzip = createReadStream(path, { end: bytes - 1 }).pipe(createGunzip());
  try {
    const chunks: AsyncIterable<Buffer> = gunzip;
    for await (const chunk of chunks) last = chunk.at(-1) ?? last;
    return last;
  } catch (cause) {
    const isError = cause instanceof Error;
    if (isError && "code" in cause && cause.code === "Z_BUF_ERROR") return "torn";
    const reason = isError ? cause.message : String(cause);
    throw new JsonlError("JSONL_MALFORMED", { path, reason, cause });
  }
}

/**
 * A block is 1 MiB of lines, or one line of 64 MiB: the truncated member begins within this
 * distance from the end.
 */
const tailBytes = 80 * 1024 * 1024;

/**
 * Returns places where the last member may begin: a partial header at the end of the file, and the
 * last whole headers.
 */
async function membersFromBehind(handle: FileHandle, size: number): Promise<number[]> {
  const from = Math.max(0, size - tailBytes);
  const tail = Buffer.alloc(size - from);
  await handle.read(tail, 0, tail.length, from);
  const starts: number[] = [];
  for (let length = 1; length < header.length; length++) {
    if (tail.subarray(-length).equals(header.subarray(0, length))) starts.push(size - length);
  }
  for (let at = tail.lastIndexOf(header); at >= 0 && starts.length < 20;) {
    starts.push(from + at);
    at = at === 0 ? -1 : tail.lastIndexOf(header, at - 1);
  }
  return starts;
}

function readable(member: Buffer): Buffer {
  try {
    return gunzipSync(member, { finishFlush: constants.Z_SYNC_FLUSH });
  } catch {
    return Buffer.alloc(0);
  }
}
