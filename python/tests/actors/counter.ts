/** Called by the tests of actors in Python. */
import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

export class Counter {
  #count: number;
  #yielded = 0;
  #closed = 0;
  #aborted = 0;
  #waiting = 0;
  readonly #released = Promise.withResolvers<void>();

  constructor(count: number = 0, { by = 0 }: { by?: number } = {}) {
    if (count < 0) throw new RangeError(`count must not be negative, and is ${count}`);
    this.#count = count + by;
  }

  add(by: number): number {
    this.#count += by;
    return this.#count;
  }

  async addLater(by: number): Promise<number> {
    await sleep(1);
    return this.add(by);
  }

  options(first: unknown, rest?: unknown): unknown {
    return [first, rest ?? null];
  }

  echo(value: unknown): unknown {
    return value;
  }

  describe(value: unknown): string {
    return Object.prototype.toString.call(value).slice(8, -1);
  }

  sum(values: Float64Array & { shape?: number[] }): unknown {
    return [values.reduce((sum, one) => sum + one, 0), values.shape ?? null];
  }

  produced(): unknown {
    return {
      none: undefined,
      whole: 1,
      map: new Map([["a", 1]]),
      set: new Set([1]),
      when: new Date(0),
    };
  }

  fail(): never {
    const error = new RangeError("too much", { cause: new TypeError("inside") });
    throw Object.assign(error, { code: "TOO_MUCH" });
  }

  failWithText(): never {
    // oxlint-disable-next-line no-throw-literal
    throw "a text";
  }

  functions(): unknown {
    return { inner: [Symbol("x")] };
  }

  *numbers(count: number): Generator<number> {
    try {
      for (let number = 0; number < count; number += 1) {
        this.#yielded += 1;
        yield number;
      }
    } finally {
      this.#closed += 1;
    }
  }

  /** An iterator without end, after `release`; it is closed by its reader. */
  async onesLater(): Promise<IterableIterator<number>> {
    await this.#released.promise;
    const result = (done: boolean) => ({ done, value: 1 });
    return {
      next: () => result(false),
      return: () => {
        this.#closed += 1;
        return result(true);
      },
      [Symbol.iterator]() {
        return this;
      },
    };
  }

  release(): void {
    this.#released.resolve();
  }

  async *chunks(count: number): AsyncGenerator<Float32Array> {
    const chunk = new Float32Array(4);
    for (let number = 0; number < count; number += 1) {
      await sleep(0);
      // One memory for all of them.
      yield chunk.fill(number);
    }
  }

  async *forever(): AsyncGenerator<number> {
    try {
      for (let number = 0; ; number += 1) {
        await sleep(1);
        yield number;
      }
    } finally {
      this.#closed += 1;
    }
  }

  *broken(): Generator<number> {
    yield 1;
    throw new RangeError("after one");
  }

  seen(): unknown {
    return { yielded: this.#yielded, closed: this.#closed, aborted: this.#aborted };
  }

  wait(signal: AbortSignal): Promise<never> {
    return new Promise((_, reject) => {
      this.#waiting += 1;
      signal.addEventListener("abort", () => {
        this.#aborted += 1;
        reject(signal.reason);
      });
    });
  }

  /** Calls of `wait` so far. */
  waiting(): number {
    return this.#waiting;
  }

  never(): Promise<never> {
    return new Promise(() => undefined);
  }

  print(text: string): void {
    console.log(text);
    console.error(`error ${text}`);
  }

  printLines(count: number): void {
    for (let number = 0; number < count; number += 1) console.log(`line ${number}`);
  }

  exit(code: number): void {
    process.exit(code);
  }

  pid(): number {
    return process.pid;
  }

  run(): string {
    return "ran";
  }

  /** A process that would outlive this one. */
  spawn(): number | undefined {
    return spawn("sleep", ["1000"], { stdio: "ignore" }).pid;
  }

  spin(): never {
    for (;;);
  }

  __ray_shutdown__(): void {
    console.log("shut down");
  }
}

export function double(number: number): number {
  return number * 2;
}

export const notCallable = 5;
