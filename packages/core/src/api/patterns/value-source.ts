/**
 * Values of an iterable, read one at a time and never ahead: at once where they are there. One that
 * is not there yet can be waited for beside calls. Knows nothing of calls.
 */
import type { Waitable } from "../../caller/waits/waitable.ts";
import { show } from "../../shared/text/show.ts";

type Read<Value> =
  | { readonly result: IteratorResult<Value, unknown> }
  | { readonly error: unknown };

export class ValueSource<Value> implements Waitable {
  wave = 0;
  readonly #iterator: Iterator<Value> | AsyncIterator<Value>;
  readonly #isAsync: boolean;
  #state: "idle" | "reading" | "over" = "idle";
  /** A read that is over and was not taken. */
  #read: Read<Value> | undefined;
  #watcher: (() => void) | undefined;

  /** @throws TypeError for values that cannot be iterated over */
  constructor(values: Iterable<Value> | AsyncIterable<Value>) {
    // As `for await` does: a missing method of the first kind may be null.
    const isAsync = Reflect.get(Object(values), Symbol.asyncIterator) != null;
    this.#isAsync = isAsync;
    this.#iterator = isAsync
      ? (values as AsyncIterable<Value>)[Symbol.asyncIterator]()
      : (values as Iterable<Value>)[Symbol.iterator]();
  }

  get isOver(): boolean {
    return this.#state === "over" && this.#read === undefined;
  }

  /** Whether nothing is awaited. */
  get isReady(): boolean {
    return this.#state !== "reading";
  }

  watch(watcher: () => void): void {
    if (this.isReady) watcher();
    else this.#watcher = watcher;
  }

  unwatch(watcher: () => void): void {
    if (this.#watcher === watcher) this.#watcher = undefined;
  }

  /**
   * Returns the next value; undefined: it is not there yet, and `watch` tells when to ask again, or
   * there is none. Throws the errors of the values.
   */
  take(): { readonly value: Value } | undefined {
    if (this.#state === "idle" && this.#read === undefined) {
      const result = this.#next();
      if (result !== undefined) return result.done === true ? undefined : result;
    }
    const read = this.#read;
    if (read === undefined) return undefined;
    this.#read = undefined;
    if ("error" in read) throw read.error;
    return read.result.done === true ? undefined : read.result;
  }

  /**
   * Ends the values, as `for await` does that is left. A read that hangs cannot be waited for: what
   * it gives is dropped, and the values end then.
   */
  async close(): Promise<void> {
    const state = this.#state;
    this.#state = "over";
    if (state === "over") return;
    const ended = this.#iterator.return?.();
    if (state === "idle" || !this.#isAsync) await ended;
    else Promise.resolve(ended).catch(() => undefined);
  }

  /** Returns what is there at once. */
  #next(): IteratorResult<Value, unknown> | undefined {
    // An iterator that throws has ended.
    this.#state = "over";
    const next = this.#iterator.next();
    if (this.#isAsync) {
      this.#await(Promise.resolve(next));
      return undefined;
    }
    const result = checked(next);
    if (result.done === true) return result;
    const { value } = result;
    this.#state = "idle";
    if (!isThenable(value)) return { done: false, value };
    this.#await(Promise.resolve(value).then((late) => ({ done: false, value: late })));
    return undefined;
  }

  #await(next: Promise<IteratorResult<Value, unknown>>): void {
    this.#state = "reading";
    next.then(checked).then(
      (result) => this.#arrived({ result }, result.done === true),
      // The iterator of a list of promises goes on after one that rejects.
      (error: unknown) => this.#arrived({ error }, this.#isAsync),
    );
  }

  #arrived(read: Read<Value>, isOver: boolean): void {
    if (this.#state === "over") return;
    this.#read = read;
    this.#state = isOver ? "over" : "idle";
    const watcher = this.#watcher;
    this.#watcher = undefined;
    watcher?.();
  }
}

function checked<Value>(
  result: IteratorResult<Value, unknown> | PromiseLike<unknown>,
): IteratorResult<Value, unknown> {
  if (typeof result === "object" && result !== null && !("then" in result)) return result;
  throw new TypeError(`Iterator result ${show(result)} is not an object`);
}

function isThenable(value: unknown): boolean {
  if (typeof value !== "object" || value === null || !("then" in value)) return false;
  return typeof value.then === "function";
}
