/**
 * The remote classes and functions of this thread, by the place of their `remote()` call.
 *
 * Driver and host run the same module and reach the same calls, so a host finds a class without any
 * transfer of code. A key identifies the call (its place in its file, and its callers while the
 * module loaded), the index among the results of that call, their count, and the hashes of the
 * files. A difference in any of these is refused with an error that names it: another function
 * never runs. `module` and `exportName` identify a remote regardless of its call.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { currentLoading } from "../../caller/current.ts";
import type { ExportName, RemoteKey, RemotePlace } from "../../rpc/remote-key.ts";
import { hereOf } from "../../shared/code-roots.ts";
import { InvalidOptionError, RemoteNotRegisteredError } from "../../shared/errors.ts";
import { refuseRuntime } from "../../shared/machine/refuse-place.ts";
import { ownFolder } from "../../shared/own-files.ts";
import { threadSlot } from "../../shared/thread-slot.ts";
import { contentHash } from "./content-hash.ts";
import {
  type CallChain,
  callChain,
  chainOf,
  chainText,
  isUnmapped,
  type Place,
  placeText,
} from "./remote-call-place.ts";
import { present } from "../../shared/errors/internal.ts";

type Exports = Readonly<Record<string, unknown>>;

/** One `remote()` call, reached by one chain of callers; it may run several times. */
interface Site {
  /** Returns the hashes of its files, in the order of its places. */
  readonly files: () => string;
  /** The results that other runtimes find here, in order of creation. */
  readonly targets: { readonly target: unknown; readonly name: string }[];
  /**
   * The number of results when driver code was reached, and when the module had loaded: both sides
   * compare them.
   */
  readonly counts: number[];
  /** The number of later results, from calls that this host ran; only this host uses them. */
  late: number;
}

/** A module that has called `remote()`, or that this host has loaded. */
interface ModuleRecord {
  readonly sites: Map<string, Site>;
  isLoaded: boolean;
  exports: Exports | undefined;
}

interface Registry {
  isHost: boolean;
  /** The number of remotes; a search through all of them is repeated when it grows. */
  count: number;
  readonly modules: Map<string, ModuleRecord>;
  /** URLs of modules that are imported by name. */
  readonly added: Set<string>;
  /** Named remotes, by module and export name. */
  readonly named: Map<string, unknown>;
  /** The class or function of each object of the API. */
  readonly targets: WeakMap<object, unknown>;
  /** Hashes of files, by the URL at the driver. */
  readonly files: Map<string, string>;
  /** Sites that registered since driver code was last reached. */
  readonly growing: Set<Site>;
}

const registry: Registry = threadSlot("registry", () => ({
  isHost: false,
  count: 0,
  modules: new Map(),
  added: new Set(),
  named: new Map(),
  targets: new WeakMap(),
  files: new Map(),
  growing: new Set(),
}));

export interface Registration {
  readonly name: string;
  /** The module that a host imports to find it. */
  readonly moduleUrl: string;
  /**
   * Returns the key for other runtimes. It is computed on use, when the number of its siblings is
   * known.
   */
  key(): RemoteKey;
}

/** The registration of a remote that arrived in a value, with the key that its runtime gave it. */
export function received(key: RemoteKey): Registration {
  const { name, moduleUrl } = key;
  return { name, moduleUrl, key: () => key };
}

/**
 * @param frames the number of frames of this package above the user's `remote()` call
 * @throws RemoteNotRegisteredError when that call is in no file; RaySystemError when it is in a
 * runtime that is not Node; InvalidOptionError when another remote has that name
 */
export function registerRemote(
  target: unknown,
  name: string,
  frames: number,
  named: ExportName | undefined,
): Registration {
  if (named !== undefined) return registerNamed(target, name, named);
  const chain = callChain(frames + 1);
  if ("script" in chain) {
    const { script } = chain;
    // Other runtimes do not say where a call stands.
    refuseRuntime();
    throw new RemoteNotRegisteredError(name, script === "" ? "unknown" : script, inNoFile);
  }
  const { places } = chain;
  const { moduleUrl } = present(places.at(-1), "place of a call");
  if (evaluated.test(moduleUrl)) throw new RemoteNotRegisteredError(name, moduleUrl, inNoFile);
  const record = recordOf(moduleUrl, chain.isEsm);
  const site = chainText(places);
  const known = siteOf(record, site, places);
  const { targets, counts } = known;
  const index = targets.length + known.late;
  if (isOfLoading(chain)) {
    targets.push({ target, name });
    registry.count += 1;
    registry.growing.add(known);
  } else {
    known.late += 1;
  }
  const count = (): number => counts.find((one) => one > index) ?? targets.length + known.late;
  return {
    name,
    moduleUrl,
    key: () => ({ moduleUrl, name, site, files: known.files(), index, count: count() }),
  };
}

/** Node's name for an ES module of `node -e` or standard input, beside the files of its folder. */
const evaluated = /\/\[eval\d*\]$/;

