/**
 * The driver's side of code for other machines: the package of a setting, made once in a session.
 *
 * Files are read once to compute their common id (a machine may already have the package), and once
 * more, compressed, when a machine needs them. From then on the package is among the session's
 * files, for the next machine. If the files change in between, the package is made anew: as with
 * threads, later hosts run later code.
 */
import { createHash, randomUUID } from "node:crypto";
import { createReadStream, createWriteStream, existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { RaySystemError, registeredModules, type RuntimeEnv, asError } from "@rayling/core/cluster";
import { type Collected, modulesIn } from "../collect/collect.ts";
import { collectInThread } from "../collect/thread.ts";
import type { CodeOffer, ShippedCode } from "../contract.ts";
import { BadPackageError, bytesOf } from "./manifest.ts";
import { packageBytes } from "./stream.ts";

const sentBytes = 256 * 1024;

/** All code of one session that goes to other machines. */
export class CodePackages {
  readonly #known: Map<string, { modules: readonly string[]; made: Promise<CodePackage> }> =
    new Map();

  /**
   * @param moduleUrl the module that must be in it, if that is known
   * @param folder the session's folder, in which the package is kept
   */
  async for(
    { workingDir = true, excludes = [] }: RuntimeEnv,
    moduleUrl: string | undefined,
    folder: string,
  ): Promise<CodePackage> {
    const key = JSON.stringify([workingDir, excludes]);
    const wanted = moduleUrl === undefined ? [] : [moduleUrl];
    const known = this.#known.get(key);
    const made = await known?.made.catch(() => undefined);
    if (made !== undefined && wanted.every((url) => made.has(url))) return made;
    const modules = [...new Set([...registeredModules(), ...wanted])].toSorted();
    // The search used the same modules, so another one would find no more.
    if (made !== undefined && known?.modules.join("\n") === modules.join("\n")) return made;
    // Another caller noticed it first.
    if (this.#known.get(key) !== known)
      return this.for({ workingDir, excludes }, moduleUrl, folder);
    const request = { workingDir, excludes, modules, currentDirectory: process.cwd() };
    const next = collectInThread(request).then((collected) => new CodePackage(collected, folder));
    this.#known.set(key, { modules, made: next });
    return next;
  }

  /** Forgets a package, so that the next caller gets a new one. */
  async forget(code: CodePackage): Promise<void> {
    for (const [key, { made }] of this.#known) {
      if ((await made.catch(() => undefined)) === code) this.#known.delete(key);
    }
  }
}

export class CodePackage {
  /** Whether a host with the package can import that module. */
  readonly has: (moduleUrl: string) => boolean;
  readonly #collected: Collected;
  readonly #folder: string;
  #code: Promise<ShippedCode> | undefined;
  #archive: Promise<string> | undefined;

  constructor(collected: Collected, folder: string) {
    this.#collected = collected;
    this.has = modulesIn(collected);
    this.#folder = folder;
  }

  /** @throws RaySystemError when that machine cannot use it */
  checkFor(nodeName: string, { platform, maxPackageBytes }: CodeOffer): void {
    const { manifest, addons } = this.#collected;
    const bytes = bytesOf(manifest);
    if (bytes > maxPackageBytes) {
      throw new RaySystemError(
        `the code has ${sizeText(bytes)}, and node ${nodeName} takes ${sizeText(maxPackageBytes)} at most. Name what need not go in runtimeEnv.excludes; the largest: ${largest(manifest.files)}`,
      );
    }
    for (const { name, targets } of addons) {
      if (targets.includes(platform)) continue;
      throw new RaySystemError(
        `the npm package ${name} has native code for ${[...new Set(targets)].join(", ")}, and node ${nodeName} is ${platform}`,
      );
    }
  }

  /**
   * Returns its id; the first call reads the files. Rejects with CodeChangedError, or
   * RaySystemError.
   */
  code(): Promise<ShippedCode> {
    this.#code ??= this.#readAll();
    return this.#code;
  }

  /**
   * Returns the compressed package in portions. Rejects with CodeChangedError, or RaySystemError.
   */
  async portions(): Promise<Readable> {
    this.#archive ??= this.#compress().catch((error: unknown) => {
      this.#archive = undefined;
      throw error;
    });
    const path = await this.#archive;
    if (existsSync(path)) return createReadStream(path, { highWaterMark: sentBytes });
    // Somebody cleared the folder for temporary files.
    this.#archive = undefined;
    return this.portions();
  }

  async #readAll(): Promise<ShippedCode> {
    const { rootUrl, directory, runtime } = this.#collected;
    const hash = createHash("sha256");
    try {
      for await (const piece of this.#bytes()) hash.update(piece);
    } catch (error) {
      throw unreadable(asError(error));
    }
    return { id: hash.digest("hex"), rootUrl, directory, runtime };
  }

  async #compress(): Promise<string> {
    const { id } = await this.code();
    const path = join(this.#folder, `code-${randomUUID()}.gz`);
    const hash = createHash("sha256");
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      await pipeline(
        Readable.from(this.#bytes()),
        async function* (pieces: AsyncIterable<Buffer>) {
          for await (const piece of pieces) {
            hash.update(piece);
            yield piece;
          }
        },
        // The network is faster than thorough compression.
        createGzip({ level: 1 }),
        createWriteStream(path, { mode: 0o600 }),
      );
      if (hash.digest("hex") === id) return path;
    } catch (error) {
      await rm(path, { force: true });
      throw unreadable(asError(error));
    }
    await rm(path, { force: true });
    throw new CodeChangedError();
  }

  #bytes(): AsyncGenerator<Buffer, void> {
    const { root, manifest } = this.#collected;
    return packageBytes(manifest, (path) => join(root, path));
  }
}

/** The files have changed since their id was computed. */
export class CodeChangedError extends RaySystemError {
  constructor(cause?: Error) {
    super("the code changed while it was packed", { cause });
  }
}

function unreadable(error: NodeJS.ErrnoException): RaySystemError {
  if (error.code === "ENOENT" || error instanceof BadPackageError) {
    return new CodeChangedError(error);
  }
  return new RaySystemError(`the code cannot be packed: ${error.message}`, { cause: error });
}

function sizeText(bytes: number): string {
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** Lists the largest parts, by npm packages or by entries of the root. */
function largest(files: Collected["manifest"]["files"]): string {
  const sizes = new Map<string, number>();
  for (const [path, size] of files) {
    const name =
      /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? path.split("/", 2).join("/");
    sizes.set(name, (sizes.get(name) ?? 0) + size);
  }
  return [...sizes]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, 3)
    .map(([name, size]) => `${name} (${sizeText(size)})`)
    .join(", ");
}
