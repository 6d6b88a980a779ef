/**
 * The SharedArrayBuffers that carry big values: makes them, knows them from the user's own, and has dropped ones collected.
 *
 * V8 does not count shared memory as its own: a thread that sees gigabytes of it go by has no reason to collect garbage, and all of it stays.
 * So what is seen is counted here, and the collector is called when enough came by since the last time (measured: 20 buffers of
 * 50 MB, dropped at once, otherwise stay for as long as the program does little else).
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ObjectStoreFullError } from "../shared/errors.ts";
import { threadSlot } from "../shared/thread-slot.ts";

interface Seen {
  /** Made by us, here or elsewhere; the user's own are not in it. */
  readonly ours: WeakSet<SharedArrayBuffer>;
  readonly gone: FinalizationRegistry<number>;
  bytes: number;
  sinceCollection: number;
  quantum: number;
  scheduled: boolean;
  collect: (() => void) | undefined;
}

/** Collecting takes milliseconds; copying this much takes tens of them. */
const leastQuantum: number = 64 * 1024 * 1024;
const mostQuantum: number = 1024 * 1024 * 1024;

const seen: Seen = threadSlot("shared-memory", () => ({
  ours: new WeakSet(),
  gone: new FinalizationRegistry<number>((byteLength) => void (seen.bytes -= byteLength)),
  bytes: 0,
  sinceCollection: 0,
  quantum: mostQuantum,
  scheduled: false,
  collect: undefined,
}));

/** Sets how much may come by between two collections: an eighth of what the store may hold. */
export function limitGarbage(limitBytes: number): void {
  seen.quantum = Math.min(mostQuantum, Math.max(leastQuantum, limitBytes / 8));
}

/** @throws ObjectStoreFullError when the system gives no more memory */
export function allocateShared(byteLength: number): SharedArrayBuffer {
  let memory: SharedArrayBuffer;
  try {
    memory = new SharedArrayBuffer(byteLength);
  } catch {
    // What was dropped and not collected may be in the way.
    collectGarbage();
    try {
      memory = new SharedArrayBuffer(byteLength);
    } catch (cause) {
      throw new ObjectStoreFullError("a value", byteLength, "the system gives no more memory", {
        cause,
      });
    }
  }
  adoptShared(memory);
  return memory;
}

/** Memory of ours that arrived, or that was just made. */
export function adoptShared(memory: SharedArrayBuffer): void {
  const { byteLength } = memory;
  seen.ours.add(memory);
  seen.gone.register(memory, byteLength);
  seen.bytes += byteLength;
  cameBy(byteLength);
}

/** So much memory, here or on another host, goes free when something small of this thread is collected. */
export function cameBy(byteLength: number): void {
  seen.sinceCollection += byteLength;
  if (seen.sinceCollection < seen.quantum || seen.scheduled) return;
  seen.scheduled = true;
  setImmediate(() => {
    seen.scheduled = false;
    if (seen.sinceCollection >= seen.quantum) collectGarbage();
  }).unref();
}

/** False for a SharedArrayBuffer of the user's: it is meant to be changed. */
export function isOurs(memory: SharedArrayBuffer): boolean {
  return seen.ours.has(memory);
}

/** Shared memory that this thread sees: kept, in use, or dropped and not collected yet. */
export function seenBytes(): number {
  return seen.bytes;
}

/** How much came by since the last collection: at most so much can be garbage that a collection would find. */
export function uncollectedBytes(): number {
  return seen.sinceCollection;
}

/** Collects now. What is found is counted off in a later turn. */
export function collectGarbage(): void {
  seen.sinceCollection = 0;
  seen.collect ??= collector();
  seen.collect();
}

/** There is no call for it without the flag, and a context made after the flag was set has it. */
function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}
