/**
 * Where the driver's code lies in this host, when it was brought here: folders of the driver, and what stands for them on this machine.
 *
 * A module is known everywhere by the URL that it has at the driver: keys of remote classes and origins of errors carry that one. Only who imports a module
 * asks where it is (`hereOf`), and only what says where code is (a call site, a stack) is put back (`driversOf`, `driversText`). Files are never renamed
 * within a folder, so one prefix stands for the other. Without roots, which is everywhere but in hosts of other machines, both are the same.
 */
import { fileURLToPath } from "node:url";
import { threadSlot } from "./thread-slot.ts";

/** URLs of the same folder, which end in "/". */
export interface CodeRoot {
  readonly driver: string;
  readonly here: string;
}

const slot: { roots: readonly CodeRoot[] } = threadSlot("code-roots", () => ({ roots: [] }));

/** The first that fits counts. Called before any module of the user is loaded. */
export function setCodeRoots(roots: readonly CodeRoot[]): void {
  slot.roots = roots;
}

/** Whether code was brought here, so that no path of the driver means anything. */
export function hasCodeRoots(): boolean {
  return slot.roots.length > 0;
}

/** Undefined for what was not brought here. */
export function hereOf(url: string): string | undefined {
  if (slot.roots.length === 0) return url;
  const root = slot.roots.find(({ driver }) => url.startsWith(driver));
  return root === undefined ? undefined : root.here + url.slice(root.driver.length);
}

export function driversOf(url: string): string {
  const root = slot.roots.find(({ here }) => url.startsWith(here));
  return root === undefined ? url : root.driver + url.slice(root.here.length);
}

/** URLs and paths inside a text. */
export function driversText(text: string): string {
  let told = text;
  for (const { driver, here } of slot.roots) {
    told = told.replaceAll(here, driver).replaceAll(fileURLToPath(here), fileURLToPath(driver));
  }
  return told;
}
