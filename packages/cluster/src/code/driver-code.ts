/**
 * One driver's code on an agent's machine: packages that it sends, and packages that are kept while
 * it is connected.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { asError, type CodeRoot, RaySystemError } from "@rayling/core/cluster";
import { type CodeControl, maxCodeOnTheWay, type ShippedCode } from "../contract.ts";
import { shortCode } from "./cache-folders.ts";
import { type CodeCache, isId } from "./code-cache.ts";
import { BadPackageError, bytesOf, checkPath } from "./manifest.ts";
import type { Receiving } from "./receiving.ts";

/** A host's part of the code. */
export interface CodePlace {
  readonly roots: readonly CodeRoot[];
  readonly cwd: string;
  /** Folders that the host must be able to read. */
  readonly folders: readonly string[];
}

export class DriverCode implements CodeControl {
  readonly #cache: CodeCache;
  readonly #tell: (line: string) => void;
  /** Folders of packages that are kept for the driver. */
  readonly #used: Map<string, string> = new Map();
  readonly #receiving: Map<string, Receiving> = new Map();
  /** Ids of packages whose transfer is about to begin. */
  readonly #opening: Set<string> = new Set();
  #isOpen = true;

  constructor(cache: CodeCache, tell: (line: string) => void) {
    this.#cache = cache;
    this.#tell = tell;
  }

  async hasCode(id: string): Promise<boolean> {
    checkId(id);
    const known = this.#used.get(id);
    if (known !== undefined && this.#cache.has(id)) return true;
    const folder = await this.#cache.use(id);
    if (folder === undefined) return false;
    await this.#note(id, folder);
    return true;
  }

  async openCode(id: string): Promise<void> {
    checkId(id);
    const count = this.#receiving.size + this.#opening.size;
    const isKnown = this.#receiving.has(id) || this.#opening.has(id);
    if (isKnown || count >= maxCodeOnTheWay) {
      throw new RaySystemError(
        `code ${shortCode(id)} cannot be sent: too many packages are in transfer`,
      );
    }
    this.#opening.add(id);
    try {
      const receiving = await this.#cache.receive(id);
      if (this.#isOpen) return void this.#receiving.set(id, receiving);
      await receiving.abort("its driver is gone");
    } finally {
      this.#opening.delete(id);
    }
  }

  async writeCode(id: string, portion: Uint8Array): Promise<void> {
    await this.#at(id).write(portion);
  }

  async closeCode(id: string): Promise<void> {
    const receiving = this.#at(id);
    try {
      const manifest = await receiving.end();
      const { length } = manifest.files;
      this.#tell(`took code ${shortCode(id)}: ${length} files, ${bytesOf(manifest)} bytes`);
    } finally {
      this.#receiving.delete(id);
    }
    const folder = await this.#cache.use(id);
    // The transfer counted as a use of its own.
    await this.#release(id);
    if (folder === undefined) throw new RaySystemError(`code ${shortCode(id)} was removed`);
    await this.#note(id, folder);
  }

  async dropCode(id: string): Promise<void> {
    const receiving = this.#receiving.get(id);
    // The driver sends the next package meanwhile.
    this.#receiving.delete(id);
    await receiving?.abort("its driver gave up");
  }

  /**
   * Returns undefined for code that the driver has sent and somebody has removed since.
   *
   * @throws RaySystemError for code that the driver has not sent
   */
  placeOf({ id, rootUrl, directory, runtime }: ShippedCode): CodePlace | undefined {
    const folder = this.#used.get(id);
    if (folder === undefined) throw new RaySystemError(`code ${shortCode(id)} is not here`);
    if (directory !== "") checkPath(directory);
    if (!this.#cache.has(id)) return undefined;
    const here = folderUrl(folder);
    const own = Object.entries(runtime).flatMap(([name, driver]): CodeRoot[] => {
      const place = this.#cache.runtime.get(name);
      return place === undefined ? [] : [{ driver, here: folderUrl(place) }];
    });
    const cwd = join(folder, directory);
    return {
      // The runtime's packages may lie in the driver's folder; the machine's own replace them.
      roots: [...own, { driver: rootUrl, here }],
      cwd: existsSync(cwd) ? cwd : folder,
      folders: [folder, ...this.#cache.runtimeFolders],
    };
  }

  /** Aborts transfers, and releases the driver's packages. A failure is only reported. */
  async end(): Promise<void> {
    this.#isOpen = false;
    const receiving = [...this.#receiving.values()];
    this.#receiving.clear();
    await Promise.all(receiving.map((one) => one.abort("its driver is gone")));
    const used = [...this.#used.keys()];
    this.#used.clear();
    await Promise.all(used.map((id) => this.#release(id)));
  }

  async #note(id: string, folder: string): Promise<void> {
    // Two requests may have come at once, and the driver may be gone by now.
    if (this.#isOpen && !this.#used.has(id)) this.#used.set(id, folder);
    else await this.#release(id);
  }

  /** Only reports a failure: this driver goes, and others go on. */
  async #release(id: string): Promise<void> {
    await this.#cache.release(id).catch((error: unknown) => {
      this.#tell(`code ${shortCode(id)} stays marked as in use: ${asError(error).message}`);
    });
  }

  #at(id: string): Receiving {
    const receiving = this.#receiving.get(id);
    if (receiving === undefined) throw new BadPackageError(`${shortCode(id)} was not begun`);
    return receiving;
  }
}

function folderUrl(folder: string): string {
  return pathToFileURL(`${folder}/`).href;
}

/** The id becomes a part of folder names. */
function checkId(id: unknown): asserts id is string {
  if (typeof id !== "string" || !isId(id)) {
    throw new BadPackageError("its name is not a SHA-256");
  }
}
