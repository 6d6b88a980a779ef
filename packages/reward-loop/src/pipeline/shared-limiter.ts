/**
 * A manager's hold on the limiter of its endpoint: registers its workers, and releases the leases
 * of dead ones.
 */

import * as ray from "@rayling/core";
import type { ActorHandle } from "@rayling/core";
import { nanoid } from "nanoid";
import type { LimiterState } from "../limits/limiter.ts";
import { rewardLimiterOf } from "../limits/reward-limiter.ts";
import type { RewardLimiter } from "../limits/reward-limiter.ts";
import { WHENEVER } from "../time/stuck-warning.ts";
import type { PolicySettings } from "../settings/policy-settings.ts";
import type { WorkerPlace } from "../worker/reward-loop-worker.ts";

/** How much of an endpoint's limits is used, by all who call it. */
export interface EndpointState extends LimiterState {
  /** The name of the endpoint. */
  readonly endpoint: string;
}

export class SharedLimiter {
  readonly endpoint: string;
  readonly #handle: ActorHandle<RewardLimiter>;
  /** Unlike those of all other managers. */
  readonly #id: string = nanoid();

  private constructor(endpoint: string, handle: ActorHandle<RewardLimiter>) {
    this.endpoint = endpoint;
    this.#handle = handle;
  }

  /** Undefined without limits. */
  static of({ limits }: PolicySettings): SharedLimiter | undefined {
    if (limits === undefined) return undefined;
    const { endpoint, settings } = limits;
    return new SharedLimiter(endpoint, rewardLimiterOf(endpoint, settings));
  }

  /** Rejects with why the limiter cannot tell: it is being restarted, or gone. */
  async state(): Promise<EndpointState> {
    const { holders: _, ...state } = await ray.get(this.#handle.state.remote(), WHENEVER);
    return { endpoint: this.endpoint, ...state };
  }

  /** Returns the limiter and a holder's name for one life of a worker. */
  placeOf(workerName: string, incarnation: number): WorkerPlace["limiter"] {
    return { handle: this.#handle, holder: `${this.#prefixOf(workerName)}${incarnation}` };
  }

  /** Releases the leases of all lives of that worker. */
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
      // The limiter is gone, with all leases: after a restart only living holders report theirs.
    }
  }
}
