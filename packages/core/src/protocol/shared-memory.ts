/**
 * The SharedArrayBuffers that carry big values: it allocates them, tells them from the user's own,
 * and has dropped ones collected.
 *
 * V8 does not count shared memory: a thread that passes gigabytes of it sees no reason to collect
 * garbage, and all of it stays. So this module counts the memory that a thread sees and calls the
 * collector after each quantum (measured: 20 buffers of 50 MB, dropped at once, otherwise stay
 * while the program does little else), and sooner while that takes a small part of the time.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { clockMs } from "../shared/clock.ts";
import { ObjectStoreFullError, RaySystemError } from "../shared/errors.ts";
import { threadSlot } from "../shared/thread-slot.ts";
import {
  dropSpares,
  leastPooledBytes,
  lend,
  lendSpare,
  limitSpares,
  mostSpareBytes,
  noteCollection,
  spareBytes,
} from "./memory-pool.ts";
import { timers } from "../shared/machine/timers.ts";

interface Seen {
  /** Buffers that the runtime allocated, here or elsewhere; the user's own are not in it. */
  readonly ours: WeakSet<SharedArrayBuffer>;
  readonly gone: FinalizationRegistry<number>;
  bytes: number;
  sinceCollection: number;
  /** Bytes that were lent to be filled since the last collection. */
  filled: number;
  quantum: number;
  collections: number;
  /** The last collection: its end, and how long it took. */
  collectedAtMs: number;
  collectionMs: number;
  /** A later turn collects. */
  isScheduled: boolean;
  collect: (() => void) | undefined;
}

/** A collection takes milliseconds; copying this much takes tens of them. */
const leastQuantum: number = 64 * 1024 * 1024;
const mostQuantum: number = 1024 * 1024 * 1024;
/** So many times what a collection took pass before the next one, unless a whole quantum has. */
const restFactor = 10;
/** An attempt takes a millisecond, and each of the other threads makes one once. */
const mostAttempts = 1000;

const seen: Seen = threadSlot("shared-memory", () => ({
  ours: new WeakSet(),
  gone: new FinalizationRegistry<number>((byteLength) => void (seen.bytes -= byteLength)),
  bytes: 0,
  sinceCollection: 0,
  filled: 0,
  quantum: mostQuantum,
  collections: 0,
  collectedAtMs: -Infinity,
  collectionMs: 0,
  isScheduled: false,
  collect: undefined,
}));

/**
 * Sets the bytes between two collections, an eighth of the store's limit, and how much memory of
 * dropped values this thread keeps ready for later ones: a share of that limit.
 */
export function limitGarbage(limitBytes: number, shareOfSpares: number): void {
  seen.quantum = Math.min(mostQuantum, Math.max(leastQuantum, limitBytes / 8));
  limitSpares(limitBytes * shareOfSpares, sparesDropped);
}

/** @throws ObjectStoreFullError when the system gives no more memory */
export function allocateShared(byteLength: number): SharedArrayBuffer {
  const memory = newMemory(byteLength);
  adoptShared(memory);
  return memory;
}

/**
 * Does what `allocateShared` does, for memory that the caller fills at once: it may hold the bytes
 * of an earlier value. It comes from the pool, and returns there if nobody is given it.
 *
 * @throws ObjectStoreFullError when the system gives no more memory
 */
export function allocateToFill(byteLength: number): SharedArrayBuffer {
  if (byteLength < leastPooledBytes) return allocateShared(byteLength);
  const memory = lendSpare(byteLength) ?? lendCollected(byteLength) ?? lend(newMemory(byteLength));
  seen.filled += byteLength;
  adoptShared(memory);
  return memory;
}

/**
 * Collects in the middle of the caller's job when more was filled than may stand ready. The caller
 * may fill gigabytes before the turn that would collect, and the first touch of so much new memory
 * takes longer than a collection.
 */
function lendCollected(byteLength: number): SharedArrayBuffer | undefined {
  const most = Math.max(leastQuantum, mostSpareBytes());
  if (mostSpareBytes() === 0 || seen.filled + byteLength <= most) return undefined;
  collectGarbage();
  return lendSpare(byteLength);
}

