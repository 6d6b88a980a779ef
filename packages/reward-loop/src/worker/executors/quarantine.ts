/**
 * Where suspects are tried, one at a time: an executor of its own, there only while there are some.
 * A suspect that was lost alone runs in a thread that has run nothing else.
 */

import type { ExecutorLane } from "./executor-lane.ts";
import type { Job } from "./job.ts";

export class Quarantine {
  readonly #newLane: () => ExecutorLane;
  readonly #isPaused: () => boolean;
  #lane: ExecutorLane | undefined;
  #suspects: Job[] = [];

  /** @param isPaused whether no executor may be started now */
  constructor(newLane: () => ExecutorLane, isPaused: () => boolean) {
    this.#newLane = newLane;
    this.#isPaused = isPaused;
  }

  push(...suspects: readonly Job[]): void {
    this.#suspects.push(...suspects);
  }

  /** Puts suspects before all others. */
  unshift(...suspects: readonly Job[]): void {
    this.#suspects.unshift(...suspects);
  }

  /** Runs the next suspect where there is room for it. */
  pump(): void {
    if (this.#isPaused()) return;
    if (this.#lane !== undefined && this.#lane.load > 0) return;
    const [suspect] = this.#suspects;
    if (suspect === undefined) {
      void this.stop();
      return;
    }
    const { isFresh = true, isClean = true } = this.#lane ?? {};
    if (!isClean || (suspect.place === "fresh" && !isFresh)) void this.stop();
    this.#lane ??= this.#newLane();
    if (!this.#lane.hasRoom) return;
    this.#suspects.shift();
    this.#lane.run(suspect);
  }

  /** A lane of the pool has ended, which may be this one. */
  ended(lane: ExecutorLane): void {
    if (this.#lane === lane) this.#lane = undefined;
  }

  /** Ends the executor; its job comes back to the pool. */
  async stop(): Promise<void> {
    const lane = this.#lane;
    this.#lane = undefined;
    await lane?.stop();
  }

  /** Takes all suspects out. */
  drain(): Job[] {
    return this.#suspects.splice(0);
  }
}
