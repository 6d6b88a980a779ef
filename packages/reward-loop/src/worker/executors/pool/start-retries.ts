/**
 * Starts of executors that failed. The first ones are final: the user's modules do not load. After
 * one has loaded them, others are started again, each time after a longer pause.
 */

/** Failed starts after a first success: three quarters of a minute in all, to mend a module in. */
const MOST_FAILED_STARTS = 8;
const restartMs = { first: 500, longest: 16_000 };

/** The pause after so many failed starts in a row, in ms. */
export function startPauseMs(failures: number): number {
  return Math.min(restartMs.first * 2 ** (failures - 1), restartMs.longest);
}

export class StartRetries {
  /** Executors that are loading. */
  readonly starting: Set<{ readonly isReady: boolean }> = new Set();
  readonly #again: () => void;
  readonly #pauseMs: (failures: number) => number;
  #hasLoaded = false;
  /** Whether all executors of the pool have been there at once. */
  haveAllLoaded: boolean = false;
  #failures = 0;
  /** Set until executors are started again. */
  #pause: NodeJS.Timeout | undefined;

  /** @param again starts executors */
  constructor(again: () => void, pauseMs: (failures: number) => number = startPauseMs) {
    this.#again = again;
    this.#pauseMs = pauseMs;
  }

  get isPaused(): boolean {
    return this.#pause !== undefined;
  }

  /** Failed starts since the last success. */
  get failures(): number {
    return this.#failures;
  }

  /** Whether the failed start that was counted last is the first one too many. */
  get haveJustBecomeTooMany(): boolean {
    return this.#failures === MOST_FAILED_STARTS + 1;
  }

  /** An executor has loaded the user's modules. */
  loaded(): void {
    this.#hasLoaded = true;
    this.#failures = 0;
  }

  /**
   * Counts a failed start, unless one of its round has been counted: several executors fail for one
   * reason. Returns whether another one is worth it.
   */
  failed(): boolean {
    if (this.#pause === undefined) this.#failures += 1;
    return this.#hasLoaded && this.#failures <= MOST_FAILED_STARTS;
  }

  /** Starts executors after a pause. */
  later(): void {
    if (this.#pause !== undefined) return;
    this.#pause = setTimeout(() => {
      this.#pause = undefined;
      this.#again();
    }, this.#pauseMs(this.#failures));
  }

  cancel(): void {
    clearTimeout(this.#pause);
  }
}
