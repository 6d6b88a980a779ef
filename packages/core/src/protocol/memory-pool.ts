/**
 * Memory of dropped values that is used again. A copy into new memory takes 8 to 50 times as long
 * as one into memory that was touched before, because of the kernel's first touch (800 MB).
 *
 * Memory may only be used again when nobody can look at it, and JavaScript does not tell who can: a
 * user may have posted it to a thread of his own. But memory that was given to no user and to no
 * other thread is within reach of this thread's runtime alone, and that one reaches it through one
 * object, the handle: a second SharedArrayBuffer of the same memory. When the handle is collected,
 * nobody is left; a socket or a file that is still being written keeps it alive. Memory that was
 * given out never comes back here, and is freed with its last handle. So this serves values that
 * only processes and other machines fetch, or that nobody reads.
 *
 * The pool asks for no collection. It looks for collected handles when memory is wanted, because a
 * finalizer comes several turns after its collection. Its references to handles keep none alive
 * (loose-ref.ts: of the first few hundred in a job), so that code without turns gets its memory
 * back, too.
 */
import { threadSlot } from "../shared/thread-slot.ts";
import { LooseRef, prepareLooseRefs } from "./loose-ref.ts";
import { timers } from "../shared/machine/timers.ts";

/** Memory that was given to nobody. */
interface Lease {
  readonly memory: SharedArrayBuffer;
  readonly handle: LooseRef<SharedArrayBuffer>;
}

/**
 * Called with the size of memory that the next collection frees.
 *
 * @param isIdle whether no turn may come in which that could be
 */
export type SparesDropped = (byteLength: number, isIdle: boolean) => void;

interface Pool {
  /** The leases whose handles may be alive, by their handles and all of them. */
  readonly leases: WeakMap<SharedArrayBuffer, Lease>;
  readonly lent: Set<Lease>;
  readonly returned: FinalizationRegistry<Lease>;
  /** Memory that nobody uses, by its size; the sizes that were wanted last are at the end. */
  readonly spares: Map<number, SharedArrayBuffer[]>;
  spareBytes: number;
  mostSpareBytes: number;
  onDropped: SparesDropped;
  /** A collection has been since handles were last looked for. */
  mayHaveReturned: boolean;
  idle: NodeJS.Timeout | undefined;
}

/** Below this the allocator keeps freed memory by itself. */
export const leastPooledBytes: number = 1024 * 1024;

/** Memory goes back to the system when none was wanted for this time. */
const idleMs = 2000;

const pool: Pool = threadSlot("memory-pool", () => ({
  leases: new WeakMap(),
  lent: new Set(),
  returned: new FinalizationRegistry<Lease>(takeBack),
  spares: new Map(),
  spareBytes: 0,
  mostSpareBytes: 0,
  onDropped: () => undefined,
  mayHaveReturned: false,
  idle: undefined,
}));

/** Sets how many bytes stand ready at most, in this thread; none before. */
export function limitSpares(bytes: number, onDropped: SparesDropped): void {
  pool.mostSpareBytes = bytes;
  pool.onDropped = onDropped;
  if (bytes > 0) prepareLooseRefs();
}

/** Returns how many bytes stand ready at most. */
export function mostSpareBytes(): number {
  return pool.mostSpareBytes;
}

/** Returns the bytes that stand ready. */
export function spareBytes(): number {
  return pool.spareBytes;
}

/** Handles may have been collected. */
export function noteCollection(): void {
  pool.mayHaveReturned = true;
}

/** Returns a handle of memory that comes back here. The memory must be new, or a spare. */
export function lend(memory: SharedArrayBuffer): SharedArrayBuffer {
  if (memory.byteLength > pool.mostSpareBytes) return memory;
  const handle = structuredClone(memory);
  const lease = { memory, handle: new LooseRef(handle) };
  pool.leases.set(handle, lease);
  pool.lent.add(lease);
  pool.returned.register(handle, lease);
  return handle;
}

/** Returns a handle of memory of exactly that size, with the bytes of an earlier value in it. */
export function lendSpare(byteLength: number): SharedArrayBuffer | undefined {
  lookForReturned();
  const ofSize = pool.spares.get(byteLength);
  const memory = ofSize?.pop();
  if (ofSize === undefined || memory === undefined) return undefined;
  pool.spares.delete(byteLength);
  if (ofSize.length > 0) pool.spares.set(byteLength, ofSize);
  pool.spareBytes -= byteLength;
  pool.idle?.refresh();
  return lend(memory);
}

/** The memory is about to be within reach of a user, or of another thread. */
export function giveOut(handle: SharedArrayBuffer): void {
  const lease = pool.leases.get(handle);
  if (lease !== undefined) pool.lent.delete(lease);
}

/** Gives what stands ready back to the system, as soon as it is collected. */
export function dropSpares(isIdle = false): void {
  timers.clearTimeout(pool.idle);
  pool.idle = undefined;
  pool.spares.clear();
  const dropped = pool.spareBytes;
  pool.spareBytes = 0;
  if (dropped > 0) pool.onDropped(dropped, isIdle);
}

function lookForReturned(): void {
  if (!pool.mayHaveReturned) return;
  pool.mayHaveReturned = false;
  for (const lease of pool.lent) if (lease.handle.deref() === undefined) takeBack(lease);
}

/** The handle of that lease was collected. */
function takeBack(lease: Lease): void {
  // It was given out, or found before.
  if (!pool.lent.delete(lease)) return;
  const { memory } = lease;
  const { byteLength } = memory;
  makeRoom(byteLength);
  const ofSize = pool.spares.get(byteLength);
  if (ofSize === undefined) pool.spares.set(byteLength, [memory]);
  else ofSize.push(memory);
  pool.spareBytes += byteLength;
  pool.idle ??= timers.setTimeout(() => dropSpares(true), idleMs).unref();
}

/** Drops spares of sizes that were not wanted for longest. */
function makeRoom(byteLength: number): void {
  for (const [size, ofSize] of pool.spares) {
    while (pool.spareBytes + byteLength > pool.mostSpareBytes && ofSize.length > 0) {
      ofSize.pop();
      pool.spareBytes -= size;
      pool.onDropped(size, false);
    }
    if (ofSize.length > 0) return;
    pool.spares.delete(size);
  }
}
