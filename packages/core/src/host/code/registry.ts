/**
 * The remote classes and functions of this thread, by the place of their `remote()` call.
 *
 * Driver and host run the same module and come by the same calls; that is how a host finds a class without any code being sent. A key says which call it was
 * (its place in its file, and who called from where while the module loaded), which of those that this call made, how many they were, and what the files were
 * like. What differs in any of that is refused by name: another function is never run. `module` and `exportName` name one whatever called `remote()`.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { currentLoading } from "../../caller/current.ts";
import type { ExportName, RemoteKey, RemotePlace } from "../../rpc/directory.ts";
import { hereOf } from "../../shared/code-roots.ts";
import { InvalidOptionError, RemoteNotRegisteredError } from "../../shared/errors.ts";
import { threadSlot } from "../../shared/thread-slot.ts";
import {
  type CallChain,
  callChain,
  chainOf,
  chainText,
  isUnmapped,
  type Place,
  placeText,
} from "./call-chain.ts";

type Exports = Readonly<Record<string, unknown>>;

/** One `remote()` call, called from one place; it may run several times. */
interface Site {
  /** Hashes of its files, in the order of its places. */
  readonly files: string;
  /** What others find here, in the order in which they were made. */
  readonly targets: { readonly target: unknown; readonly name: string }[];
  /** How many they were when driver code was reached, and when the module had loaded: both sides compare. */
  readonly counts: number[];
  /** How many were made later, by calls that this host ran: they are this host's own. */
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
  /** How many there are; whoever has looked through them all looks again when there are more. */
  count: number;
  readonly modules: Map<string, ModuleRecord>;
  /** By module and name of export, those that were named. */
  readonly named: Map<string, unknown>;
  /** What an object of the API was made of. */
  readonly targets: WeakMap<object, unknown>;
  /** Hashes of files, by the URL that the driver knows. */
  readonly files: Map<string, string>;
  /** Where something registered since driver code was reached last. */
  readonly growing: Set<Site>;
}

const registry: Registry = threadSlot("registry", () => ({
  isHost: false,
  count: 0,
  modules: new Map(),
  named: new Map(),
  targets: new WeakMap(),
  files: new Map(),
  growing: new Set(),
}));

export interface Registration {
  readonly name: string;
  /** What a host imports to find it. */
  readonly moduleUrl: string;
  /** How others find it; asked when it is used, for then it is known how many were made beside it. */
  key(): RemoteKey;
}

/**
 * @param frames how many frames of this package stand above the user's `remote()` call
 * @throws RemoteNotRegisteredError where that call is in no file; InvalidOptionError when another has that name
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
    throw new RemoteNotRegisteredError(
      name,
      script === "" ? "unknown" : script,
      "remote() was not called in a module file, so a worker has nothing to import",
    );
  }
  const { places } = chain;
  const { moduleUrl } = places.at(-1) as Place;
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
  const { files } = known;
  const count = (): number => counts.find((one) => one > index) ?? targets.length + known.late;
  return {
    name,
    moduleUrl,
    key: () => ({ moduleUrl, name, site, files, index, count: count() }),
  };
}

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

/** So that an export that is a remote is found by its name. */
export function noteTarget(made: object, target: unknown): void {
  registry.targets.set(made, target);
}

/** One made of the other: the same with other options. */
export function noteSame(made: object, other: object): void {
  registry.targets.set(made, registry.targets.get(other));
}

/** In a host, others find what registers while modules load; what code does later, when a call runs, is its own. */
export function registersForOthers(): void {
  registry.isHost = true;
}

/** Driver code was reached: what each `remote()` call has made by now is what a host comes to, which stops there. */
export function closeCounts(): void {
  if (registry.growing.size === 0) return;
  for (const { targets, counts } of registry.growing) counts.push(targets.length);
  registry.growing.clear();
}

/** @param exports undefined for one that driver code stopped */
export function noteLoaded(moduleUrl: string, exports: Exports | undefined): void {
  loaded(recordOf(moduleUrl, false), exports);
}

/** The modules that have called `remote()` so far. */
export function registeredModules(): readonly string[] {
  return [...registry.modules.keys()];
}

export type Found = { readonly target: unknown } | { readonly why: string };

