/**
 * Time limits on others that are fair to them: a thread that was held meanwhile, by what it computes, could not have heard of them, and listens first.
 */

export interface Deadline {
  /** How much of its time is left, in ms. */
  readonly leftMs: number;
  /** It is not waited for any longer. Idempotent. */
  end(): void;
}

/** A timer that is so late was held up by this thread. */
const lateMs = 1000;
/** What the others get then, at most: time enough for a few turns of both sides. */
const graceMs = 5000;
/** What came while this thread was held for less is heard within that. */
const lookMs = 100;

/** Calls back once so much time has passed, in ms, unless it is ended first. Does not keep the process alive. */
export function deadline(ms: number, onOver: () => void): Deadline {
  let timer: NodeJS.Timeout;
  let dueAt = 0;
  let isOver = false;
  const heldMs = Math.min(ms, graceMs);
  const isLate = (): boolean => performance.now() > dueAt + lateMs;
  const wait = (waitMs: number, onTime: () => void): void => {
    dueAt = performance.now() + waitMs;
    timer = setTimeout(() => {
      if (isLate()) limit(heldMs);
      else onTime();
    }, waitMs).unref();
  };
  const end = (): void => {
    isOver = true;
    onOver();
  };
  const limit = (limitMs: number): void => wait(limitMs, () => wait(lookMs, end));
  limit(ms);
  return {
    get leftMs() {
      if (isOver) return 0;
      return isLate() ? heldMs : Math.max(0, dueAt - performance.now());
    },
    end: () => clearTimeout(timer),
  };
}

/** Time that somebody has in all: it passes only while it runs. */
export class Patience {
  readonly #ms: number;
  readonly #onOver: () => void;
  #leftMs: number;
  #isOver = false;
  #running: Deadline | undefined;

  /** @param onOver called once all of it has passed, as `deadline` does */
  constructor(ms: number, onOver: () => void) {
    this.#ms = ms;
    this.#leftMs = ms;
    this.#onOver = () => {
      this.#isOver = true;
      onOver();
    };
  }

  /** All of it has passed, and it was not renewed since. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Idempotent, also when all of it has passed. */
  run(): void {
    this.#running ??= deadline(this.#leftMs, this.#onOver);
  }

  /** Idempotent. */
  stop(): void {
    if (this.#running === undefined) return;
    this.#leftMs = this.#running.leftMs;
    this.#running.end();
    this.#running = undefined;
  }

  /** Stops, and is whole again. */
  renew(): void {
    this.stop();
    this.#leftMs = this.#ms;
    this.#isOver = false;
  }
}