const inNoFile =
  "remote() was not called in a module file, so a worker has nothing to import: put what stands in node -e, on standard input or in the REPL into a file";

function registerNamed(
  target: unknown,
  name: string,
  { moduleUrl, exportName }: ExportName,
): Registration {
  const text = exportText(moduleUrl, exportName);
  const known = registry.named.get(text);
  if (known !== undefined && known !== target) {
    throw new InvalidOptionError(
      "exportName",
      `${name}: another one was named ${exportName} of ${moduleUrl} before`,
    );
  }
  registry.named.set(text, target);
  registry.count += 1;
  recordOf(moduleUrl, false);
  return { name, moduleUrl, key: () => ({ moduleUrl, name, exportName }) };
}

/** Records the target of a remote, so that an exported remote is found by its name. */
export function noteTarget(made: object, target: unknown): void {
  registry.targets.set(made, target);
}

/** Records that one remote is another one with different options. */
export function noteSame(made: object, other: object): void {
  registry.targets.set(made, registry.targets.get(other));
}

/**
 * Marks this thread as a host: other runtimes find remotes that register while modules load;
 * remotes that a running call makes are its own.
 */
export function registersForOthers(): void {
  registry.isHost = true;
}

/**
 * Closes the counts when driver code is reached: a host stops there, too, with as many results of
 * each `remote()` call.
 */
export function closeCounts(): void {
  if (registry.growing.size === 0) return;
  for (const { targets, counts } of registry.growing) counts.push(targets.length);
  registry.growing.clear();
}

/** @param exports undefined for a module that stopped at driver code */
export function noteLoaded(moduleUrl: string, exports: Exports | undefined): void {
  loaded(recordOf(moduleUrl, false), exports);
}

/** Returns the modules that have called `remote()` so far, and those that were added. */
export function registeredModules(): readonly string[] {
  return [...new Set([...registry.modules.keys(), ...registry.added])];
}

/**
 * Adds a module that hosts import by its URL: it is part of the code that other machines get.
 * Idempotent.
 */
export function addModule(moduleUrl: string): void {
  registry.added.add(moduleUrl);
}

export type Found = { readonly target: unknown } | { readonly why: string };

/** Returns undefined when nothing of that place is here; the module may not be loaded yet. */
export function findRemote(key: RemoteKey): Found | undefined {
  if ("exportName" in key) return findExport(key);
  const { moduleUrl, name, site, index, count } = key;
  const record = registry.modules.get(moduleUrl);
  const known = record?.sites.get(site);
  if (record === undefined || known === undefined) return undefined;
  const { targets, counts } = known;
  if (!counts.includes(count) && (record.isLoaded || count !== targets.length)) {
    return record.isLoaded ? { why: otherCount(key, targets.length) } : undefined;
  }
  if (key.files !== known.files()) return { why: changedFile(key) ?? otherFiles };
  const found = targets[index];
  if (found !== undefined && found.name !== name) return { why: otherName(key, found.name) };
  return found;
}

/** Returns the reason, if known, why a remote is missing although its module has loaded. */
export function whyMissing(key: RemoteKey): string | undefined {
  if ("exportName" in key)
    return `its module exports no class, function or remote as "${key.exportName}"`;
  return changedFile(key);
}

/**
 * Returns a reason if the remote's text is in no file that could be compared: a worker may have
 * another text in that place.
 */
export function unmappedPlace(key: RemoteKey): string | undefined {
  if (!("site" in key) || !chainOf(key.site).some(isUnmapped)) return undefined;
  return `the driver evaluates another text than that of the file${placeOf(key)}, and nothing says which place is which. Start it with node --enable-source-maps. ${naming}`;
}

/** Whether its `remote()` call stands in a function that code of another place called. */
export function isCalledFromElsewhere(key: RemoteKey): boolean {
  return "site" in key && chainOf(key.site).length > 1;
}

/** Returns ` (file:line:column)` of its `remote()` call for a message, or nothing. */
export function placeOf(key: RemoteKey): string {
  const [place] = "site" in key ? chainOf(key.site) : [];
  return place === undefined ? "" : ` (${placeText(place)})`;
}

function findExport({ moduleUrl, exportName }: ExportName): Found | undefined {
  // This package's own modules are evaluated before the places of the driver's code are known.
  const target =
    registry.named.get(exportText(moduleUrl, exportName)) ??
    registry.named.get(exportText(hereOf(moduleUrl) ?? "", exportName));
  if (target !== undefined) return { target };
  const exported = exportsOf(moduleUrl)?.[exportName];
  if (typeof exported === "function") return { target: exported };
  if (typeof exported !== "object" || exported === null) return undefined;
  const made = registry.targets.get(exported);
  return made === undefined ? undefined : { target: made };
}

