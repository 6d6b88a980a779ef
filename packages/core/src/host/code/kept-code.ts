/**
 * Loads the one file of the built package with what an earlier host has compiled of it.
 *
 * Node's own cache of compiled code holds what V8 has compiled when a file is loaded, and that is
 * not what its functions do: each is compiled when it is first called, 500 of them until the first
 * answer of a host. The file's code is therefore one function (packages/one-file.ts), which is
 * compiled here by itself, and kept beside Node's cache after the first call. Imports of the file
 * get what that function returns.
 *
 * It runs before anything else of this package, and so imports nothing of it.
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { getCompileCacheDir, registerHooks } from "node:module";
import { basename, join } from "node:path";
import { Script } from "node:vm";

/** The function stands between these in the file. */
const [begin, end] = ["(function(", "})(import.meta.url,"] as const;

/** Where the file finds its function, in place of its own text. */
const slot: unique symbol = Symbol.for("rayling.kept-code") as never;

export class KeptCode {
  readonly #file: URL;
  /** Undefined: Node's cache is turned off. */
  readonly #place: string | undefined;
  /** There until its compiled code is kept. */
  #script: Script | undefined;

  /** @param file as the build has written it */
  constructor(file: URL) {
    this.#file = file;
    // The directory is that of one user, one version and one set of V8's flags.
    const directory = getCompileCacheDir();
    this.#place =
      directory === undefined ? undefined : join(directory, `${basename(file.pathname)}.rayling`);
  }

  /** Returns the exports of the file. */
  async load(): Promise<unknown> {
    const text = readFileSync(this.#file, "latin1");
    const from = text.indexOf(begin);
    const to = text.lastIndexOf(end) + "})".length;
    const cachedData = this.#kept();
    const script = new Script(text.slice(from, to), {
      filename: this.#file.href,
      columnOffset: from,
      ...(cachedData === undefined ? {} : { cachedData }),
    });
    if (cachedData === undefined || script.cachedDataRejected === true) this.#script = script;
    const holder = globalThis as { [slot]?: unknown };
    holder[slot] = script.runInThisContext();
    const source = `${text.slice(0, from)}globalThis[Symbol.for("rayling.kept-code")]${text.slice(to)}`;
    const hooks = registerHooks({
      load: (url, context, next) =>
        url === this.#file.href
          ? { format: "module", source, shortCircuit: true }
          : next(url, context),
    });
    try {
      return await import(this.#file.href);
    } finally {
      hooks.deregister();
      delete holder[slot];
    }
  }

  /** Keeps what is compiled by now for the hosts to come, unless another host has done so. */
  keep(): void {
    const script = this.#script;
    this.#script = undefined;
    if (script === undefined || this.#place === undefined) return;
    const part = `${this.#place}.${process.pid}.${process.hrtime.bigint()}`;
    try {
      if (script.cachedDataRejected !== true && existsSync(this.#place)) return;
      writeFileSync(part, script.createCachedData(), { mode: 0o600 });
      renameSync(part, this.#place);
    } catch {
      // Hosts start without it, too: a full disk, or a host that may not write here.
    }
  }

  #kept(): Buffer | undefined {
    if (this.#place === undefined) return undefined;
    try {
      return readFileSync(this.#place);
    } catch {
      return undefined;
    }
  }
}
