/**
 * The remote classes and functions of this thread, by the place of their `remote()` call: module, number within the module, name.
 *
 * Driver and host run the same module and so count the same calls; that is how a host finds a class without any code being sent.
 */
import { pathToFileURL } from "node:url";
import { getCallSites } from "node:util";
import type { RemoteKey } from "../rpc/directory.ts";
import { RemoteNotRegisteredError } from "../shared/errors.ts";
import { threadSlot } from "../shared/thread-slot.ts";

interface Registry {
  readonly targets: Map<string, unknown>;
  readonly counts: Map<string, number>;
}

const registry: Registry = threadSlot("registry", () => ({ targets: new Map(), counts: new Map() }));

/** @param frames how many frames of this package stand above the user's `remote()` call */
export function registerRemote(target: unknown, name: string, frames: number): RemoteKey {
  const moduleUrl = callerModule(name, frames + 2);
  const ordinal = registry.counts.get(moduleUrl) ?? 0;
  registry.counts.set(moduleUrl, ordinal + 1);
  const key: RemoteKey = { moduleUrl, ordinal, name };
  registry.targets.set(keyText(key), target);
  return key;
}

export function registeredTarget(key: RemoteKey): unknown {
  return registry.targets.get(keyText(key));
}

/** Whether some `remote()` call of that module ran in this thread: the module is loaded, or loading. */
export function hasModule(moduleUrl: string): boolean {
  return registry.counts.has(moduleUrl);
}

export function keyText(key: RemoteKey): string {
  return `${key.moduleUrl}#${key.ordinal}:${key.name}`;
}

function callerModule(name: string, frames: number): string {
  const site = getCallSites(frames + 1)[frames]?.scriptName ?? "";
  if (site.startsWith("file:")) return site;
  if (site.startsWith("/") || /^[A-Za-z]:[\\/]/.test(site)) return pathToFileURL(site).href;
  throw new RemoteNotRegisteredError(
    name,
    site === "" ? "unknown" : site,
    "remote() was not called in a module file, so a worker has nothing to import",
  );
}
