/** The router in a thread of its own, so that no score function and no driver delays requests. */

import * as ray from "@rayling/core";
import { RewardModelRouter } from "./router.ts";
import type { RouterOptions } from "../options/defaults/reward-model.ts";
import type { UpstreamState } from "./upstreams.ts";

export class RewardModelRouterHost {
  #router: RewardModelRouter | undefined;

  /** Returns its address when it listens. */
  async start(servers: readonly string[], options: RouterOptions): Promise<string> {
    this.#router = await RewardModelRouter.start(servers, options);
    return this.#router.address;
  }

  servers(): readonly UpstreamState[] {
    return this.#router?.servers ?? [];
  }

  /** @param reason why requests are refused from now on; undefined: they are not */
  refuse(reason: string | undefined): void {
    this.#router?.refuse(reason);
  }

  /** Resolves when what was in flight is finished. */
  async close(): Promise<void> {
    await this.#router?.close();
  }
}

export const RewardModelRouterActor: ray.ActorClass<typeof RewardModelRouterHost> =
  ray.remote(RewardModelRouterHost);
