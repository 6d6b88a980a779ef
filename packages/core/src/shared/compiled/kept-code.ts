/**
 * Loads the one file of the built package with what V8 has compiled of it in an earlier program.
 *
 * V8 reads all of the file, and then compiles each function when it is first called: some 25 ms
 * of each program, and 500 functions of each host until its first answer. Node's own cache, where
 * it is on, holds what is compiled when a file is loaded, before any of its functions ran. The
 * file's code is therefore one function (packages/one-file.ts), which is compiled here as a
 * script. What is compiled of it a while later is kept in a file, for the programs and the hosts
 * to come. Threads get it from their driver (handed-code.ts).
 *
 * It runs before anything else of this package, and is part of the file that loads it.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { getCompileCacheDir } from "node:module";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Script } from "node:vm";
import { hasGlobalsOfNode } from "../machine/globals.ts";
import { insideBundle } from "../machine/inside-bundle.ts";
import { codeDirectory } from "./code-directory.ts";
import { type Found, handedTo, handing, type Place } from "./handed-code.ts";
import type { LoadedCode } from "./keep-compiled.ts";
import { ageMs, foldersBeside, readKept, sweep, writeKept } from "./kept-file.ts";

/** The function stands between these in the file. */
const [begin, end] = ["(function(", "})(import.meta.url,"] as const;

/**
 * Kept code that V8 refuses, as it has other flags, is replaced only when it is older. Otherwise
 * programs that set flags at run time, and those that do not, would replace it in turns.
 */
const refusedMs = 24 * 3_600_000;

type Import = (place: string) => Promise<unknown>;

/** The function of the file. */
type Whole = (url: string, importModule: Import, loaded: LoadedCode) => readonly unknown[];

export interface Loader {
  /** Its own URL, in the folder `kept` beside the file. */
  readonly url: string | undefined;
  /** The file's name, which the loader has, too. */
  readonly name: string;
  /** Imports a package, or a module by its URL. */
  readonly importModule: Import;
  /** The place among the exports of what a thread calls that begins with the loader. */
  readonly threadMain: number;
}

/**
 * Returns the exports of the file, in the order of its list.
 *
 * @throws Error where a bundler has taken the loader away from the file
 */
export function loadKept({ url = "", name, importModule, threadMain }: Loader): readonly unknown[] {
  if (!URL.canParse(url) || !new URL(url).pathname.endsWith(`/kept/${name}`))
    throw new Error(insideBundle(url === "" ? "a bundle" : `the bundle ${url}`));
  const own = new URL(url);
  const file = new URL(`../${name}`, own);
  const isMain = isMainFile(own);
  const { whole, ...loaded } = isOfNode()
    ? compiled(file, own, isMain ? "thread" : kindOfMain())
    : evaluated(file);
  const all = whole(
    file.href,
    (asked) => importModule(asked.startsWith(".") ? new URL(asked, file).href : asked),
    loaded,
  );
  if (isMain) (all[threadMain] as () => void)();
  return all;
}

type Kind = "thread" | "process" | "driver";

/** Whether this thread begins with the loader itself: it opens no other file of the package. */
function isMainFile(own: URL): boolean {
  const main = process.argv[1] ?? "";
  // Another copy of this package may have a file of that name, too.
  return basename(main) === basename(own.pathname) && main === fileURLToPath(own);
}

