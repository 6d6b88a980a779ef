/** The samples and other calls that one worker has. */

export class WorkerLoad {
  #samples = 0;
  #paused = 0;
  readonly #changed: () => void;
  /** Set when somebody waits for the last sample. */
  #onIdle: (() => void) | undefined;

  /** @param changed called when there may be room */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /**
   * The samples that were sent and not answered, except those that wait for their next attempt,
   * which take no slot.
   */
  get atWork(): number {
    return this.#samples - this.#paused;
  }

  /** The samples including those that wait for their next attempt. */
  get held(): number {
    return this.#samples;
  }

  take(samples: number): void {
    this.#samples += samples;
  }

  /** Frees the room of samples that `take` took. */
  release(samples: number): void {
    this.#samples -= samples;
    this.#changed();
    if (this.#samples === 0) this.#onIdle?.();
  }

  /** @param samples that wait for their next attempt now */
  pause(samples: number): void {
    this.#paused = samples;
  }

  /** Resolves when there are no samples. */
  async whenIdle(): Promise<void> {
    if (this.#samples === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onIdle = resolve;
    await promise;
  }
}
