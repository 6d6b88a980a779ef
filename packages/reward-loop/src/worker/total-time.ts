/**
 * The total time of samples: all attempts of one and the pauses between them. Samples that begin in
 * one turn of the event loop have one timer, because as many wait as are asked at once.
 *
 * Invariant: a sample is told that its time is over at most once, and never after it has left. A
 * timer ends with the last sample that it is for.
 */

export interface TimedSample {
  /** Its total time is over. */
  late(): void;
}

export class TotalTimes {
  readonly totalMs: number;
  /** That of this turn. */
  #timer: SharedTimer | undefined;

  constructor(totalMs: number) {
    this.totalMs = totalMs;
  }

  /** Returns the timer that the sample is to leave when it has its outcome, by its place there. */
  begin(sample: TimedSample): { readonly timer: SharedTimer; readonly place: number } {
    if (this.#timer === undefined) {
      this.#timer = new SharedTimer(this.totalMs);
      queueMicrotask(() => {
        this.#timer = undefined;
      });
    }
    const timer = this.#timer;
    return { timer, place: timer.add(sample) };
  }
}

export class SharedTimer {
  readonly #samples: (TimedSample | undefined)[] = [];
  readonly #timer: NodeJS.Timeout;
  #left = 0;

  constructor(ms: number) {
    this.#timer = setTimeout(() => this.#over(), ms);
  }

  add(sample: TimedSample): number {
    this.#left += 1;
    return this.#samples.push(sample) - 1;
  }

  /** Does nothing where it has left, or was late. */
  leave(place: number): void {
    if (this.#samples[place] === undefined) return;
    this.#samples[place] = undefined;
    this.#left -= 1;
    if (this.#left === 0) clearTimeout(this.#timer);
  }

  #over(): void {
    for (let place = 0; place < this.#samples.length; place++) {
      const sample = this.#samples[place];
      this.leave(place);
      sample?.late();
    }
  }
}
