/**
 * Jobs that were begun and lost their executor, and wait for the permission to begin once more: the
 * next run is another call of their endpoint.
 */

import { giveUp } from "../job.ts";
import type { Job } from "../job.ts";

export class Permissions {
  readonly #asking: Set<Job> = new Set();
  readonly #allowed: (job: Job) => void;

  /** @param allowed called with a job that may begin; others are rejected, or given up */
  constructor(allowed: (job: Job) => void) {
    this.#allowed = allowed;
  }

  /** Returns the jobs that need not ask; the others follow when they are allowed. */
  ask(jobs: readonly Job[]): Job[] {
    return jobs.filter((job) => {
      if (!job.past.isToAsk || job.beforeAgain === undefined) return true;
      void this.#ask(job, job.beforeAgain);
      return false;
    });
  }

  /** Takes all jobs out that wait. */
  drain(): Job[] {
    const jobs = [...this.#asking];
    this.#asking.clear();
    return jobs;
  }

  async #ask(job: Job, beforeAgain: () => Promise<void>): Promise<void> {
    job.note({ isToAsk: false });
    this.#asking.add(job);
    try {
      await beforeAgain();
      // All waiting jobs may have been rejected meanwhile.
      if (this.#asking.delete(job)) this.#allowed(job);
    } catch (error) {
      if (!this.#asking.delete(job)) return;
      if (job.signal?.aborted === true) return giveUp(job);
      job.reject(error);
      job.over();
    }
  }
}
