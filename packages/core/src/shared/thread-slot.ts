/**
 * The one place for state that belongs to a thread and not to an object: its runtime, its registry
 * of remote classes.
 *
 * The state hangs on globalThis under a symbol, so that a second copy of this package in one thread
 * (another version, or a linked one) finds the first. The second copy is refused, because refs and
 * handles of one copy do not work in the other.
 */
import { ownFolder } from "./own-files.ts";
import { warn } from "./text/warning.ts";

const key: unique symbol = Symbol.for("rayling.thread.v1") as never;

type Slots = Map<string, unknown>;

export function threadSlot<T>(name: string, make: () => T): T {
  const holder = globalThis as { [key]?: Slots };
  const slots = (holder[key] ??= new Map());
  if (!slots.has(name)) slots.set(name, make());
  return slots.get(name) as T;
}

const copies: Set<string> = threadSlot("copies", () => new Set());
if (copies.size > 0 && !copies.has(ownFolder.href)) {
  warn(
    `@rayling/core is loaded from ${[...copies, ownFolder.href].join(" and from ")}. Refs and handles of one copy do not work in the other: let all packages use one version (npm dedupe, pnpm dedupe)`,
  );
}
copies.add(ownFolder.href);
