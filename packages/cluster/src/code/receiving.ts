/**
 * A package of code in transfer: its portions are checked and written as they come, so that an
 * agent holds only a few of them.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { RaySystemError, asError } from "@rayling/core/cluster";
import { BadPackageError, bytesOf, type Manifest } from "./manifest.ts";
import { manifestText, unpack } from "./stream.ts";

export interface ReceivingParts {
  readonly id: string;
  /** The folder for the files; it is made here. */
  readonly folder: string;
  readonly maxBytes: number;
  readonly makeRoom: (bytes: number) => Promise<void>;
  /** Moves the package into its place, or removes its files. */
  readonly settle: (isComplete: boolean) => Promise<void>;
  readonly problem: (error: NodeJS.ErrnoException) => RaySystemError;
}

/** A sender that does not wait for answers is cut off. */
const maxWaitingBytes = 8 * 1024 * 1024;

export class Receiving {
  readonly #input: PassThrough = new PassThrough({ highWaterMark: 1024 * 1024 });
  readonly #done: Promise<Manifest>;

  constructor(parts: ReceivingParts) {
    // The stream may be destroyed before anybody reads it, or after.
    this.#input.on("error", () => undefined);
    this.#done = receive(this.#input, parts);
    // The next write reports the error.
    this.#done.catch(() => undefined);
  }

  /** Resolves when more may come. Rejects with RaySystemError, and the package is dropped. */
  async write(portion: Uint8Array): Promise<void> {
    if (this.#input.writableLength > maxWaitingBytes) {
      void this.abort("it arrives faster than it can be written");
    }
    if (this.#input.destroyed) {
      await this.#done;
      throw new BadPackageError("data arrived after its end");
    }
    if (this.#input.write(portion)) return;
    const drained = new Promise<void>((resolve) => this.#input.once("drain", resolve));
    await Promise.race([drained, this.#done]);
  }

  /**
   * Resolves when the package is in its place. Rejects with RaySystemError, and nothing is left of
   * it.
   */
  end(): Promise<Manifest> {
    this.#input.end();
    return this.#done;
  }

  /** Aborts the transfer; resolves when nothing is left of it. */
  async abort(why: string): Promise<void> {
    this.#input.destroy(new BadPackageError(why));
    await this.#done.then(
      () => undefined,
      // A failure is the aim here.
      () => undefined,
    );
  }
}

async function receive(
  input: PassThrough,
  { id, folder, maxBytes, makeRoom, settle, problem }: ReceivingParts,
): Promise<Manifest> {
  let manifest: Manifest | undefined;
  try {
    const files = join(folder, "files");
    await mkdir(files, { recursive: true, mode: 0o700 });
    await pipeline(input, createGunzip(), async (pieces: AsyncIterable<Buffer>) => {
      manifest = await unpack(pieces, { folder: files, id, maxBytes, makeRoom });
    });
    if (manifest === undefined) throw new BadPackageError("it is empty");
    await writeFile(join(folder, "manifest.json"), manifestText(manifest), { mode: 0o600 });
    await writeFile(join(folder, "bytes"), String(bytesOf(manifest)), { mode: 0o600 });
    await settle(true);
    return manifest;
  } catch (error) {
    input.destroy();
    await settle(false);
    throw asProblem(asError(error), problem);
  }
}

function asProblem(
  error: NodeJS.ErrnoException,
  problem: ReceivingParts["problem"],
): RaySystemError {
  if (error instanceof RaySystemError) return error;
  return error.code?.startsWith("Z_") === true
    ? new BadPackageError(`it is no valid gzip (${error.message})`, { cause: error })
    : problem(error);
}
