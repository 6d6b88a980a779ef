/** How values of many parts become one number (verl/utils/metric/utils.py). */

import { TrainerInputError } from "../errors.ts";
import { spreadOf } from "../algorithms/statistics.ts";
import { meanOf, sumOf } from "../values/sums.ts";

/** How values of many parts become one number. */
export type Aggregation = "mean" | "sum" | "max" | "min";

const aggregations: Readonly<Record<Aggregation, (values: Float64Array) => number>> = {
  mean: meanOf,
  sum: sumOf,
  max: (values) => spreadOf(values).max,
  min: (values) => spreadOf(values).min,
};

/** Values of one metric, one for each micro-batch, with how they are put together. */
export interface Metric {
  /** How the values become one number. */
  readonly aggregation: Aggregation;
  /** One value for each micro-batch. */
  readonly values: readonly number[];
}

/**
 * Throws TrainerInputError for an aggregation there is not, and for the largest or smallest of
 * nothing.
 */
export function aggregate({ aggregation, values }: Metric): number {
  if (!Object.hasOwn(aggregations, aggregation)) {
    throw new TrainerInputError(
      "aggregation",
      `there is no aggregation "${aggregation}"; there are ${Object.keys(aggregations).join(", ")}`,
    );
  }
  if (values.length === 0 && (aggregation === "max" || aggregation === "min")) {
    throw new TrainerInputError("values", `there is no ${aggregation} of no value`);
  }
  return aggregations[aggregation](Float64Array.from(values));
}

/**
 * Combines metrics of processes that each worked on a part of every micro-batch (verl
 * `Metric.aggregate_dp`): takes the mean or sum of the means over processes. Throws
 * TrainerInputError where their numbers of values or their aggregations differ.
 */
export function aggregateDp(metrics: readonly Metric[]): number {
  const [first] = metrics;
  if (first === undefined)
    throw new TrainerInputError("metrics", "there is no metric to put together");
  const { aggregation } = first;
  const lengths = metrics.map(({ values }) => values.length);
  if (lengths.some((length) => length !== lengths[0])) {
    throw new TrainerInputError(
      "values",
      `metrics of all processes must have as many values; they have ${lengths.join(", ")}`,
    );
  }
  const other = metrics.find((metric) => metric.aggregation !== aggregation);
  if (other !== undefined) {
    throw new TrainerInputError(
      "aggregation",
      `a metric is "${aggregation}" in one process and "${other.aggregation}" in another`,
    );
  }
  if (aggregation === "max" || aggregation === "min") {
    return aggregate({ aggregation, values: metrics.flatMap(({ values }) => values) });
  }
  const means = first.values.map((_, at) =>
    meanOf(Float64Array.from(metrics, ({ values }) => values[at] ?? NaN)),
  );
  return aggregate({ aggregation, values: means });
}

/**
 * verl `reduce_metrics`: a name with "max" in it is the largest, one with "min" the smallest, all
 * others the mean; "minmax" has both, and is the largest. NaN is the mean of nothing. Throws
 * TrainerInputError for the largest or smallest of nothing.
 */
export function reduceMetrics(
  metrics: Readonly<Record<string, readonly number[] | Metric>>,
): Record<string, number> {
  return Object.fromEntries(
    Object.entries(metrics).map(([name, values]) => [
      name,
      aggregate("aggregation" in values ? values : { aggregation: aggregationOf(name), values }),
    ]),
  );
}

function aggregationOf(name: string): Aggregation {
  if (name.includes("max")) return "max";
  return name.includes("min") ? "min" : "mean";
}