function kindOfMain(): Kind {
  const main = basename(process.argv[1] ?? "");
  if (main === "thread-main.js") return "thread";
  return main === "process-main.js" ? "process" : "driver";
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

function compiled(file: URL, own: URL, kind: Kind): Loaded {
  const handed = kind === "thread" && !isOff() ? handedTo(file.href) : undefined;
  const { source, place, kept } = handed ?? found(file, kind);
  const { code, columnOffset } = functionIn(source);
  const vm = process.getBuiltinModule("node:vm");
  const script = new vm.Script(code, {
    filename: file.href,
    columnOffset,
    ...(kept === undefined ? {} : { cachedData: kept.code }),
  });
  const whole = script.runInThisContext() as Whole;
  const isRefused = script.cachedDataRejected === true;
  const isKept = kept !== undefined && !isRefused && !kept.isPartial;
  const forThreads = handing(file, () => placeOf(file, "thread"));
  const loaded = { whole, threadEntry: own, forThreads };
  if (isKept || place === undefined || isMeasured(kind)) return loaded;
  const hasPart = kept !== undefined && !isRefused;
  return {
    ...loaded,
    keep(isEarly) {
      if (isEarly && hasPart) return;
      // The file may be another by now, and to hold its bytes until then takes memory.
      keep({ file, place, code, script, isRefused, isPartial: isEarly });
    },
  };
}

/** Returns what is there for a program, a host that is a process, or a thread that got nothing. */
function found(file: URL, kind: Kind): Found {
  const source = readFileSync(file);
  const place = placeOf(file, kind);
  const kept = place === undefined ? undefined : readKept(place.path, source);
  return {
    source,
    ...(place === undefined ? {} : { place }),
    ...(kept === undefined ? {} : { kept }),
  };
}

interface ToKeep {
  readonly file: URL;
  readonly place: Place;
  readonly code: string;
  readonly script: Script;
  /** Whether V8 has refused what was kept. */
  readonly isRefused: boolean;
  readonly isPartial: boolean;
}

function keep({ file, place, code, script, isRefused, isPartial }: ToKeep): void {
  const { path, tag } = place;
  try {
    const source = readFileSync(file);
    if (functionIn(source).code !== code) return;
    if (isRefused ? ageMs(path) < refusedMs : isThere(path, source, isPartial)) return;
    if (tag !== undefined) {
      // Flags may have been set meanwhile.
      if (tagOfV8() !== tag || codeDirectory().directory === undefined) return;
      mkdirSync(dirname(path), { mode: 0o700, recursive: true });
    }
    for (const folder of tag === undefined ? [dirname(path)] : foldersBeside(path)) sweep(folder);
    writeKept(path, source, { isPartial, compiled: () => script.createCachedData() });
  } catch {
    // It starts without it, too: a full disk, or a host that may not write here.
  }
}

/** Whether another program has kept as much by now. */
function isThere(path: string, source: Uint8Array, isPartial: boolean): boolean {
  const now = readKept(path, source);
  return now !== undefined && (isPartial || !now.isPartial);
}

/** Returns the function's text, and where in the first line it begins. */
function functionIn(source: Uint8Array): {
  readonly code: string;
  readonly columnOffset: number;
} {
  const { buffer, byteOffset, length } = source;
  const text = Buffer.from(buffer, byteOffset, length).toString("latin1");
  const from = text.indexOf(begin);
  return { code: text.slice(from, text.lastIndexOf(end) + "})".length), columnOffset: from };
}

/**
 * Returns where the code is kept, or undefined where nothing is to be kept. Threads, processes and
 * programs call other functions, and each has a file for its kind.
 */
function placeOf(file: URL, kind: Kind): Place | undefined {
  if (isOff()) return undefined;
  const name = `${basename(file.pathname)}.${kind}.rayling`;
  if ((process.env["NODE_COMPILE_CACHE"] ?? "") !== "") {
    // Node's directory is that of one user, one version and one set of V8's flags.
    const ofNode = getCompileCacheDir();
    return ofNode === undefined ? undefined : { path: join(ofNode, name) };
  }
  const { directory } = codeDirectory(false);
  if (directory === undefined) return undefined;
  const tag = tagOfV8();
  const folder = `${process.version}-${process.arch}-${tag}`;
  return { path: join(directory, folder, name), tag };
}

function isOff(): boolean {
  const { NODE_V8_COVERAGE: coverage = "", NODE_DISABLE_COMPILE_CACHE: off } = process.env;
  // Code compiled for coverage is slower, and V8 accepts it in programs without coverage, too.
  return coverage !== "" || off !== undefined;
}

/** Whether a test runner may measure coverage here, by an inspector that this code cannot see. */
function isMeasured(kind: Kind): boolean {
  if (kind !== "driver") return false;
  return process.env["NODE_TEST_CONTEXT"] !== undefined || "__vitest_worker__" in globalThis;
}

/** Returns the head of what V8 compiles: to ask for its tag loads a module that takes 2 ms. */
function tagOfV8(): string {
  const { Script } = process.getBuiltinModule("node:vm");
  return new Script("0").createCachedData().toString("hex", 0, 20);
}
