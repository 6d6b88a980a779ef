/**
 * The remote classes and functions of this thread, by the place of their `remote()` call: module, number within the module, name.
 *
 * Driver and host run the same module and so count the same calls; that is how a host finds a class without any code being sent.
 */
import { pathToFileURL } from "node:url";
import { getCallSites } from "node:util";
import type { RemoteKey } from "../rpc/directory.ts";
import { driversOf, hereOf } from "../shared/code-roots.ts";
import { RemoteNotRegisteredError } from "../shared/errors.ts";
import { threadSlot } from "../shared/thread-slot.ts";

type Exports = Readonly<Record<string, unknown>>;

interface Registry {
  readonly targets: Map<string, unknown>;
  readonly counts: Map<string, number>;
  /** Of the modules with `remote()` calls, as soon as they have finished loading. */
  readonly exports: Map<string, Exports>;
}

const registry: Registry = threadSlot("registry", () => ({
  targets: new Map(),
  counts: new Map(),
  exports: new Map(),
}));

/** @param frames how many frames of this package stand above the user's `remote()` call */
export function registerRemote(target: unknown, name: string, frames: number): RemoteKey {
  const moduleUrl = callerModule(name, frames + 2);
  const ordinal = registry.counts.get(moduleUrl) ?? 0;
  if (ordinal === 0) void watchExports(moduleUrl);
  registry.counts.set(moduleUrl, ordinal + 1);
  const key: RemoteKey = { moduleUrl, ordinal, name };
  registry.targets.set(keyText(key), target);
  return key;
}

/** The modules that have called `remote()` so far. */
export function registeredModules(): readonly string[] {
  return [...registry.counts.keys()];
}

export function registeredTarget(key: RemoteKey): unknown {
  return registry.targets.get(keyText(key));
}

/** What the loaded modules with `remote()` calls export. */
export function moduleExports(): Iterable<readonly [string, Exports]> {
  return registry.exports;
}

export function keyText(key: RemoteKey): string {
  return `${key.moduleUrl}#${key.ordinal}:${key.name}`;
}

/** The module is loading right now, so this import starts nothing: it answers when that is done, or never (a driver that waits). */
async function watchExports(moduleUrl: string): Promise<void> {
  try {
    registry.exports.set(moduleUrl, (await import(hereOf(moduleUrl) ?? moduleUrl)) as Exports);
  } catch {
    // Whoever imports the module hears of it; here it only means that no classes are known.
    registry.exports.delete(moduleUrl);
  }
}

function callerModule(name: string, frames: number): string {
  const site = getCallSites(frames + 1, { sourceMap: false })[frames]?.scriptName ?? "";
  if (site.startsWith("file:")) return driversOf(site);
  if (site.startsWith("/") || /^[A-Za-z]:[\\/]/.test(site)) {
    return driversOf(pathToFileURL(site).href);
  }
  throw new RemoteNotRegisteredError(
    name,
    site === "" ? "unknown" : site,
    "remote() was not called in a module file, so a worker has nothing to import",
  );
}
