/** Generators that Python reads: each runs only as far ahead as the reader allows. */
export type Generated = AsyncIterator<unknown> | Iterator<unknown>;

/**
 * Returns the iterator of a generator, of anything else that is both iterator and iterable, and of
 * a ReadableStream; undefined for lists, maps and texts, which are values.
 */
export function generatedBy(value: unknown): Generated | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (value instanceof ReadableStream) return value.values();
  const isIterable = Symbol.asyncIterator in value || Symbol.iterator in value;
  return isIterable && isIterator(value) ? value : undefined;
}

function isIterator(value: object): value is Generated {
  return "next" in value && typeof value.next === "function";
}

export interface StreamReader {
  item(value: unknown): void;
  end(): void;
  failed(error: unknown): void;
}

/** One stream under way. */
export class Stream {
  readonly #source: Generated;
  readonly #reader: StreamReader;
  /** Items that the reader still takes. */
  #credit = 0;
  #state: "idle" | "running" | "over" = "idle";

  constructor(source: Generated, reader: StreamReader) {
    this.#source = source;
    this.#reader = reader;
  }

  /** The reader takes that many items more. */
  async allow(items: number): Promise<void> {
    this.#credit += items;
    if (this.#state !== "idle") return;
    this.#state = "running";
    try {
      while (this.#credit > 0 && !this.#isOver()) {
        const { done, value } = await this.#source.next();
        if (this.#isOver()) return;
        if (done === true) {
          this.#state = "over";
          this.#reader.end();
          return;
        }
        this.#credit -= 1;
        this.#reader.item(value);
      }
      if (!this.#isOver()) this.#state = "idle";
    } catch (error) {
      if (!this.#isOver()) this.#reader.failed(error);
      this.#state = "over";
    }
  }

  /** The reader has left: the generator's `finally` blocks run. */
  async cancel(): Promise<void> {
    this.#state = "over";
    await this.#source.return?.();
  }

  #isOver(): boolean {
    return this.#state === "over";
  }
}
