/**
 * Loads the one file of the built package with what V8 has compiled of it in an earlier program.
 *
 * V8 reads all of the file, and then compiles each function when it is first called: some 25 ms
 * of each program, and 500 functions of each host until its first answer. Node's own cache, where
 * it is on, holds what is compiled when a file is loaded, before any of its functions ran. The
 * file's code is therefore one function (packages/one-file.ts), which is compiled here as a
 * script. What is compiled of it a while later is kept in a file, for the programs and the hosts
 * to come.
 *
 * It runs before anything else of this package, and is part of the file that loads it.
 */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { getCompileCacheDir } from "node:module";
import { basename, dirname, join } from "node:path";
import { hasGlobalsOfNode } from "../machine/globals.ts";
import { codeDirectory } from "./code-directory.ts";
import type { LoadedCode } from "./keep-compiled.ts";

/** The function stands between these in the file. */
const [begin, end] = ["(function(", "})(import.meta.url,"] as const;

/** Room in front of the code, for its length: V8 reads code at multiples of 8. */
const headBytes = 64;

/** Nobody writes for so long. */
const leftMs = 600_000;

type Import = (place: string) => Promise<unknown>;

/** The function of the file. */
type Whole = (url: string, importModule: Import, loaded: LoadedCode) => readonly unknown[];

/**
 * Returns the exports of the file, in the order of its list.
 *
 * @param file as the build has written it
 * @param importModule imports a package, or a module by its URL
 */
export function loadKept(file: URL, importModule: Import): readonly unknown[] {
  const { whole, ...loaded } = isOfNode() ? compiled(file) : evaluated(file);
  return whole(
    file.href,
    (asked) => importModule(asked.startsWith(".") ? new URL(asked, file).href : asked),
    loaded,
  );
}

interface Loaded extends LoadedCode {
  readonly whole: Whole;
}

/** Scripts have the globals of Node, and other runtimes have no code to keep. */
function isOfNode(): boolean {
  const { bun, deno } = process.versions;
  return bun === undefined && deno === undefined && hasGlobalsOfNode();
}

function evaluated(file: URL): Loaded {
  const { code } = functionIn(readFileSync(file));
  // oxlint-disable-next-line no-eval -- it is this package's own text
  return { whole: globalThis.eval(`${code}\n//# sourceURL=${file.href}`) as Whole };
}

function compiled(file: URL): Loaded {
  const source = readFileSync(file);
  const { code, columnOffset } = functionIn(source);
  const place = placeOf(file);
  const cachedData = place === undefined ? undefined : codeIn(place, source);
  const { Script } = process.getBuiltinModule("node:vm");
  const script = new Script(code, {
    filename: file.href,
    columnOffset,
    ...(cachedData === undefined ? {} : { cachedData }),
  });
  const whole = script.runInThisContext() as Whole;
  const isKept = cachedData !== undefined && script.cachedDataRejected !== true;
  if (isKept || place === undefined) return { whole };
  return {
    whole,
    keep() {
      const isThereNow = cachedData === undefined && codeIn(place, source) !== undefined;
      if (!isThereNow) keepCode(place, script.createCachedData(), source);
    },
  };
}

/** Returns the function's text, and where in the first line it begins. */
function functionIn(source: Buffer): { readonly code: string; readonly columnOffset: number } {
  const text = source.toString("latin1");
  const from = text.indexOf(begin);
  return { code: text.slice(from, text.lastIndexOf(end) + "})".length), columnOffset: from };
}

/**
 * Returns the file that holds the code, or undefined where nothing is to be kept. Threads,
 * processes and programs call other functions, and each has a file for its kind.
 */
function placeOf(file: URL): string | undefined {
  const kind = /^(thread|process)-main\.js$/.exec(basename(process.argv[1] ?? ""))?.[1] ?? "driver";
  const name = `${basename(file.pathname)}.${kind}.rayling`;
  // Node's directory is that of one user, one version and one set of V8's flags.
  const ofNode = getCompileCacheDir();
  if (ofNode !== undefined) return join(ofNode, name);
  if (process.env["NODE_DISABLE_COMPILE_CACHE"] !== undefined) return undefined;
  const { directory } = codeDirectory();
  if (directory === undefined) return undefined;
  return join(directory, `${process.version}-${process.arch}${flagsTag()}`, name);
}

/** V8 takes no code that was compiled under other flags. To ask it for its own tag takes 2 ms. */
function flagsTag(): string {
  const flags = [process.env["NODE_OPTIONS"] ?? "", ...process.execArgv].join(" ");
  let hash = 0;
  for (let at = 0; at < flags.length; at++) hash = (hash * 31 + flags.charCodeAt(at)) >>> 0;
  return hash === 0 ? "" : `-${hash.toString(16)}`;
}

/**
 * Writes the code twice, and the source that it was compiled from. V8 compares neither: it would
 * run the code of another source of the same length, and damaged code ends the process. A hash of
 * our own would take longer in a thread that has just begun.
 */
function keepCode(place: string, code: Buffer, source: Buffer): void {
  const head = Buffer.alloc(headBytes);
  head.write(`${code.length}`, "latin1");
  const part = `${place}.${process.pid}.${process.hrtime.bigint()}`;
  try {
    mkdirSync(dirname(place), { recursive: true });
    for (const one of partsOf(place)) removed(one);
    writeWhole(part, Buffer.concat([head, code, code, source]));
    renameSync(part, place);
  } catch {
    // It starts without it, too: a full disk, or a host that may not write here.
    removed(part);
  }
}

/** Returns what is left of those who were ended while they wrote. */
function partsOf(place: string): string[] {
  const [folder, start] = [dirname(place), `${basename(place)}.`];
  const parts = readdirSync(folder).filter((name) => name.startsWith(start));
  return parts
    .map((name) => join(folder, name))
    .filter((path) => {
      const written = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
      return written < Date.now() - leftMs;
    });
}

/** Returns the code that is kept there of that source, if it is whole. */
function codeIn(place: string, source: Buffer): Buffer | undefined {
  let kept: Buffer;
  try {
    kept = readFileSync(place);
  } catch {
    return undefined;
  }
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
