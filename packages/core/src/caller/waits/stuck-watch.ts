/**
 * Finds waits that last too long in `get`, in `wait` or for the next item of a stream, and warns of
 * each of them once.
 *
 * A list in order of time and one timer for its first: a wait that ends early costs a few pointers,
 * and no wait at all costs no timer. The timer keeps no process alive.
 */
import { clockMs } from "../../shared/clock.ts";
import type { Stop, TaskScope } from "./task-scope.ts";
import type { Waitable } from "./waitable.ts";
import { timers } from "../../shared/machine/timers.ts";

/**
 * How long a wait may take, what ends it early, and when it is warned of; undefined: as by default.
 */
export interface WaitLimits {
  readonly timeoutMs?: number | undefined;
  /** Tell of this one after so long, instead of after the time of all; 0: never. */
  readonly stuckWarningMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

const none: readonly Waitable[] = [];

/** A wait of running code: its `get`, its `wait`, or that for the next item of a stream. */
export class Wait {
  readonly what: string;
  /** See WaitLimits. */
  timeoutMs: number | undefined = undefined;
  stuckWarningMs: number | undefined = undefined;
  signal: AbortSignal | undefined = undefined;
  waitables: readonly Waitable[] = none;
  /** Its task was cancelled, the session has ended, or it waits for itself. */
  stop: Stop | undefined = undefined;
  /** A cancellation of its task does not end it, but rejects the next wait. */
  isToTheEnd = false;
  /** Nothing ends it but what it waits for: no time, and no signal. */
  isEndless = false;
  /** It ends when so many are ready; undefined: when all are, or one has failed. */
  numReturns: number | undefined = undefined;
  /** The promise that the waiting code was given. */
  answer: Promise<unknown> | undefined = undefined;
  /** Among those of its runtime; set, as what follows, when it begins. */
  id = -1;
  sinceMs = 0;
  /** The call or task that waits, if it is one. */
  task: TaskScope | undefined = undefined;
  /** Tells the task that it does not wait any more. */
  endStopping: (() => void) | undefined = undefined;
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

  constructor(what: string) {
    this.what = what;
  }

  /** Sets limits other than the default ones. */
  limit({ timeoutMs, stuckWarningMs, signal }: WaitLimits): void {
    this.timeoutMs = timeoutMs;
    this.stuckWarningMs = stuckWarningMs;
    this.signal = signal;
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
  begin(wait: Wait): void {
    wait.id = this.#count++;
    wait.sinceMs = clockMs();
    const { stuckWarningMs: afterMs } = wait;
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
  }

  end(wait: Wait): void {
    if (wait.alarm) timers.clearTimeout(wait.alarm);
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
    timers.clearTimeout(this.#timer);
    for (const { alarm } of this.waits()) if (alarm) timers.clearTimeout(alarm);
  }

  #arm(ms: number): void {
    this.#timer = timer(() => this.#sweep(), ms);
  }

  #sweep(): void {
    this.#timer = undefined;
    const latest = clockMs() - this.#afterMs;
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
  return timers.setTimeout(run, Math.min(Math.max(1, ms), 2 ** 31 - 1)).unref();
}
