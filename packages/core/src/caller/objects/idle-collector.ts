/**
 * Collects garbage from time to time in a thread that holds what others wait to have back: borrowed
 * refs and handles.
 *
 * Counts of refs and handles follow the collector, and a thread without much to do has no reason to
 * run it; until it does, an actor would live, and a big value stay. So it runs after a second in
 * which there was something to do, and takes 2 % of the time at most.
 */
import { performance } from "node:perf_hooks";
import { outsideTasks } from "../waits/task-scope.ts";
import { collectGarbage } from "../../protocol/shared-memory.ts";

const leastPauseMs = 1000;

/** So many times what a collection took pass before the next. */
const pauseFactor = 50;

/** Less than this was nothing that could have dropped anything. */
const activeMs = 1;

export class IdleCollector {
  readonly #held: () => number;
  #timer: NodeJS.Timeout | undefined;
  #pauseMs = leastPauseMs;
  #since: ReturnType<typeof performance.eventLoopUtilization> | undefined;

  /** @param held how much is held that a collection could let go */
  constructor(held: () => number) {
    this.#held = held;
  }

  /** Something is held. */
  arm(): void {
    if (this.#timer !== undefined) return;
    this.#timer = outsideTasks(() => setTimeout(() => this.#tick(), this.#pauseMs).unref());
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #tick(): void {
    this.#timer = undefined;
    if (this.#held() === 0) return;
    const { active } = performance.eventLoopUtilization(this.#since);
    if (this.#since === undefined || active > activeMs) {
      const start = performance.now();
      collectGarbage();
      this.#pauseMs = Math.max(leastPauseMs, pauseFactor * (performance.now() - start));
      this.#since = performance.eventLoopUtilization();
    }
    this.arm();
  }
}
