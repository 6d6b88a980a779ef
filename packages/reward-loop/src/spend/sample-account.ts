/**
 * The cost of one sample while it is being scored: its calls are allowed one by one, and the usage
 * of each is counted when it is over. The final outcome is authoritative, and settles the
 * difference.
 *
 * Invariant: when it is settled the budget has been paid exactly the sample's cost, and nothing is
 * reserved for it.
 */

import type { SampleOutcome } from "../outcome.ts";
import { useOf } from "./cost-budget.ts";
import type { Budget, Use } from "./cost-budget.ts";

export class SampleAccount {
  readonly #budget: Budget;
  /** The cost at workers that died meanwhile. */
  #lost = 0;
  /** The cost at the present worker, as far as it is known. */
  #paid = 0;
  #underWay = 0;
  #isSettled = false;
  /** The number of the worker that has the sample: calls of earlier workers no longer count. */
  #life = 0;

  constructor(budget: Budget) {
    this.#budget = budget;
  }

  /** Resolves to whether another call may begin. */
  async mayBegin(): Promise<boolean> {
    const life = this.#life;
    const isAllowed = await this.#budget.claim();
    if (!isAllowed) return false;
    if (this.#isSettled || life !== this.#life) {
      this.#budget.settle(0, 1);
      return false;
    }
    this.#underWay += 1;
    return true;
  }

  /** A call is over. */
  ended(use: Use): void {
    if (this.#isSettled || this.#underWay === 0) return;
    const cost = this.#budget.costOf(use);
    this.#underWay -= 1;
    this.#paid += cost;
    this.#budget.settle(cost, 1);
  }

  /** Its worker died; pending calls cost the most that they may have used. */
  lost(): void {
    if (this.#isSettled) return;
    const calls = this.#underWay;
    const cost = this.#budget.costOf({ attempts: calls, usage: undefined, unknown: calls });
    this.#budget.settle(cost, calls);
    this.#lost += this.#paid + cost;
    this.#paid = 0;
    this.#underWay = 0;
    this.#life += 1;
  }

  /** The cost of its outcome, with all that came before. */
  settle(outcome: SampleOutcome): number {
    const cost = this.#budget.costOf(useOf(outcome));
    const calls = this.#underWay;
    this.#isSettled = true;
    this.#underWay = 0;
    this.#budget.settle(cost - this.#paid, calls);
    return this.#lost + cost;
  }
}
