/** Resources that the scores of a loop use: money, and the limits of endpoints. */

import type { EndpointState, SharedLimiter } from "../pipeline/shared-limiter.ts";
import type { Budget, SpendState } from "../spend/cost-budget.ts";

export class LoopUses {
  readonly #budgets: readonly Budget[];
  /** One limiter for each endpoint. */
  readonly #limiters: readonly SharedLimiter[];

  /** @param limiters of all parts; several may be of one endpoint */
  constructor(budgets: readonly Budget[], limiters: readonly SharedLimiter[]) {
    this.#budgets = budgets;
    this.#limiters = [...new Map(limiters.map((one) => [one.endpoint, one])).values()];
  }

  /** The cost of all scores so far. */
  get spent(): number {
    return this.#budgets.reduce((sum, budget) => sum + (budget.isRoot ? budget.spent : 0), 0);
  }

  /** How far each cap is. */
  get spending(): SpendState[] {
    return this.#budgets.map(({ state }) => state).filter(({ cap }) => cap !== undefined);
  }

  /** Whether an endpoint has limits. */
  get areLimited(): boolean {
    return this.#limiters.length > 0;
  }

  /** Rejects if a limiter cannot answer. */
  endpoints(): Promise<EndpointState[]> {
    return Promise.all(this.#limiters.map((limiter) => limiter.state()));
  }
}
