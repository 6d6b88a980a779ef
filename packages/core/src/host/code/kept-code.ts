/**
 * Loads the one file of the built package with what an earlier host has compiled of it.
 *
 * Node's own cache is written when V8 has compiled the outermost code of a file. V8 compiles a
 * function when it is first called, so these are not in the cache: 500 of them until the first
 * answer of a host. The file's code is therefore one function (packages/one-file.ts), which is
 * compiled here as a script. What is compiled of it soon after the first call is kept in a file
 * beside Node's cache. Imports of the built file get what the function returns.
 *
 * It runs before anything else of this package, and so imports nothing of it.
 */
import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { getCompileCacheDir, registerHooks } from "node:module";
import { basename, join } from "node:path";
import { Script } from "node:vm";

/** The function stands between these in the file. */
const [begin, end] = ["(function(", "})(import.meta.url,"] as const;

/** Where the file finds its function, in place of its own text. */
const slot: unique symbol = Symbol.for("rayling.kept-code") as never;

/** Room in front of the code, for its length: V8 reads code at multiples of 8. */
const headBytes = 64;

export class KeptCode {
  readonly #file: URL;
  /** Undefined: Node's cache is turned off. */
  readonly #place: string | undefined;
  /** There until its compiled code is kept. */
  #unkept: { readonly script: Script; readonly source: Buffer } | undefined;

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
    const source = readFileSync(this.#file);
    const text = source.toString("latin1");
    const from = text.indexOf(begin);
    const to = text.lastIndexOf(end) + "})".length;
    const cachedData = this.#kept(source);
    const script = new Script(text.slice(from, to), {
      filename: this.#file.href,
      columnOffset: from,
      ...(cachedData === undefined ? {} : { cachedData }),
    });
    const holder = globalThis as { [slot]?: unknown };
    holder[slot] = script.runInThisContext();
    const shim = `${text.slice(0, from)}globalThis[Symbol.for("rayling.kept-code")]${text.slice(to)}`;
    const isNew = cachedData === undefined || script.cachedDataRejected === true;
    const hooks = registerHooks({
      load: (url, context, next) => {
        if (url !== this.#file.href) return next(url, context);
        // Code that has loaded the file before this, such as a preload, has it already, and the
        // function does not run.
        if (isNew) this.#unkept = { script, source };
        return { format: "module", source: shim, shortCircuit: true };
      },
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
    if (this.#unkept === undefined || this.#place === undefined) return;
    const { script, source } = this.#unkept;
    this.#unkept = undefined;
    if (this.#kept(source) !== undefined && script.cachedDataRejected !== true) return;
    const part = `${this.#place}.${process.pid}.${process.hrtime.bigint()}`;
    try {
      writeWhole(part, keptOf(script.createCachedData(), source));
      renameSync(part, this.#place);
    } catch {
      // Hosts start without it, too: a full disk, or a host that may not write here.
      removed(part);
    }
  }

  /** Returns the code that is kept of that source, if it is whole. */
  #kept(source: Buffer): Buffer | undefined {
    if (this.#place === undefined) return undefined;
    try {
      return codeOf(readFileSync(this.#place), source);
    } catch {
      return undefined;
    }
  }
}

/**
 * Returns the code twice, and the source that it was compiled from. V8 compares neither: it would
 * run the code of another source of the same length, and damaged code ends the process. A hash of
 * our own would take longer in a thread that has just begun.
 */
function keptOf(code: Buffer, source: Buffer): Buffer {
  const head = Buffer.alloc(headBytes);
  head.write(`${code.length}`, "latin1");
  return Buffer.concat([head, code, code, source]);
}

function codeOf(kept: Buffer, source: Buffer): Buffer | undefined {
  const length = Number.parseInt(kept.toString("latin1", 0, headBytes), 10);
  const [second, last] = [headBytes + length, headBytes + 2 * length];
  if (!(length > 0) || kept.length !== last + source.length) return undefined;
  const code = kept.subarray(headBytes, second);
  const isWhole = code.equals(kept.subarray(second, last)) && source.equals(kept.subarray(last));
  return isWhole ? code : undefined;
}

/** Returns when it is on the disk: a file that is renamed before that may be found empty later. */
function writeWhole(path: string, bytes: Buffer): void {
  const file = openSync(path, "wx", 0o600);
  try {
    for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function removed(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // It is in the way of nobody.
  }
}
