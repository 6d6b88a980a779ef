/**
 * Where the driver's code lies on this host's machine: folders of the driver, and the folders that
 * hold their copies here.
 *
 * Every module is known by the URL that it has at the driver: keys of remote classes and origins of
 * errors carry that URL. Only code that imports a module asks for the local URL (`hereOf`), and
 * only text that names places in code (a call site, a stack) is translated back (`driversOf`,
 * `driversText`). Files are never renamed within a folder, so one prefix replaces the other. Hosts
 * on the driver's own machine have no roots, and both URLs are equal there.
 */
import { fileURLToPath } from "node:url";
import { threadSlot } from "./thread-slot.ts";

/** Two URLs of one folder. Both end in "/". */
export interface CodeRoot {
  readonly driver: string;
  readonly here: string;
}

const slot: { roots: readonly CodeRoot[] } = threadSlot("code-roots", () => ({ roots: [] }));

/**
 * Sets the roots; the first root that matches a URL counts. The call precedes the load of any user
 * module.
 */
export function setCodeRoots(roots: readonly CodeRoot[]): void {
  slot.roots = roots;
}

/** Whether code was copied to this machine, so that paths of the driver mean nothing here. */
export function hasCodeRoots(): boolean {
  return slot.roots.length > 0;
}

/** Returns the local URL of a module, or undefined when the module was not copied here. */
export function hereOf(url: string): string | undefined {
  if (slot.roots.length === 0) return url;
  const root = slot.roots.find(({ driver }) => url.startsWith(driver));
  return root === undefined ? undefined : root.here + url.slice(root.driver.length);
}

export function driversOf(url: string): string {
  const root = slot.roots.find(({ here }) => url.startsWith(here));
  return root === undefined ? url : root.driver + url.slice(root.here.length);
}

/** Replaces local URLs and paths inside a text by the driver's. */
export function driversText(text: string): string {
  let translated = text;
  for (const { driver, here } of slot.roots) {
    translated = translated
      .replaceAll(here, driver)
      .replaceAll(fileURLToPath(here), fileURLToPath(driver));
  }
  return translated;
}
