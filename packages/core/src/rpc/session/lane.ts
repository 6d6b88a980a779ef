/**
 * Calls of this runtime to one actor that are under way over one session, by whichever of its
 * names.
 *
 * Twice the actor's concurrency of them are sent whatever else is under way, because calls that may
 * run together may wait for each other; more of them need credit. Both sides know the rule: the
 * sender keeps to it, and the receiver closes the connection of a peer that does not (ledger.ts).
 */

/** So many calls need no credit. */
export function freeCalls(maxConcurrency: number): number {
  return 2 * maxConcurrency;
}

export class Lane {
  readonly target: string;
  #sent = 0;
  #users = 0;
  /** Watchers that wait for fewer calls under way. */
  readonly #waiting: Set<() => void> = new Set();

  constructor(target: string) {
    this.target = target;
  }

  /** Nobody sends by it, and nothing that was is under way: another one may take its place. */
  get isOver(): boolean {
    return this.#users === 0 && this.#sent === 0;
  }

  enter(): void {
    this.#users += 1;
  }

  leave(): void {
    this.#users -= 1;
  }

  isFree(maxConcurrency: number): boolean {
    return this.#sent < freeCalls(maxConcurrency);
  }

  sent(): void {
    this.#sent += 1;
  }

  /** So many of them are under way no more. */
  back(count: number): void {
    this.#sent -= count;
    if (this.#waiting.size > 0) for (const resume of this.#waiting) resume();
  }

  /** Calls back whenever some are back, until it is told to stop. */
  watch(resume: () => void): () => void {
    this.#waiting.add(resume);
    return () => void this.#waiting.delete(resume);
  }
}

/** The lanes of one session, each as long as somebody uses it. */
export class Lanes {
  readonly #lanes: Map<string, Lane> = new Map();

  get size(): number {
    return this.#lanes.size;
  }

  /** Enters the lane of calls to `target`; leave it when nothing more is sent by it. */
  enter(target: string): Lane {
    let lane = this.#lanes.get(target);
    if (lane === undefined) {
      lane = new Lane(target);
      this.#lanes.set(target, lane);
    }
    lane.enter();
    return lane;
  }

  leave(lane: Lane): void {
    lane.leave();
    if (lane.isOver) this.#lanes.delete(lane.target);
  }
}
