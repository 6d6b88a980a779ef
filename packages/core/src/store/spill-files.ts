/**
 * The files that values are moved to: several values in one, because a file each costs thirty times as much for small ones (measured: 100 MB in
 * values of 64 KiB, 1.0 s against 0.03 s).
 *
 * Files are written once and never changed. One goes when the last value in it was released, so a file of 100 MB may stay for one small value.
 * The directory is made when the first file is; who ends the session removes it.
 */
import { closeSync, mkdirSync, openSync, rmSync, statfsSync, unlink, writevSync } from "node:fs";
import { type FileHandle, mkdir, open, rm, statfs } from "node:fs/promises";
import { join } from "node:path";

/** Where in which file a value lies. */
export interface Extent {
  readonly file: SpillFile;
  readonly offset: number;
  readonly byteLength: number;
}

interface SpillFile {
  readonly path: string;
  /** Values in it that are still wanted. */
  values: number;
}

/** The disk has no room left. */
export class DiskFull extends Error {
  readonly directory: string;
  constructor(directory: string, options?: ErrorOptions) {
    super(`the disk of ${directory} is full`, options);
    this.name = "DiskFull";
    this.directory = directory;
  }
}

/** Ray's figure: a machine whose disk is full to the brim serves nobody. */
const fullestDisk = 0.95;

/** Below the least IOV_MAX that is common, 1,024. */
const piecesPerWrite = 512;

/** Linux reads at most 2 GiB at once. */
const bytesPerRead: number = 1024 ** 3;

export class SpillFiles {
  readonly directory: string;
  readonly #prefix: string;
  #count = 0;

  /** @param prefix begins the names of all files of this writer */
  constructor(directory: string, prefix: string) {
    this.directory = directory;
    this.#prefix = prefix;
  }

  /** Writes values, each a list of pieces, into one file. @throws DiskFull, or what the file system says */
  async write(values: readonly (readonly Uint8Array[])[]): Promise<Extent[]> {
    const path = this.#nextPath();
    try {
      await mkdir(this.directory, { recursive: true, mode: 0o700 });
      this.#checkRoom(await statfs(this.directory), sizeOf(values.flat()));
      const file = await open(path, "wx", 0o600);
      try {
        for (const pieces of portions(values)) await writeAll(file, pieces);
      } finally {
        await file.close();
      }
    } catch (error) {
      await rm(path, { force: true }).catch(() => undefined);
      throw this.#readable(error);
    }
    return extentsIn(path, values);
  }

  /** The same without giving up the thread: for who cannot go on before there is room. */
  writeSync(values: readonly (readonly Uint8Array[])[]): Extent[] {
    const path = this.#nextPath();
    try {
      mkdirSync(this.directory, { recursive: true, mode: 0o700 });
      this.#checkRoom(statfsSync(this.directory), sizeOf(values.flat()));
      const file = openSync(path, "wx", 0o600);
      try {
        for (const pieces of portions(values)) {
          let rest = pieces;
          while (rest.length > 0) rest = behind(rest, writevSync(file, rest));
        }
      } finally {
        closeSync(file);
      }
    } catch (error) {
      rmSync(path, { force: true });
      throw this.#readable(error);
    }
    return extentsIn(path, values);
  }

  /** Fills `pieces`, which have the lengths that were written. @throws what the file system says, or that the file is too short */
  async read({ file, offset }: Extent, pieces: readonly Uint8Array[]): Promise<void> {
    const handle = await open(file.path, "r");
    try {
      let at = offset;
      for (const piece of pieces) {
        for (let filled = 0; filled < piece.length;) {
          const length = Math.min(piece.length - filled, bytesPerRead);
          const { bytesRead } = await handle.read(piece, filled, length, at);
          if (bytesRead === 0) throw new Error(`${file.path} ends at ${at}`);
          filled += bytesRead;
          at += bytesRead;
        }
      }
    } finally {
      await handle.close();
    }
  }

  release({ file }: Extent): void {
    file.values -= 1;
    // One that cannot be removed now goes with the directory.
    if (file.values === 0) unlink(file.path, () => undefined);
  }

  #nextPath(): string {
    return join(this.directory, `${this.#prefix}-${this.#count++}`);
  }

  #checkRoom(disk: { bavail: number; blocks: number; bsize: number }, byteLength: number): void {
    const left = disk.bavail * disk.bsize - byteLength;
    if (left < disk.blocks * disk.bsize * (1 - fullestDisk)) throw new DiskFull(this.directory);
  }

  #readable(error: unknown): unknown {
    const { code } = error as { code?: string };
    if (code !== "ENOSPC" && code !== "EDQUOT") return error;
    return new DiskFull(this.directory, { cause: error });
  }
}

function extentsIn(path: string, values: readonly (readonly Uint8Array[])[]): Extent[] {
  const file: SpillFile = { path, values: values.length };
  let offset = 0;
  return values.map((pieces) => {
    const extent: Extent = { file, offset, byteLength: sizeOf(pieces) };
    offset += extent.byteLength;
    return extent;
  });
}

function sizeOf(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

function* portions(values: readonly (readonly Uint8Array[])[]): Iterable<readonly Uint8Array[]> {
  const pieces = values.flat();
  for (let index = 0; index < pieces.length; index += piecesPerWrite) {
    yield pieces.slice(index, index + piecesPerWrite);
  }
}

async function writeAll(file: FileHandle, pieces: readonly Uint8Array[]): Promise<void> {
  let rest = pieces;
  while (rest.length > 0) rest = behind(rest, (await file.writev([...rest])).bytesWritten);
}

/** What is left of `pieces` when `written` bytes of them are written: a write may be short. */
function behind(pieces: readonly Uint8Array[], written: number): readonly Uint8Array[] {
  let left = written;
  for (const [index, piece] of pieces.entries()) {
    if (left < piece.length) return [piece.subarray(left), ...pieces.slice(index + 1)];
    left -= piece.length;
  }
  return [];
}
