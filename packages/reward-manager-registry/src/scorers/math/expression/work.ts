/**
 * Bounds the work of one comparison. Each step on a sum pays for what it handles: terms, factors,
 * digits. A bound on the number of steps alone would let a short text make large ones.
 */

import { added, digitsOf, divided, multiplied } from "./coefficient.ts";
import type { Coefficient } from "./coefficient.ts";

/**
 * Far more than an answer needs: of 22,000 pairs of answers and truths made at random, the most
 * expensive one took a fiftieth. All of it takes about a tenth of a second.
 */
const most = 100_000;

export class Work {
  #left = most;

  /** @throws RangeError once there was too much work */
  spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0) throw new RangeError("too much work");
  }

  /** @throws RangeError */
  added(a: Coefficient, b: Coefficient): Coefficient {
    this.#spendOn(a, b);
    return added(a, b);
  }

  /** @throws RangeError */
  multiplied(a: Coefficient, b: Coefficient): Coefficient {
    this.#spendOn(a, b);
    return multiplied(a, b);
  }

  /** @throws RangeError */
  divided(a: Coefficient, b: Coefficient): Coefficient {
    this.#spendOn(a, b);
    return divided(a, b);
  }

  /** To reduce the result takes as many steps as there are digits. */
  #spendOn(a: Coefficient, b: Coefficient): void {
    this.spend(1 + 2 * (digitsOf(a) + digitsOf(b)));
  }
}
