/**
 * Time limits that do not punish the peer for this thread's own work: a thread that was busy past a
 * limit reads what has arrived before the limit counts.
 */
import { clockMs } from "../shared/clock.ts";
import { timers } from "../shared/machine/timers.ts";

export interface Deadline {
  /** The time that is left, in ms. */
  readonly leftMs: number;
  /** Stops the timer. Idempotent. */
  end(): void;
}

/** A timer that fires this late was held up by this thread. */
const lateMs = 1000;
/** The most extra time that the peer then gets: enough for a few turns of both sides. */
const graceMs = 5000;
/** After a shorter hold, this thread reads what arrived within this time. */
const lookMs = 100;

/** Calls back after `ms` milliseconds unless it is ended first. Does not keep the process alive. */
export function deadline(ms: number, onOver: () => void): Deadline {
  let timer: NodeJS.Timeout;
  let dueAt = 0;
  let isOver = false;
  const heldMs = Math.min(ms, graceMs);
  const isLate = (): boolean => clockMs() > dueAt + lateMs;
  const wait = (waitMs: number, onTime: () => void): void => {
    dueAt = clockMs() + waitMs;
    timer = timers
      .setTimeout(() => {
        if (isLate()) limit(heldMs);
        else onTime();
      }, waitMs)
      .unref();
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
      return isLate() ? heldMs : Math.max(0, dueAt - clockMs());
    },
    end: () => timers.clearTimeout(timer),
  };
}

/** A time budget that passes only while it runs. */
export class TimeLimit {
  readonly #ms: number;
  readonly #onOver: () => void;
  #leftMs: number;
  #isOver = false;
  #running: Deadline | undefined;

  /** @param onOver called once the whole budget has passed, as by `deadline` */
  constructor(ms: number, onOver: () => void) {
    this.#ms = ms;
    this.#leftMs = ms;
    this.#onOver = () => {
      this.#isOver = true;
      onOver();
    };
  }

  /** Whether the whole budget has passed since the last renewal. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Starts the clock. Idempotent, also when the budget is used up. */
  run(): void {
    this.#running ??= deadline(this.#leftMs, this.#onOver);
  }

  /** Stops the clock. Idempotent. */
  stop(): void {
    if (this.#running === undefined) return;
    this.#leftMs = this.#running.leftMs;
    this.#running.end();
    this.#running = undefined;
  }

  /** Stops the clock and restores the whole budget. */
  renew(): void {
    this.stop();
    this.#leftMs = this.#ms;
    this.#isOver = false;
  }
}
