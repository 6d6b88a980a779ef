/** A loop's place on the live page of its session: what it counts, and what its parts tell. */

import { addDashboardPanel } from "@rayling/core/dashboard";
import type { EndpointState } from "../pipeline/shared-limiter.ts";
import type { RewardModelState } from "../reward-model/reward-model-manager.ts";
import type { SpendState } from "../spend/cost-budget.ts";
import { latencyBounds } from "./loop-tally.ts";
import type { LoopTally, TallyState } from "./loop-tally.ts";

/** The loop, as its panel sees it. */
export interface ShownLoop {
  readonly version: string;
  readonly slots: number;
  readonly workerNames: readonly string[];
  readonly spent: number;
  readonly spending: readonly SpendState[];
  readonly answeredBy: Readonly<Record<string, number>>;
  endpoints(): Promise<readonly EndpointState[]>;
  readonly rewardModels: {
    states(): Promise<Readonly<Record<string, RewardModelState>>>;
  };
}

/** A loop at one moment, as the page gets it. */
export interface LoopState extends TallyState {
  readonly version: string;
  readonly workers: number;
  readonly slots: number;
  readonly latencyBounds: readonly number[];
  readonly spent: number;
  readonly spending: readonly SpendState[];
  readonly answeredBy: Readonly<Record<string, number>>;
  /** Endpoints and models when they were last asked, a look ago. */
  readonly endpoints: readonly EndpointState[];
  readonly rewardModels: Readonly<Record<string, RewardModelState>>;
}

/**
 * Shows a loop on the page. Returns what takes it away.
 *
 * @param rewardLog the log of its option `record`
 */
export function showLoop(
  loop: ShownLoop,
  tally: LoopTally,
  rewardLog: string | undefined,
): () => void {
  let endpoints: readonly EndpointState[] = [];
  let rewardModels: Readonly<Record<string, RewardModelState>> = {};
  let isAsking = false;
  const ask = async (): Promise<void> => {
    if (isAsking) return;
    isAsking = true;
    // One that cannot tell is being restarted, or the loop is closing: what was known stays.
    const [used, models] = await Promise.allSettled([loop.endpoints(), loop.rewardModels.states()]);
    if (used.status === "fulfilled") endpoints = used.value;
    if (models.status === "fulfilled") rewardModels = models.value;
    isAsking = false;
  };
  const state = async (): Promise<LoopState> => {
    void ask();
    const { version, slots, workerNames, spent, spending, answeredBy } = loop;
    return {
      ...tally.state(),
      version,
      workers: workerNames.length,
      slots,
      latencyBounds,
      spent,
      spending,
      answeredBy,
      endpoints,
      rewardModels,
    };
  };
  return addDashboardPanel({ kind: "rewardLoop", state, rewardLog });
}
