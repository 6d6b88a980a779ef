/**
 * Decides whether only a message of the runtime can wake the running calls of this host, as far as
 * visible: no timer, socket, file or child process exists that did not exist before the calls
 * began. Earlier ones (the heartbeat of an actor, its server, a timer of another call) are assumed
 * to be unrelated.
 *
 * Where calls overlap, as in a thread that actors share, the resources of all of them count. The
 * look happens before the code of a call runs while no other call does, at most once in `freshMs`
 * (0.2 us each). Unreferenced resources and work of the thread pool are not visible.
 */
import { clockMs } from "../../shared/clock.ts";

/**
 * Leftovers of a call within this time, in ms, count as part of the next one, so that nothing is
 * proved by them.
 */
const freshMs = 1;

export class Idleness {
  #before: ReadonlyMap<string, number> | undefined;
  #lookedMs: number = Number.NEGATIVE_INFINITY;
  #running = 0;

  /** Looks at the resources, before the code of a call, a task or a constructor runs. */
  look(): void {
    if (this.#running > 0) return;
    const now = clockMs();
    if (now - this.#lookedMs < freshMs) return;
    this.#lookedMs = now;
    this.#before = counts();
  }

  /** Records that a call goes on. */
  begun(): void {
    this.#running += 1;
  }

  /** Records that calls have ended. */
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
