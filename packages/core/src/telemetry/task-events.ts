/**
 * Events of calls and tasks, recorded where they happen: plain data in a ring that drops the
 * oldest.
 *
 * Times are milliseconds of the machine's clock (shared/clock.ts). A call is identified by its
 * owner and number, which make its task id.
 */

interface OfCall {
  readonly owner: string;
  readonly sequence: number;
  /** `Class.method`, or the task's name. */
  readonly name: string;
}

export type TaskEvent =
  /** At the caller: from `.remote()` until it returned. */
  | (OfCall & {
      readonly kind: "submit";
      readonly startMs: number;
      readonly endMs: number;
      readonly actorId: string | undefined;
      readonly parentId: string | undefined;
    })
  /** At the caller: the call settled with a value or an error. */
  | (OfCall & {
      readonly kind: "settle";
      readonly atMs: number;
      readonly error: { readonly name: string; readonly message: string } | undefined;
    })
  /** At the host that ran the call. */
  | (OfCall & {
      readonly kind: "execute";
      readonly startMs: number;
      /** When the arguments were decoded. */
      readonly decodedMs: number;
      readonly endMs: number;
      readonly ok: boolean;
    })
  /** A caller waited for values. */
  | {
      readonly kind: "wait";
      readonly what: string;
      readonly count: number;
      readonly taskId: string | undefined;
      readonly startMs: number;
      readonly endMs: number;
    };

/** Ray keeps this many events for a worker. */
export const keptEvents = 100_000;

export class TaskEvents {
  readonly #limit: number;
  #events: TaskEvent[] = [];
  #next = 0;
  #onFirst: (() => void) | undefined;
  readonly #onEvent: ((event: TaskEvent) => void) | undefined;

  /** @param onEvent is given each event */
  constructor(limit: number = keptEvents, onEvent?: (event: TaskEvent) => void) {
    this.#limit = limit;
    this.#onEvent = onEvent;
  }

  /** Calls back when there is something to take, once after each `take`. */
  whenDirty(onFirst: () => void): void {
    this.#onFirst = onFirst;
  }

  add(event: TaskEvent): void {
    this.#onEvent?.(event);
    if (this.#events.length === 0) this.#onFirst?.();
    if (this.#events.length < this.#limit) {
      this.#events.push(event);
      return;
    }
    this.#events[this.#next] = event;
    this.#next = (this.#next + 1) % this.#limit;
  }

  /** Returns the kept events, the oldest first. */
  all(): readonly TaskEvent[] {
    return [...this.#events.slice(this.#next), ...this.#events.slice(0, this.#next)];
  }

  take(): readonly TaskEvent[] {
    const events = this.all();
    this.#events = [];
    this.#next = 0;
    return events;
  }
}
