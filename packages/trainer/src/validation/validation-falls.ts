/** Compares the validations of a run with its first one, also where the run was resumed. */

import { coreMetricText, coreMetricValue } from "../metrics/core-metric-words.ts";
import { coreMeansOf } from "../metrics/validation-metrics.ts";

/** Finds validations that are below the first one. */
export class ValidationFalls {
  #first: { readonly step: number; readonly means: ReadonlyMap<string, number> } | undefined;
  /** Names of the metrics that are below the first validation. */
  #fallen: ReadonlySet<string> = new Set();

  /** Keeps the validation before the first step, with which later ones are compared. */
  begin(metrics: Readonly<Record<string, number>>, step: number): void {
    this.#first = { step, means: coreMeansOf(metrics) };
    this.#fallen = new Set();
  }

  /**
   * Returns a warning if a metric is below the first validation and was not in the validation
   * before this one.
   */
  warningOf(metrics: Readonly<Record<string, number>>, step: number): string | undefined {
    const { step: firstStep, means } = this.#first ?? { step: 0, means: new Map<string, number>() };
    const all = coreMeansOf(metrics);
    const falls = [...all].flatMap(([name, now]) => {
      const before = means.get(name);
      return before === undefined || now >= before ? [] : [{ name, now, before }];
    });
    const news = falls.filter(({ name }) => !this.#fallen.has(name));
    this.#fallen = new Set(falls.map(({ name }) => name));
    if (news.length === 0) return undefined;
    const figures = news.map(({ name, now, before }) => {
      const [is, was] = [now, before].map((value) => coreMetricValue(name, value));
      return `${coreMetricText(name, [...all.keys()])} is ${is} and was ${was}`;
    });
    return `the validation of step ${step} is below that of step ${firstStep}: ${figures.join(", ")}; a lower learning rate (lr) or a longer warm-up (lr_warmup_steps) may keep what was known`;
  }
}
