/**
 * Keeps a thread awake for a moment after it sent something, so that a quick answer finds its event
 * loop turning. Waking a thread whose CPU sleeps costs several times as much as a small call
 * (bench/README.md, one call at a time). A channel that shares memory with its peer (a
 * `SpinSource`) is looked at between the turns of the loop, and for a few microseconds within one.
 *
 * Measurements decide whether that pays: with slow methods, thousands of calls in flight or a CPU
 * that others need, the answer comes no sooner, and the thread sleeps as usual. Now and then a
 * trial measures the alternative.
 */
import { msOf } from "../shared/clock.ts";
import { timers } from "../shared/machine/timers.ts";

/** The clock and the event loop of a spin wait; tests replace it. */
export interface SpinClock {
  /** Milliseconds. */
  readonly now: () => number;
  /** Calls back in the next turn of the event loop. */
  readonly nextTurn: (turn: () => void) => void;
}

/** Where batches arrive that cause no event while this thread is awake. */
export interface SpinSource {
  /** Delivers what has arrived; returns whether anything had. */
  readonly take: () => boolean;
  /** Tells the peer whether this thread looks; after `false`, `take` is called once more. */
  readonly setLooking: (isLooking: boolean) => void;
}

/**
 * The wake-up of a peer, and its work, in ms: on a virtual machine with idle CPUs a wake-up takes
 * 25 to 45 us. A shorter spin wait would always end before the answer of a peer that sleeps, so
 * neither side would find that it pays, although both awake answer five times as fast.
 */
const longestMs = 0.1;

/** Longer times count as this one, in ms: no spin wait helps there. */
const mostMs = 0.4;

/**
 * Waits between two trials of the alternative: at first, so that a p99 does not show them, and at
 * most. Each trial that confirms what is done doubles them: on a CPU that others need one costs as
 * much as a hundred calls.
 */
const leastBetweenTrials = 128;
const mostBetweenTrials = 8192;

/** The times have changed if they are so many times what they were at the last trial, or less. */
const change = 2;

/** How far an observation moves a median. Trials are few, so each of them counts for more. */
const usualStep = 1.1;
const trialStep = 1.5;

/** The answer must come this much sooner. */
const gain = 0.8;

/**
 * One look at a source, in ms: the answer to a small call comes sooner, and whatever else the
 * thread has to do waits no longer than that.
 */
const lookMs = 0.005;

// Taken once: a simulated world of the tests has no part in how a thread waits for another.
const { setImmediate: nextTurn, hrtime: reading } = timers;

const realClock: SpinClock = {
  now: () => msOf(reading()),
  nextTurn: (turn) => void nextTurn(turn),
};

export class SpinWait {
  /** Spin waits of this thread whose turns go on: two take turns, and neither holds the loop. */
  static #turningCount = 0;

  readonly #source: SpinSource | undefined;
  readonly #clock: SpinClock;
  /** When the first unanswered message was sent; 0 when none is. */
  #since = 0;
  #awake = false;
  #turning = false;
  /** Waits until the next trial, and between the last one and that. */
  #untilTrial = leastBetweenTrials;
  #betweenTrials = leastBetweenTrials;
  #isTrial = false;
  /** The way of the last trial, and how long it took in ms. */
  #paidAtTrial = true;
  #usualMsAtTrial: number = mostMs;
  /**
   * The times from sending to arrival, in ms: running medians, because a mean would follow every
   * pause.
   */
  #awakeMs: number = longestMs / 2;
  #asleepMs: number = mostMs;

  constructor(source?: SpinSource, clock: SpinClock = realClock) {
    this.#source = source;
    this.#clock = clock;
  }

  /** Begins a wait: something was sent. */
  begin(): void {
    if (this.#since !== 0) return;
    this.#since = this.#clock.now();
    const pays = this.#pays;
    this.#isTrial = this.#isTimeForTrial();
    this.#awake = this.#isTrial !== pays;
    if (this.#awake && !this.#turning) this.#start();
  }

  /**
   * An answer that comes after the spin wait has ended comes no sooner by it. On one CPU, where the
   * peer answers only when this thread sleeps, that is known before a trial.
   */
  get #pays(): boolean {
    return this.#awakeMs < longestMs && this.#awakeMs < gain * this.#asleepMs;
  }

  #isTimeForTrial(): boolean {
    this.#untilTrial -= 1;
    if (this.#untilTrial <= 0) return true;
    return this.#untilTrial % leastBetweenTrials === 0 && !this.#isAsAtTrial;
  }

  /** Whether what is done, and how long it takes, is what it was at the last trial. */
  get #isAsAtTrial(): boolean {
    const [before, usual] = [this.#usualMsAtTrial, this.#usualMs];
    return this.#pays === this.#paidAtTrial && usual < change * before && before < change * usual;
  }

  get #usualMs(): number {
    return this.#pays ? this.#awakeMs : this.#asleepMs;
  }

  /** @param isConfirmed whether the alternative took no less */
  #tried(isConfirmed: boolean): void {
    this.#betweenTrials =
      isConfirmed && this.#isAsAtTrial
        ? Math.min(2 * this.#betweenTrials, mostBetweenTrials)
        : leastBetweenTrials;
    this.#untilTrial = this.#betweenTrials;
    this.#paidAtTrial = this.#pays;
    this.#usualMsAtTrial = this.#usualMs;
  }

  /** Ends the wait: something arrived. */
  end(): void {
    if (this.#since === 0) return;
    const ms = Math.min(this.#clock.now() - this.#since, mostMs);
    const isConfirmed = this.#awake ? ms >= gain * this.#asleepMs : this.#awakeMs < gain * ms;
    const step = this.#isTrial ? trialStep : usualStep;
    if (this.#awake) this.#awakeMs = nearer(this.#awakeMs, ms, step);
    else this.#asleepMs = nearer(this.#asleepMs, ms, step);
    if (this.#isTrial) this.#tried(isConfirmed);
    this.#since = 0;
    this.#awake = false;
  }

  #start(): void {
    this.#turning = true;
    SpinWait.#turningCount += 1;
    this.#source?.setLooking(true);
    this.#next();
  }

  #next(): void {
    this.#clock.nextTurn(() => this.#turn());
  }

  /** The spin wait may end while its measurement goes on. */
  #turn(): void {
    if (this.#isSpinning()) {
      // The next turn is asked for first: a receiver that throws must not end the looking.
      this.#next();
      this.#look();
      return;
    }
    this.#turning = false;
    SpinWait.#turningCount -= 1;
    this.#source?.setLooking(false);
    this.#source?.take();
  }

  #isSpinning(): boolean {
    return this.#since !== 0 && this.#awake && this.#clock.now() < this.#since + longestMs;
  }

  #look(): void {
    const source = this.#source;
    if (source === undefined || source.take() || SpinWait.#turningCount > 1) return;
    const until = this.#clock.now() + lookMs;
    while (!source.take() && this.#clock.now() < until);
  }
}

/** Moves the median one step towards an observation. */
function nearer(median: number, seen: number, step: number): number {
  return seen > median ? median * step : median / step;
}
