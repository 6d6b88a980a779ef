/** A manager's hold on the limiter of its endpoint: which workers use it, and who does no longer. */

import * as ray from "@rayling/core";
import type { ActorHandle } from "@rayling/core";
import { nanoid } from "nanoid";
import { rewardLimiterOf } from "../limits/reward-limiter.ts";
import type { RewardLimiter } from "../limits/reward-limiter.ts";
import type { PolicySettings } from "../policy-settings.ts";
import type { WorkerPlace } from "../worker/reward-loop-worker.ts";

export class SharedLimiter {
  readonly #handle: ActorHandle<RewardLimiter>;
  /** Unlike those of all other managers. */
  readonly #id: string = nanoid();

  private constructor(handle: ActorHandle<RewardLimiter>) {
    this.#handle = handle;
  }

  /** Undefined without limits. */
  static of({ limits }: PolicySettings): SharedLimiter | undefined {
    if (limits === undefined) return undefined;
    return new SharedLimiter(rewardLimiterOf(limits.endpoint, limits.settings));
  }

  /** For one life of a worker. */
  placeOf(workerName: string, incarnation: number): WorkerPlace["limiter"] {
    return { handle: this.#handle, holder: `${this.#prefixOf(workerName)}${incarnation}` };
  }

  /** All lives of that worker are over. */
  async forget(workerName: string): Promise<void> {
    if (ray.isInitialized()) await this.#forget(this.#prefixOf(workerName));
  }

  #prefixOf(workerName: string): string {
    return `${this.#id}/${workerName}/`;
  }

  async #forget(prefix: string): Promise<void> {
    try {
      await ray.get(this.#handle.forget.remote(prefix));
    } catch {
      // It is gone, with all it knew: after a restart only those who live say what they hold.
    }
  }
}
