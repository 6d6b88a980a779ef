/**
 * Keeps a thread awake for a moment after it sent something: an answer that comes soon then finds its event loop turning. Waking a
 * thread whose CPU sleeps costs several times what a small call costs (bench/README.md, one call at a time).
 *
 * Whether that pays is measured, not assumed: with slow methods, thousands of calls in flight or a CPU that others need, the answer comes no sooner,
 * and the thread goes to sleep as any other. Now and then the other way is tried.
 */

/** What a spin wait reads and does; tests have their own. */
export interface SpinClock {
  /** Milliseconds. */
  readonly now: () => number;
  /** Calls back in the next turn of the event loop. */
  readonly nextTurn: (turn: () => void) => void;
}

/** A wake-up and the work after it: on a virtual machine with idle CPUs a wake-up takes 25 us. */
const longestMs = 0.05;

/** What takes longer is alike: no spin wait helps there. */
const mostMs = 0.2;

/** One time in so many the other way is tried: less than one in a hundred, so that a p99 does not show it. */
const trialEvery = 128;

/** How much sooner the answer must come. */
const gain = 0.8;

const realClock: SpinClock = {
  now: () => performance.now(),
  nextTurn: (turn) => void setImmediate(turn),
};

export class SpinWait {
  readonly #clock: SpinClock;
  /** When the first thing was sent that nothing came after; 0 when nothing is awaited. */
  #since = 0;
  #awake = false;
  #turning = false;
  #times = 0;
  /** From sending to arrival: running medians, because a mean would follow every pause. */
  #awakeMs: number = longestMs;
  #asleepMs: number = mostMs;

  constructor(clock: SpinClock = realClock) {
    this.#clock = clock;
  }

  /** Something was sent. */
  begin(): void {
    if (this.#since !== 0) return;
    this.#since = this.#clock.now();
    this.#times += 1;
    const pays = this.#awakeMs < gain * this.#asleepMs;
    this.#awake = this.#times % trialEvery === 0 ? !pays : pays;
    if (this.#awake && !this.#turning) this.#next();
  }

  /** Something arrived. */
  end(): void {
    if (this.#since === 0) return;
    const ms = Math.min(this.#clock.now() - this.#since, mostMs);
    if (this.#awake) this.#awakeMs = nearer(this.#awakeMs, ms);
    else this.#asleepMs = nearer(this.#asleepMs, ms);
    this.#since = 0;
    this.#awake = false;
  }

  #next(): void {
    this.#turning = true;
    this.#clock.nextTurn(() => this.#turn());
  }

  /** The spin wait ends, its measurement does not. */
  #turn(): void {
    this.#turning = false;
    if (this.#since !== 0 && this.#awake && this.#clock.now() < this.#since + longestMs)
      this.#next();
  }
}

/** A step towards the median of what is seen. */
function nearer(median: number, seen: number): number {
  return seen > median ? median * 1.1 : median / 1.1;
}
