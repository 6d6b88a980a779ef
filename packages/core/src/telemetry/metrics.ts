/**
 * Metrics of users: what each thread has recorded since its last report to the driver, and the
 * totals of all threads.
 *
 * Counters and histograms travel as differences, so that nothing is counted twice and the counts of
 * a dead host stay. A gauge has the value that was set last, in any thread.
 */
import { InvalidOptionError, RaySystemError } from "../shared/errors.ts";
import { show } from "../shared/text/show.ts";
import { threadSlot } from "../shared/thread-slot.ts";

export interface MetricInfo {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly description: string;
  readonly tagKeys: readonly string[];
  /** Upper bounds of a histogram's buckets, in rising order; empty for counters and gauges. */
  readonly boundaries: readonly number[];
}

/** One combination of tags. */
export interface Series {
  /** Values of the tags, in the order of `tagKeys`. */
  readonly tags: readonly string[];
  /** The value of a counter or gauge, or the sum of a histogram. */
  value: number;
  /** The number of observations in each bucket. The last bucket is above all boundaries. */
  readonly buckets: number[];
}

/** One metric as it travels. */
export interface MetricPart {
  readonly info: MetricInfo;
  readonly series: readonly Series[];
}

interface Metric {
  readonly info: MetricInfo;
  readonly series: Map<string, Series>;
}

export class Metrics {
  readonly #metrics: Map<string, Metric> = new Map();
  /** By each description that was compared with the first one of its name. */
  readonly #described: WeakMap<MetricInfo, Metric> = new WeakMap();
  /** Written names, each with the metric that it belongs to: a histogram has several. */
  readonly #written: Map<string, string> = new Map();
  readonly #maxSeries: number;
  #seriesCount = 0;
  /** Tags and their key. Lists of tags are never changed. */
  #last: { readonly tags: readonly string[]; readonly key: string } | undefined;
  #isDirty = false;
  #onFirst: (() => void) | undefined;

  /** @param maxSeries the most series and the most names to keep */
  constructor(maxSeries: number = Infinity) {
    this.#maxSeries = maxSeries;
  }

  /**
   * @throws InvalidOptionError when the name already has another meaning; RaySystemError when there
   * are too many metrics
   */
  define(info: MetricInfo): void {
    this.#metricOf(info);
  }

  #metricOf(info: MetricInfo): Metric {
    return this.#described.get(info) ?? this.#compared(info);
  }

  #compared(info: MetricInfo): Metric {
    const metric = this.#metrics.get(info.name) ?? this.#added(info);
    if (
      metric.info !== info &&
      JSON.stringify(shapeOf(metric.info)) !== JSON.stringify(shapeOf(info))
    ) {
      throw new InvalidOptionError(
        "name",
        `metric "${info.name}" exists as ${JSON.stringify(shapeOf(metric.info))}, and cannot be ${JSON.stringify(shapeOf(info))}, too`,
      );
    }
    this.#described.set(info, metric);
    return metric;
  }

  #added(info: MetricInfo): Metric {
    checkNames(info);
    if (this.#metrics.size >= this.#maxSeries) throw this.#full();
    const names = new Set(writtenNames(info));
    const taken = [...names].find((name) => this.#written.has(name));
    if (taken !== undefined) {
      const owner = this.#written.get(taken) ?? "";
      const problem = `metric "${info.name}" would be written as ray_${taken}, and so is "${owner}": choose another name`;
      throw new InvalidOptionError("name", problem);
    }
    for (const name of names) this.#written.set(name, info.name);
    const metric = { info, series: new Map<string, Series>() };
    this.#metrics.set(info.name, metric);
    return metric;
  }

  /** Calls back when there is something to take, once after each `take`. */
  whenDirty(onFirst: () => void): void {
    this.#onFirst = onFirst;
    if (this.#isDirty) onFirst();
  }

  note(info: MetricInfo, tags: readonly string[], value: number): void {
    const series = this.#series(this.#metricOf(info), tags);
    if (info.kind === "gauge") series.value = value;
    else series.value += value;
    if (info.kind === "histogram") count(series, info.boundaries, value);
    if (this.#isDirty) return;
    this.#isDirty = true;
    this.#onFirst?.();
  }

  /** Removes and returns the records since the last call. */
  take(): readonly MetricPart[] {
    this.#isDirty = false;
    return this.#parts(true);
  }

  /** Returns all metrics, including those without a series. */
  all(): readonly MetricPart[] {
    return this.#parts(false);
  }

  /** Adds the records of another thread. Both threads must define the name alike. */
  add({ info, series }: MetricPart): void {
    const metric = this.#metricOf(info);
    for (const part of series) {
      const own = this.#series(metric, part.tags);
      if (info.kind === "gauge") own.value = part.value;
      else own.value += part.value;
      for (const [index, more] of part.buckets.entries()) {
        own.buckets[index] = (own.buckets[index] ?? 0) + more;
      }
    }
  }

  #parts(isTaken: boolean): readonly MetricPart[] {
    const parts = [...this.#metrics.values()].map(({ info, series }) => ({
      info,
      series: [...series.values()],
    }));
    if (!isTaken) return parts;
    this.#seriesCount = 0;
    for (const { series } of this.#metrics.values()) series.clear();
    return parts.filter(({ series }) => series.length > 0);
  }

  #full(): RaySystemError {
    return new RaySystemError(
      `more than ${this.#maxSeries} combinations of metrics and tags: those that come later are dropped`,
    );
  }

  /** The last list is often the next one, too. */
  #keyOf(tags: readonly string[]): string {
    if (this.#last?.tags !== tags) this.#last = { tags, key: JSON.stringify(tags) };
    return this.#last.key;
  }

  #series({ info, series }: Metric, tags: readonly string[]): Series {
    // No destructuring: its iterator would take memory for each record.
    const only = tags[0];
    const key = tags.length === 1 && only !== undefined ? only : this.#keyOf(tags);
    let own = series.get(key);
    if (own === undefined) {
      if (this.#seriesCount >= this.#maxSeries) throw this.#full();
      this.#seriesCount += 1;
      const buckets = info.kind === "histogram" ? [...info.boundaries, 0].map(() => 0) : [];
      own = { tags, value: 0, buckets };
      series.set(key, own);
    }
    return own;
  }
}

