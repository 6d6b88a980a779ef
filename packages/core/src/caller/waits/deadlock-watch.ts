/**
 * Looks for waits of calls and tasks that may wait for themselves, and reports them to the part
 * that can prove it.
 *
 * Calls pay nothing: a timer runs while an execution waits without a time limit, and looks only at
 * waits that last, ever less often. The timer keeps no process alive, and belongs to no task.
 */
import { clockMs } from "../../shared/clock.ts";
import type { StuckWatch } from "./stuck-watch.ts";
import { outsideTasks, type TaskScope } from "./task-scope.ts";
import type { Waitable } from "./waitable.ts";
import { timers } from "../../shared/machine/timers.ts";

/** Nearly every wait has ended by then. */
const tickMs = 50;

/** From one look at a wait to the next, which is twice the one before. */
const longestMs = 3200;

export interface CycleWatchLink {
  /** Whether others wait for the end of that task, so far as can be seen here. */
  isAwaited(task: TaskScope, waitables: readonly Waitable[]): boolean;
  suspect(tasks: readonly TaskScope[]): void;
}

export class CycleWatch {
  readonly #stuck: StuckWatch;
  readonly #link: CycleWatchLink;
  #timer: NodeJS.Timeout | undefined;

  constructor(stuck: StuckWatch, link: CycleWatchLink) {
    this.#stuck = stuck;
    this.#link = link;
    stuck.onEndless = () => this.#arm();
  }

  close(): void {
    timers.clearTimeout(this.#timer);
  }

  #arm(): void {
    this.#timer ??= outsideTasks(() => timers.setTimeout(() => this.#tick(), tickMs).unref());
  }

  #tick(): void {
    this.#timer = undefined;
    const now = clockMs();
    const suspects = new Set<TaskScope>();
    let isAnyLeft = false;
    for (const wait of this.#stuck.waits()) {
      const { task, waitables, sinceMs } = wait;
      if (task === undefined || !wait.isEndless) continue;
      isAnyLeft = true;
      if (now - sinceMs < tickMs || now < wait.nextLookMs) continue;
      if (!this.#link.isAwaited(task, waitables)) continue;
      wait.lookAgainMs = Math.min(longestMs, 2 * Math.max(tickMs, wait.lookAgainMs));
      wait.nextLookMs = now + wait.lookAgainMs;
      suspects.add(task);
    }
    if (isAnyLeft) this.#arm();
    if (suspects.size > 0) this.#link.suspect([...suspects]);
  }
}