function newMemory(byteLength: number): SharedArrayBuffer {
  try {
    return new SharedArrayBuffer(byteLength);
  } catch {
    // Dropped but uncollected memory may be in the way.
    dropSpares();
    collectGarbage();
    try {
      return new SharedArrayBuffer(byteLength);
    } catch (cause) {
      throw new ObjectStoreFullError("a value", byteLength, "the system gives no more memory", {
        cause,
      });
    }
  }
}

/** Registers memory of the runtime that arrived or was just allocated. */
export function adoptShared(memory: SharedArrayBuffer): void {
  const { byteLength } = memory;
  seen.ours.add(memory);
  seen.gone.register(memory, byteLength);
  seen.bytes += byteLength;
  cameBy(byteLength);
}

function sparesDropped(byteLength: number, isIdle: boolean): void {
  if (!isIdle) return cameBy(byteLength);
  seen.sinceCollection += byteLength;
  if (isDue()) collectGarbage();
}

/**
 * Counts memory, here or on another host, that becomes free when a small object of this thread is
 * collected.
 */
export function cameBy(byteLength: number): void {
  seen.sinceCollection += byteLength;
  if (seen.isScheduled || !isDue()) return;
  seen.isScheduled = true;
  timers
    .setImmediate(() => {
      seen.isScheduled = false;
      if (isDue()) collectGarbage();
    })
    .unref();
}

/** Whether a collection is worth its time. */
function isDue(): boolean {
  const { sinceCollection, quantum, collectedAtMs, collectionMs } = seen;
  if (sinceCollection < leastQuantum) return false;
  return sinceCollection >= quantum || clockMs() - collectedAtMs >= restFactor * collectionMs;
}

/**
 * Resolves after the collection that is about to come. Code that goes on from promise to promise
 * waits for it: such code leaves no turn to it, and what it drops would stay.
 */
export function dueCollection(): Promise<void> | undefined {
  return seen.isScheduled ? new Promise((done) => void timers.setImmediate(done)) : undefined;
}

/** Whether the runtime allocated this memory. The user's own SharedArrayBuffers may change. */
export function isOurs(memory: SharedArrayBuffer): boolean {
  return seen.ours.has(memory);
}

/**
 * Returns the bytes of shared memory that this thread sees: kept, in use, dropped and not yet
 * collected, or ready for a later value.
 */
export function seenBytes(): number {
  return seen.bytes + spareBytes();
}

/**
 * Returns the bytes that this thread has passed since the last collection, an upper bound of the
 * garbage in them.
 */
export function uncollectedBytes(): number {
  return seen.sinceCollection;
}

/** How often this thread has asked for a collection. */
export function collections(): number {
  return seen.collections;
}

/** Collects now. A later turn counts the freed memory off. */
export function collectGarbage(): void {
  seen.sinceCollection = 0;
  seen.filled = 0;
  seen.collections += 1;
  seen.collect ??= collector();
  const startMs = clockMs();
  seen.collect();
  noteCollection();
  seen.collectedAtMs = clockMs();
  seen.collectionMs = seen.collectedAtMs - startMs;
}

/**
 * Without the flag there is no `gc`; a context that is made after the flag is set has it.
 *
 * The flag is taken back at once: V8 refuses cached code that was compiled under other flags, in
 * all threads of the process, and a host would compile all modules anew. Threads share the flags,
 * so another one may take it back before this one's context is made. Each takes back what it has
 * set, so that the flag is never left behind; only that of the program's own command stays.
 *
 * @throws RaySystemError when the flag is taken back each time
 */
function collector(): () => void {
  const flags = [...process.execArgv, process.env["NODE_OPTIONS"] ?? ""].join(" ");
  const isOfTheUser = /--expose[-_]gc\b/.test(flags);
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    setFlagsFromString("--expose-gc");
    const found: unknown = runInNewContext("globalThis.gc");
    if (!isOfTheUser) setFlagsFromString("--no-expose-gc");
    if (typeof found === "function") return found as () => void;
  }
  throw new RaySystemError(
    `V8's garbage collector cannot be reached: in ${mostAttempts} attempts --expose-gc was taken back by other code of this process`,
  );
}
