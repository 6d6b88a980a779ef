/**
 * Whether nothing but a message of the runtime can wake the calls that run in this host, so far as can be seen: no timer, no socket, no file and no child is there that was
 * not before they began. What was there before (the heartbeat of an actor, its server, a timer that another call left) is taken to have nothing to do with them.
 *
 * Where calls overlap, as they do in a thread that actors share, the resources of all of them count. Looked at before code of a call runs while none does, at most once in `freshMs` (0.2 us each). What is unreferenced is not seen, nor is work of the thread pool.
 */

/** What is left behind within it counts as part of the next call, so that nothing is proved of that. */
const freshMs = 1;

export class Idleness {
  #before: ReadonlyMap<string, number> | undefined;
  #lookedMs: number = Number.NEGATIVE_INFINITY;
  #running = 0;

  /** Code of a call, a task or a constructor is about to run. */
  look(): void {
    if (this.#running > 0) return;
    const now = performance.now();
    if (now - this.#lookedMs < freshMs) return;
    this.#lookedMs = now;
    this.#before = counts();
  }

  /** A call goes on. */
  begun(): void {
    this.#running += 1;
  }

  /** So many have come to their ends. */
  ended(count: number): void {
    this.#running -= count;
  }

  get isIdle(): boolean {
    const before = this.#before;
    if (before === undefined) return false;
    return [...counts()].every(([type, count]) => count <= (before.get(type) ?? 0));
  }
}

function counts(): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const type of process.getActiveResourcesInfo()) {
    found.set(type, (found.get(type) ?? 0) + 1);
  }
  return found;
}
