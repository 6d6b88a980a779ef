/**
 * Finds waits that last too long in `get`, in `wait` or for the next item of a stream, and warns of
 * each of them once.
 *
 * A list in order of time and one timer for its first: a wait that ends early costs a few pointers,
 * and no wait at all costs no timer. The timer keeps no process alive.
 */
import { sharedMs } from "../../shared/clock.ts";
import { currentTask, type Stop, type TaskScope } from "./task-scope.ts";
import type { Waitable } from "./waitable.ts";

/** How somebody waits. */
export interface WaitHow {
  /** Tell of this one after so long, instead of after the time of all; 0: never. */
  readonly stuckWarningMs?: number | undefined;
  /** Ends it early. */
  readonly stop?: Stop | undefined;
  /** Nothing ends it but what it waits for: no time, and no signal. */
  readonly isEndless?: boolean;
  /** It ends when so many are ready; undefined: when all are, or one has failed. */
  readonly numReturns?: number | undefined;
}

/** One that waits. */
export class Wait {
  /** Among those of its runtime. */
  readonly id: number;
  readonly what: string;
  readonly waitables: readonly Waitable[];
  readonly sinceMs: number = performance.now();
  /** The call or task that waits, if it is one. */
  readonly task: TaskScope | undefined;
  /** Ends it early. */
  readonly stop: Stop | undefined;
  readonly isEndless: boolean;
  readonly numReturns: number | undefined;
  /** When it is looked at as one that may wait for itself, and how long after that again. */
  nextLookMs = 0;
  lookAgainMs = 0;
  /** That it waits for itself. */
  isReported = false;
  previous: Wait | undefined = undefined;
  next: Wait | undefined = undefined;
  /**
   * A timer of its own, where the wait has a time of its own; undefined: it has none, null: it is
   * never warned of.
   */
  alarm: NodeJS.Timeout | null | undefined = undefined;

  constructor(
    id: number,
    what: string,
    waitables: readonly Waitable[],
    { stop, isEndless = false, numReturns }: WaitHow,
  ) {
    this.id = id;
    this.stop = stop;
    this.isEndless = isEndless;
    this.numReturns = numReturns;
    this.what = what;
    this.waitables = waitables;
    this.task = currentTask();
  }

  /** As of clockMs(). */
  get beganMs(): number {
    return sharedMs(this.sinceMs);
  }
}

export class StuckWatch {
  readonly #afterMs: number;
  readonly #tell: (stuck: readonly Wait[]) => void;
  #first: Wait | undefined;
  #last: Wait | undefined;
  /** The first that was not told of; those before it were. */
  #untold: Wait | undefined;
  #timer: NodeJS.Timeout | undefined;
  #count = 0;
  /** Hears of each wait of a task that nothing else ends. */
  onEndless: (() => void) | undefined;

  /** @param afterMs 0 or less: never tell */
  constructor(afterMs: number, tell: (stuck: readonly Wait[]) => void) {
    this.#afterMs = afterMs;
    this.#tell = tell;
  }

  /** The code that begins a wait ends it. */
  begin(what: string, waitables: readonly Waitable[], how: WaitHow): Wait {
    const wait = new Wait(this.#count++, what, waitables, how);
    const { stuckWarningMs: afterMs } = how;
    if (wait.isEndless && wait.task !== undefined) this.onEndless?.();
    if (afterMs !== undefined) {
      wait.alarm = afterMs > 0 ? timer(() => this.#tell([wait]), afterMs) : null;
    }
    wait.previous = this.#last;
    if (this.#last === undefined) this.#first = wait;
    else this.#last.next = wait;
    this.#last = wait;
    this.#untold ??= wait;
    if (this.#timer === undefined && this.#afterMs > 0) this.#arm(this.#afterMs);
    return wait;
  }

  end(wait: Wait): void {
    if (wait.alarm) clearTimeout(wait.alarm);
    const { previous, next } = wait;
    if (this.#untold === wait) this.#untold = next;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
  }

  /** Who waits now, the first to begin first. */
  *waits(): Iterable<Wait> {
    for (let wait = this.#first; wait !== undefined; wait = wait.next) yield wait;
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const { alarm } of this.waits()) if (alarm) clearTimeout(alarm);
  }

  #arm(ms: number): void {
    this.#timer = timer(() => this.#sweep(), ms);
  }

  #sweep(): void {
    this.#timer = undefined;
    const latest = performance.now() - this.#afterMs;
    const stuck: Wait[] = [];
    let wait = this.#untold;
    for (; wait !== undefined && wait.sinceMs <= latest; wait = wait.next) {
      if (wait.alarm === undefined) stuck.push(wait);
    }
    this.#untold = wait;
    if (wait !== undefined) this.#arm(wait.sinceMs - latest);
    if (stuck.length > 0) this.#tell(stuck);
  }
}

function timer(run: () => void, ms: number): NodeJS.Timeout {
  return setTimeout(run, Math.min(Math.max(1, ms), 2 ** 31 - 1)).unref();
}
