/**
 * The samples of a stream, read one at a time: in the same turn where they are there, as those of a
 * list. Knows nothing of scores.
 */

/** Samples as they are given, or as they come. */
export type Samples<Sample> = Iterable<Sample> | AsyncIterable<Sample>;

/** Called once for each read. */
export interface InputReader<Sample> {
  readonly arrived: (sample: Sample) => void;
  readonly ended: () => void;
  /** @param error of the input, or of one of the other two */
  readonly failed: (error: unknown) => void;
}

export class StreamInput<Sample> {
  readonly #iterator: AsyncIterator<Sample> | Iterator<Sample>;
  readonly #reader: InputReader<Sample>;
  #state: "idle" | "reading" | "exhausted" = "idle";

  constructor(samples: Samples<Sample>, reader: InputReader<Sample>) {
    this.#iterator =
      Symbol.asyncIterator in samples
        ? samples[Symbol.asyncIterator]()
        : samples[Symbol.iterator]();
    this.#reader = reader;
  }

  /** Whether the last read is over, and there may be more. */
  get isIdle(): boolean {
    return this.#state === "idle";
  }

  get isExhausted(): boolean {
    return this.#state === "exhausted";
  }

  read(): void {
    this.#state = "reading";
    try {
      const next = this.#iterator.next();
      if (!("then" in next)) return this.#take(next);
      next
        .then((result) => this.#take(result))
        .then(undefined, (error: unknown) => this.#failed(error));
    } catch (error) {
      this.#failed(error);
    }
  }

  /** An input that is a file closes it. One that hangs in a read cannot be waited for. */
  async close(): Promise<void> {
    if (this.#state === "idle") await this.#iterator.return?.();
    else if (this.#state === "reading") void this.#iterator.return?.();
  }

  #take({ done, value }: IteratorResult<Sample, unknown>): void {
    this.#state = done === true ? "exhausted" : "idle";
    if (done === true) this.#reader.ended();
    else this.#reader.arrived(value);
  }

  #failed(error: unknown): void {
    this.#state = "exhausted";
    this.#reader.failed(error);
  }
}
