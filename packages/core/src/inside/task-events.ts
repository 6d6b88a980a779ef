/**
 * What happened to calls and tasks, noted where it happened: plain data in a ring that forgets the oldest.
 *
 * Times are of the machine's clock (shared/clock.ts), in milliseconds. A call is known by its owner and number, from which its task id is made.
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
  /** At the caller: it has its value, or failed. */
  | (OfCall & {
      readonly kind: "settle";
      readonly atMs: number;
      readonly error: { readonly name: string; readonly message: string } | undefined;
    })
  /** Where it ran. */
  | (OfCall & {
      readonly kind: "execute";
      readonly startMs: number;
      /** Its arguments are decoded. */
      readonly decodedMs: number;
      readonly endMs: number;
      readonly ok: boolean;
    })
  /** Somebody waited. */
  | {
      readonly kind: "wait";
      readonly what: string;
      readonly count: number;
      readonly taskId: string | undefined;
      readonly startMs: number;
      readonly endMs: number;
    };

/** As many as Ray keeps for a worker. */
export const keptEvents = 100_000;

export class TaskEvents {
  readonly #limit: number;
  #events: TaskEvent[] = [];
  #next = 0;
  #onFirst: (() => void) | undefined;

  constructor(limit: number = keptEvents) {
    this.#limit = limit;
  }

  /** Calls back when there is something to take, once for each time that it was taken. */
  whenDirty(onFirst: () => void): void {
    this.#onFirst = onFirst;
  }

  add(event: TaskEvent): void {
    if (this.#events.length === 0) this.#onFirst?.();
    if (this.#events.length < this.#limit) {
      this.#events.push(event);
      return;
    }
    this.#events[this.#next] = event;
    this.#next = (this.#next + 1) % this.#limit;
  }

  /** Those that are kept, the oldest first. */
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
