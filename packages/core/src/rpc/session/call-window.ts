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

export class CallWindow {
  readonly target: string;
  #sent = 0;
  #users = 0;
  /** Watchers that wait for fewer calls under way. */
  #waiting: Set<() => void> | undefined;

  constructor(target: string) {
    this.target = target;
  }

  /** Nobody uses it, and no call is under way: another one may take its place. */
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
    if (this.#waiting !== undefined) for (const resume of this.#waiting) resume();
  }

  /** Calls back whenever some are back, until it is told to stop. */
  watch(resume: () => void): () => void {
    const waiting = (this.#waiting ??= new Set());
    waiting.add(resume);
    return () => {
      waiting.delete(resume);
      if (waiting.size === 0 && this.#waiting === waiting) this.#waiting = undefined;
    };
  }
}

/** The windows of one session, each as long as somebody uses it. */
export class CallWindows {
  readonly #windows: Map<string, CallWindow> = new Map();

  get size(): number {
    return this.#windows.size;
  }

  /** Returns the window of calls to `target`, in use until it is left. */
  enter(target: string): CallWindow {
    let window = this.#windows.get(target);
    if (window === undefined) {
      window = new CallWindow(target);
      this.#windows.set(target, window);
    }
    window.enter();
    return window;
  }

  leave(window: CallWindow): void {
    window.leave();
    if (window.isOver) this.#windows.delete(window.target);
  }
}
