/**
 * Collects garbage from time to time in a thread that holds what others wait to have back: borrowed
 * refs and handles.
 *
 * Counts of refs and handles follow the collector, and a thread without much to do has no reason to
 * run it; until it does, an actor would live, and a big value stay. So it runs after a second in
 * which there was something to do, and takes 2 % of the time at most. While nothing comes and
 * nothing is let go it runs ever more rarely: a thread may hold the same for hours, and each
 * collection takes some tens of milliseconds.
 */
import { performance } from "node:perf_hooks";
import { clockMs } from "../../shared/clock.ts";
import { outsideTasks } from "../waits/task-scope.ts";
import { collectGarbage } from "../../protocol/shared-memory.ts";
import { timers } from "../../shared/machine/timers.ts";

const leastPauseMs = 1000;
const mostPauseMs = 16_000;

/** So many times what a collection took pass before the next. */
const pauseFactor = 50;

/** After so many ms it is known what a collection has let go. */
const lookMs = 100;

/** Less than this was nothing that could have dropped anything. */
const leastActiveMs = 1;

/** The thread of an idle collector; tests replace it. */
export interface CollectedThread {
  readonly collect: () => void;
  /** For how long it has worked, in ms. */
  readonly activeMs: () => number;
}

const thisThread: CollectedThread = {
  collect: collectGarbage,
  activeMs: () => performance.eventLoopUtilization().active,
};

export class IdleCollector {
  readonly #held: () => number;
  readonly #thread: CollectedThread;
  #timer: NodeJS.Timeout | undefined;
  #look: NodeJS.Timeout | undefined;
  #pauseMs = leastPauseMs;
  /** Held at the last collection; undefined where something has come since. */
  #heldThen: number | undefined;
  /** The pause that the last collection asks for by what it took. */
  #restMs = 0;
  /** Its thread's time of work at the last collection. */
  #activeThen = -Infinity;

  /** @param held how much is held that a collection could let go */
  constructor(held: () => number, thread: CollectedThread = thisThread) {
    this.#held = held;
    this.#thread = thread;
  }

  /** Something has come that is held. */
  arm(): void {
    this.#heldThen = undefined;
    if (this.#pauseMs > leastPauseMs && this.#restMs < this.#pauseMs) this.close();
    if (this.#timer === undefined) this.#start(Math.max(leastPauseMs, this.#restMs));
  }

  #start(pauseMs: number): void {
    this.close();
    this.#pauseMs = pauseMs;
    this.#timer = outsideTasks(() => timers.setTimeout(() => this.#tick(), pauseMs).unref());
  }

  close(): void {
    timers.clearTimeout(this.#timer);
    timers.clearTimeout(this.#look);
    this.#timer = undefined;
  }

  #tick(): void {
    this.#timer = undefined;
    const held = this.#held();
    if (held === 0) return;
    const isIdle = this.#thread.activeMs() - this.#activeThen <= leastActiveMs;
    if (!isIdle) {
      const start = clockMs();
      this.#thread.collect();
      this.#restMs = pauseFactor * (clockMs() - start);
      this.#activeThen = this.#thread.activeMs();
    }
    const longer = isIdle ? this.#pauseMs : Math.min(2 * this.#pauseMs, mostPauseMs);
    const pauseMs = held === this.#heldThen ? longer : leastPauseMs;
    this.#heldThen = held;
    this.#start(Math.max(pauseMs, this.#restMs));
    if (!isIdle) this.#lookSoon(held);
  }

  /** Objects that were let go may have held others, which are looked for in any case. */
  #lookSoon(before: number): void {
    const look = (): void => {
      if (this.#held() >= before) return;
      this.#activeThen = -Infinity;
      this.arm();
    };
    this.#look = outsideTasks(() => timers.setTimeout(look, lookMs).unref());
  }
}
