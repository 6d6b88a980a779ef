/**
 * The file that holds what V8 has compiled of a source: the code twice, and the source. V8 compares
 * neither: it would run the code of another source of the same length, and damaged code ends the
 * process. A hash of our own would take longer in a thread that has just begun.
 */
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** Room in front of the code, for its length: V8 reads code at multiples of 8. */
const headBytes = 64;

const partial = "partial";

/** A writer takes milliseconds: a part that is older was left by one that was ended. */
const partMs = 600_000;

/** Files that are older are removed: their version or flags may be used no more. */
const oldMs = 30 * 24 * 3_600_000;

export interface Kept {
  readonly code: Uint8Array;
  /** Whether it is of a program that ended before it had run much. */
  readonly isPartial: boolean;
}

/** Returns what is kept there of that source, if it is whole. */
export function readKept(path: string, source: Uint8Array): Kept | undefined {
  let kept: Buffer;
  try {
    kept = readFileSync(path);
  } catch {
    return undefined;
  }
  const head = kept.toString("latin1", 0, headBytes);
  const length = Number.parseInt(head, 10);
  const [second, last] = [headBytes + length, headBytes + 2 * length];
  if (!(length > 0) || kept.length !== last + source.length) return undefined;
  const code = kept.subarray(headBytes, second);
  const isWhole = code.equals(kept.subarray(second, last)) && kept.subarray(last).equals(source);
  return isWhole ? { code, isPartial: head.includes(partial) } : undefined;
}

/** Returns how long ago it was written, in ms. */
export function ageMs(path: string): number {
  const written = statSync(path, { throwIfNoEntry: false })?.mtimeMs;
  return written === undefined ? Infinity : Date.now() - written;
}

/**
 * @param compiled called when the file can be written
 * @throws what the file system throws: a full disk, or a place where this process may not write
 */
export function writeKept(
  path: string,
  source: Uint8Array,
  { isPartial, compiled }: Pick<Kept, "isPartial"> & { readonly compiled: () => Buffer },
): void {
  const part = `${path}.${process.pid}.${process.hrtime.bigint()}`;
  try {
    const file = openSync(part, "wx", 0o600);
    try {
      const code = compiled();
      const head = Buffer.alloc(headBytes);
      head.write(`${code.length} ${isPartial ? partial : ""}`, "latin1");
      for (const bytes of [head, code, code, source]) writeWhole(file, bytes);
    } finally {
      closeSync(file);
    }
    renameSync(part, path);
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
}

function writeWhole(file: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
}

/** Removes old files of that folder, and those whose writers were ended. */
export function sweep(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!name.includes(".rayling")) continue;
    const path = join(folder, name);
    if (ageMs(path) > (name.endsWith(".rayling") ? oldMs : partMs)) rmSync(path, { force: true });
  }
}

/** Returns the folders that lie beside that of a file, and its own. */
export function foldersBeside(path: string): string[] {
  const all = dirname(dirname(path));
  return readdirSync(all, { withFileTypes: true })
    .filter((one) => one.isDirectory())
    .map(({ name }) => join(all, name));
}