/** Upper bounds in seconds, from calls within a thread to judges that think. */
const callBoundaries = [0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300];

const histogram = (name: string, description: string): MetricInfo => ({
  kind: "histogram",
  name,
  description,
  tagKeys: ["Name"],
  boundaries: callBoundaries,
});

/** The metrics of calls. Users cannot give these names another meaning. */
export const callHistograms: Readonly<Record<"latency" | "execution", MetricInfo>> = {
  latency: histogram("call_latency_seconds", "Seconds from a call to its answer, at its caller."),
  execution: histogram("call_execution_seconds", "Seconds that a call ran, at its host."),
};

/**
 * Names of the session's own metrics, without Ray's prefix. Two metrics with one name make the
 * whole exposition unreadable.
 */
const ownNames: ReadonlySet<string> = new Set([
  "actors",
  "object_store_memory",
  "owned_objects",
  "placement_groups",
  "resources",
  "scheduler_tasks",
  "tasks",
  "workers",
]);

/**
 * Checks that Prometheus can read the names (its data model: names and labels). Metrics of other
 * hosts pass through here, too.
 *
 * @throws InvalidOptionError
 */
function checkNames(info: MetricInfo): void {
  const { kind, name, tagKeys } = info;
  if (typeof name !== "string" || !/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) {
    const rule = `a name has letters, digits, "_" and ":", and starts with no digit, unlike ${show(name)}`;
    throw new InvalidOptionError("name", `a metric cannot be called so: ${rule}`);
  }
  const own = Object.values(callHistograms).find((one) => one.name === name);
  const isOther =
    own !== undefined && JSON.stringify(shapeOf(own)) !== JSON.stringify(shapeOf(info));
  if (ownNames.has(name) || isOther) {
    throw new InvalidOptionError(
      "name",
      `metric "${name}" is the session's own: choose another name`,
    );
  }
  const wrong = tagKeys.find(
    (key, index) =>
      typeof key !== "string" ||
      !/^(?!__)[a-zA-Z_]\w*$/.test(key) ||
      tagKeys.indexOf(key) !== index ||
      (kind === "histogram" && key === "le"),
  );
  if (wrong === undefined) return;
  const rule = `has letters, digits and "_", begins with neither a digit nor "__", stands there once, and is not "le" in a histogram`;
  throw new InvalidOptionError("tagKeys", `metric "${name}": a tag ${rule}, unlike ${show(wrong)}`);
}

/** Returns the names that a metric is written under, without Ray's prefix. */
function writtenNames({ kind, name }: MetricInfo): readonly string[] {
  if (kind === "histogram") return [name, `${name}_bucket`, `${name}_sum`, `${name}_count`];
  return kind === "counter" ? [name, counterName(name)] : [name];
}

/** A counter is written with the suffix that OpenMetrics wants. */
export function counterName(name: string): string {
  return name.endsWith("_total") ? name : `${name}_total`;
}

/** Returns the metrics of this thread. */
export function threadMetrics(): Metrics {
  return threadSlot("metrics", newMetrics);
}

/** One function for all calls: each record of a metric asks. */
function newMetrics(): Metrics {
  return new Metrics();
}

function shapeOf({ kind, tagKeys, boundaries }: MetricInfo): unknown {
  return [kind, tagKeys, boundaries];
}

function count({ buckets }: Series, boundaries: readonly number[], value: number): void {
  let index = 0;
  while (index < boundaries.length && value > (boundaries[index] ?? Infinity)) index += 1;
  buckets[index] = (buckets[index] ?? 0) + 1;
}
