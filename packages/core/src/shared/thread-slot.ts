/**
 * The one place for state that belongs to a thread and not to an object: its runtime, its registry of remote classes.
 *
 * It hangs on globalThis under a symbol, so that two copies of this package in one thread (a linked and an installed one) share it.
 */
const key: unique symbol = Symbol.for("rayling.thread.v1") as never;

type Slots = Map<string, unknown>;

export function threadSlot<T>(name: string, make: () => T): T {
  const holder = globalThis as { [key]?: Slots };
  const slots = (holder[key] ??= new Map());
  if (!slots.has(name)) slots.set(name, make());
  return slots.get(name) as T;
}
