/**
 * Metrics of one step as they come: several values under one name become one at its end, as verl
 * does it.
 */

import { reduceMetrics } from "../metrics/reduce.ts";

export class CollectedMetrics {
  readonly #values = new Map<string, number[]>();

  add(name: string, value: number): void {
    const values = this.#values.get(name);
    if (values === undefined) this.#values.set(name, [value]);
    else values.push(value);
  }

  addAll(metrics: Readonly<Record<string, number>>): void {
    for (const [name, value] of Object.entries(metrics)) this.add(name, value);
  }

  reduced(): Record<string, number> {
    return reduceMetrics(Object.fromEntries(this.#values));
  }
}
