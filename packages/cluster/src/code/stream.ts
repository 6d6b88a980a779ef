/**
 * A package of code as bytes: eight letters, the length of the list, the list as JSON, and the
 * contents of its files one after the other. Its id is the SHA-256 of these bytes, so equal code
 * has one name everywhere. The transfer is gzip'ed, whose window is small.
 *
 * Reads and writes are incremental: a package is never in memory as a whole.
 */
import { createHash, type Hash } from "node:crypto";
import { mkdir, open, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  BadPackageError,
  bytesOf,
  checkManifest,
  foldersOf,
  type Manifest,
  maxManifestBytes,
} from "./manifest.ts";

const magic: Buffer = Buffer.from("RAYCODE1");
const headerBytes = magic.length + 4;
const pieceBytes = 256 * 1024;
/** Small files that are read or written at once: opening them takes most of the time. */
const filesAtOnce = 16;

export function manifestText(manifest: Manifest): Buffer {
  return Buffer.from(JSON.stringify({ files: manifest.files, links: manifest.links }));
}

/**
 * Yields the bytes of a package whose files lie in local folders.
 *
 * @param pathOf returns the place of a file of the package
 * @throws BadPackageError when the size of a file differs from the list
 */
export async function* packageBytes(
  manifest: Manifest,
  pathOf: (path: string) => string,
): AsyncGenerator<Buffer, void> {
  const list = manifestText(manifest);
  const header = Buffer.alloc(headerBytes);
  magic.copy(header);
  header.writeUInt32BE(list.length, magic.length);
  yield header;
  yield list;
  const ahead: (Promise<Buffer> | undefined)[] = [];
  let next = 0;
  for (const [index, [path, size]] of manifest.files.entries()) {
    for (; next < Math.min(index + filesAtOnce, manifest.files.length); next++) {
      const [small, bytes] = manifest.files[next] as Manifest["files"][number];
      if (bytes > pieceBytes) continue;
      ahead[next] = readFile(pathOf(small));
      // The read that reaches it reports the error.
      ahead[next]?.catch(() => undefined);
    }
    let read = 0;
    for await (const piece of ahead[index] === undefined
      ? piecesOf(pathOf(path))
      : [await ahead[index]]) {
      read += piece.length;
      if (read > size) break;
      yield piece;
    }
    ahead[index] = undefined;
    if (read !== size) throw new BadPackageError(`${path} changed while it was read`);
  }
}

async function* piecesOf(path: string): AsyncGenerator<Buffer, void> {
  const file = await open(path, "r");
  try {
    for (;;) {
      const { bytesRead, buffer } = await file.read({ buffer: Buffer.allocUnsafe(pieceBytes) });
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

/**
 * Returns the id of a package whose files lie in `folder`.
 *
 * @throws BadPackageError when the size of a file differs from the list
 */
export async function idOfFolder(manifest: Manifest, folder: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of packageBytes(manifest, (path) => join(folder, path))) {
    hash.update(piece);
  }
  return hash.digest("hex");
}

export interface UnpackOptions {
  /** A new, empty folder. */
  readonly folder: string;
  /** The id of the package. */
  readonly id: string;
  readonly maxBytes: number;
  /** Called before the first file is written. */
  readonly makeRoom: (bytes: number) => Promise<void>;
}

/**
 * Writes a package to a folder. Files in it after a failure are of no use.
 *
 * @throws BadPackageError, also when the bytes do not match `id`
 */
export async function unpack(
  source: AsyncIterable<Buffer>,
  { folder, id, maxBytes, makeRoom }: UnpackOptions,
): Promise<Manifest> {
  const hash = createHash("sha256");
  const pieces = new Pieces(source, hash);
  const header = await pieces.exactly(headerBytes);
  const length = header.readUInt32BE(magic.length);
  if (!header.subarray(0, magic.length).equals(magic) || length > maxManifestBytes) {
    throw new BadPackageError("it does not begin with the mark of a package");
  }
  const manifest = checkManifest(parsed(await pieces.exactly(length)), maxBytes);
  await makeRoom(bytesOf(manifest));
  const made = new Set<string>();
  const makeFolders = async (path: string): Promise<void> => {
    for (const one of foldersOf(path)) {
      if (!made.has(one)) await mkdir(join(folder, one), { mode: 0o700 });
      made.add(one);
    }
  };
  const writing = new Set<Promise<void>>();
  try {
    for (const [path, size, executable] of manifest.files) {
      await makeFolders(path);
      const mode = executable === 1 ? 0o500 : 0o400;
      if (size > pieceBytes) {
        await writeBig(join(folder, path), mode, size, pieces);
        continue;
      }
      const content = await pieces.exactly(size);
      const written = writeFile(join(folder, path), content, { flag: "wx", mode });
      writing.add(written);
      void written.then(
        () => writing.delete(written),
        () => undefined,
      );
      if (writing.size >= filesAtOnce) await Promise.race(writing);
    }
    await Promise.all(writing);
  } finally {
    // No write is under way after this.
    await Promise.allSettled(writing);
  }
  if ((await pieces.upTo(1)) !== undefined) throw new BadPackageError("it does not end");
  if (hash.digest("hex") !== id) {
    throw new BadPackageError(`its content is not what its name ${id} says`);
  }
  for (const [path, target] of manifest.links) {
    await makeFolders(path);
    await symlink(target, join(folder, path));
  }
  return manifest;
}

/**
 * Only the user may read the file, and nobody may write it. "wx" refuses to overwrite on a file
 * system that takes two names for one.
 */
async function writeBig(path: string, mode: number, size: number, from: Pieces): Promise<void> {
  const file = await open(path, "wx", mode);
  try {
    for (let left = size; left > 0;) {
      const piece = await from.upTo(left);
      if (piece === undefined) throw new BadPackageError("it ends too early");
      await file.writeFile(piece);
      left -= piece.length;
    }
  } finally {
    await file.close();
  }
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    throw new BadPackageError("its list is no JSON", { cause: error });
  }
}

/** A stream of bytes, read in portions of another size. */
class Pieces {
  readonly #source: AsyncIterator<Buffer>;
  readonly #hash: Hash;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>, hash: Hash) {
    this.#source = source[Symbol.asyncIterator]();
    this.#hash = hash;
  }

  /** Returns at least one byte and at most `count`; undefined at the end. */
  async upTo(count: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#source.next();
      if (next.done === true) return undefined;
      this.#hash.update(next.value);
      this.#rest = next.value;
    }
    const piece = this.#rest.subarray(0, count);
    this.#rest = this.#rest.subarray(piece.length);
    return piece;
  }

  async exactly(count: number): Promise<Buffer> {
    const taken: Buffer[] = [];
    for (let left = count; left > 0;) {
      const piece = await this.upTo(left);
      if (piece === undefined) throw new BadPackageError("it ends too early");
      taken.push(piece);
      left -= piece.length;
    }
    return Buffer.concat(taken);
  }
}