/** Yields the exports of the loaded modules with `remote()` calls. */
export function* moduleExports(): Iterable<readonly [string, Exports]> {
  for (const moduleUrl of registry.modules.keys()) {
    const exports = exportsOf(moduleUrl);
    if (exports !== undefined) yield [moduleUrl, exports];
  }
}

/** Returns the number of remotes that are known here. */
export function remoteCount(): number {
  return registry.count;
}

interface SeenRemote {
  readonly moduleUrl: string;
  /** The remote: its site, or `#` and its name. */
  readonly seenBy: string;
  readonly target: unknown;
}

/**
 * Yields one remote of each place, for a search of its surroundings; remotes of one place see the
 * same module.
 */
export function* remotesSeen(): Iterable<SeenRemote> {
  for (const [moduleUrl, { sites }] of registry.modules) {
    for (const [seenBy, { targets }] of sites) {
      const [first] = targets;
      if (first !== undefined) yield { moduleUrl, seenBy, target: first.target };
    }
  }
  for (const [text, target] of registry.named) {
    const at = text.lastIndexOf("#");
    yield { moduleUrl: text.slice(0, at), seenBy: text.slice(at), target };
  }
}

function recordOf(moduleUrl: string, isEsm: boolean): ModuleRecord {
  let record = registry.modules.get(moduleUrl);
  if (record === undefined) {
    record = { sites: new Map(), isLoaded: false, exports: undefined };
    registry.modules.set(moduleUrl, record);
    // A module that another loader has loaded would be loaded a second time.
    if (isEsm) void watch(moduleUrl, record);
  }
  return record;
}

function siteOf({ sites }: ModuleRecord, text: string, places: readonly Place[]): Site {
  let site = sites.get(text);
  if (site === undefined) {
    let hashes: string | undefined;
    const files = (): string =>
      (hashes ??= places.map(({ moduleUrl }) => fileHash(moduleUrl)).join());
    site = { files, targets: [], counts: [], late: 0 };
    sites.set(text, site);
    // A file of the user's may change as soon as it is loaded.
    if (!places.every(({ moduleUrl }) => moduleUrl.startsWith(ownFolder.href))) files();
  }
  return site;
}

function isOfLoading({ isEvaluating }: CallChain): boolean {
  if (!registry.isHost) return true;
  const loading = currentLoading();
  return loading === undefined ? isEvaluating : !loading.isOver();
}

/**
 * The module is loading right now, so this import starts nothing: it settles when the load ends, or
 * never (a driver that waits).
 */
async function watch(moduleUrl: string, record: ModuleRecord): Promise<void> {
  try {
    loaded(record, (await import(hereOf(moduleUrl) ?? moduleUrl)) as Exports);
  } catch {
    // The importer of the module gets this error; here it only means that no classes are known.
  }
}

function loaded(record: ModuleRecord, exports: Exports | undefined): void {
  closeCounts();
  record.isLoaded = true;
  record.exports ??= exports;
}

function exportsOf(moduleUrl: string): Exports | undefined {
  const known = registry.modules.get(moduleUrl)?.exports;
  if (known !== undefined) return known;
  const here = hereOf(moduleUrl);
  const common = here === undefined ? undefined : createRequire(here).cache[fileURLToPath(here)];
  const exports: unknown = common?.loaded === true ? common.exports : undefined;
  return typeof exports === "object" && exports !== null ? (exports as Exports) : undefined;
}

/** Returns the hash of the local copy of a file. */
function fileHash(moduleUrl: string): string {
  let hash = registry.files.get(moduleUrl);
  if (hash === undefined) {
    hash = hashOf(hereOf(moduleUrl) ?? moduleUrl);
    registry.files.set(moduleUrl, hash);
  }
  return hash;
}

function hashOf(url: string): string {
  try {
    return contentHash(readFileSync(fileURLToPath(url)));
  } catch {
    return "unreadable";
  }
}

function changedFile({ site, files }: RemotePlace): string | undefined {
  const hashes = files.split(",");
  const changed = chainOf(site).find(
    ({ moduleUrl }, index) => fileHash(moduleUrl) !== hashes[index],
  );
  if (changed === undefined) return undefined;
  return `${fileURLToPath(changed.moduleUrl)} is not the file that the driver has loaded: it was changed since then, or this machine has another version of it. Start the driver again; on other machines, runtimeEnv: { workingDir: true } brings the driver's own files`;
}

function exportText(moduleUrl: string, exportName: string): string {
  return `${moduleUrl}#${exportName}`;
}

const otherFiles = "the files that its key names are not those of its remote() call";

const naming =
  "If that depends on external data, name each: remote(target, { module: import.meta.url, exportName })";

function otherCount(key: RemotePlace & RemoteKey, ours: number): string {
  return `its remote() call${placeOf(key)} has made ${key.count} where it was called, and ${ours} in the worker, so which is which cannot be told. ${naming}`;
}

function otherName(key: RemoteKey, name: string): string {
  return `its remote() call${placeOf(key)} has made ${name} in the worker. ${naming}`;
}