/** Undefined: nothing of that place is here; the module may not be loaded yet. */
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
  if (key.files !== known.files) return { why: changedFile(key) ?? otherFiles };
  const found = targets[index];
  if (found !== undefined && found.name !== name) return { why: otherName(key, found.name) };
  return found;
}

/** Of one that is not here though its module has loaded: why, if more is known than that. */
export function whyMissing(key: RemoteKey): string | undefined {
  if ("exportName" in key)
    return `its module exports no class, function or remote as "${key.exportName}"`;
  return changedFile(key);
}

/** Of one whose text is in no file that could be compared: a worker may have another text in that place. */
export function unmappedPlace(key: RemoteKey): string | undefined {
  if (!("site" in key) || !chainOf(key.site).some(isUnmapped)) return undefined;
  return `the driver evaluates another text than that of the file${placeOf(key)}, and nothing says which place is which. Start it with node --enable-source-maps. ${naming}`;
}

/** Its `remote()` call stands in a function that code of another place called. */
export function isCalledFromElsewhere(key: RemoteKey): boolean {
  return "site" in key && chainOf(key.site).length > 1;
}

/** For a message: ` (file:line:column)` of its `remote()` call, or nothing. */
export function placeOf(key: RemoteKey): string {
  const [place] = "site" in key ? chainOf(key.site) : [];
  return place === undefined ? "" : ` (${placeText(place)})`;
}

function findExport({ moduleUrl, exportName }: ExportName): Found | undefined {
  const target = registry.named.get(exportText(moduleUrl, exportName));
  if (target !== undefined) return { target };
  const exported = exportsOf(moduleUrl)?.[exportName];
  if (typeof exported === "function") return { target: exported };
  if (typeof exported !== "object" || exported === null) return undefined;
  const made = registry.targets.get(exported);
  return made === undefined ? undefined : { target: made };
}

/** What the loaded modules with `remote()` calls export. */
export function* moduleExports(): Iterable<readonly [string, Exports]> {
  for (const moduleUrl of registry.modules.keys()) {
    const exports = exportsOf(moduleUrl);
    if (exports !== undefined) yield [moduleUrl, exports];
  }
}

/** How many remotes are known here. */
export function remoteCount(): number {
  return registry.count;
}

interface SeenRemote {
  readonly moduleUrl: string;
  /** Which one: its site, or `#` and its name. */
  readonly seenBy: string;
  readonly target: unknown;
}

/** A remote of each place, for whoever looks around them; those of one place see the same module. */
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
    // What another than Node has loaded would be loaded a second time.
    if (isEsm) void watch(moduleUrl, record);
  }
  return record;
}

function siteOf({ sites }: ModuleRecord, text: string, places: readonly Place[]): Site {
  let site = sites.get(text);
  if (site === undefined) {
    const files = places.map(({ moduleUrl }) => fileHash(moduleUrl)).join();
    site = { files, targets: [], counts: [], late: 0 };
    sites.set(text, site);
  }
  return site;
}

function isOfLoading({ isEvaluating }: CallChain): boolean {
  if (!registry.isHost) return true;
  const loading = currentLoading();
  return loading === undefined ? isEvaluating : !loading.isOver();
}

/** The module is loading right now, so this import starts nothing: it answers when that is done, or never (a driver that waits). */
async function watch(moduleUrl: string, record: ModuleRecord): Promise<void> {
  try {
    loaded(record, (await import(hereOf(moduleUrl) ?? moduleUrl)) as Exports);
  } catch {
    // Whoever imports the module hears of it; here it only means that no classes are known.
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

/** Of the file as it lies here. */
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
    return createHash("sha256")
      .update(readFileSync(fileURLToPath(url)))
      .digest("hex")
      .slice(0, 16);
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
  "Where that depends on anything, name each: remote(target, { module: import.meta.url, exportName })";

function otherCount(key: RemotePlace & RemoteKey, ours: number): string {
  return `its remote() call${placeOf(key)} has made ${key.count} where it was called, and ${ours} in the worker, so which is which cannot be told. ${naming}`;
}

function otherName(key: RemoteKey, name: string): string {
  return `its remote() call${placeOf(key)} has made ${name} in the worker. ${naming}`;
}
