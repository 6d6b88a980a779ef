/**
 * The user's own metrics, by Ray's names: recorded in drivers, actors and tasks, and collected by
 * the driver.
 *
 * They are exported with the prefix `ray_`. Metrics of one name must have one kind and the same
 * tags everywhere.
 */
import { type MetricInfo, threadMetrics } from "../telemetry/metrics.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { type Check, checkOptions, type Checks, text as isText } from "../shared/options.ts";
import { show } from "../shared/text/show.ts";
import { asked } from "./session.ts";

/** Options of a metric. */
export interface MetricOptions {
  /** The help text of the metric. Default: its name. */
  readonly description?: string | undefined;
  /**
   * Names of the tags. Each record gives all of them, unless they have a default. Default: none.
   */
  readonly tagKeys?: readonly string[] | undefined;
}

/** Options of a histogram. */
export interface HistogramOptions extends MetricOptions {
  /** Upper bounds of the buckets: positive, in rising order. */
  readonly boundaries: readonly number[];
}

/** Values of tags by name. */
export type Tags = Readonly<Record<string, string>>;

/** A metric that only rises. */
export class Counter {
  readonly #metric: Noted;
  constructor(name: string, options: MetricOptions = {}) {
    this.#metric = new Noted("counter", name, options, []);
  }

  /**
   * Adds to the counter.
   *
   * @throws InvalidOptionError for a value that is not above 0, or for tags that are missing or
   * unknown
   */
  inc(value = 1, tags: Tags = {}): void {
    if (typeof value !== "number" || !(value > 0) || !Number.isFinite(value)) {
      throw this.#metric.error("value", `rises by a number above 0, not ${show(value)}`);
    }
    this.#metric.note(value, tags);
  }

  /**
   * Sets the tags of records that do not give them.
   *
   * @throws InvalidOptionError for unknown tags
   */
  setDefaultTags(tags: Tags): this {
    this.#metric.setDefaultTags(tags);
    return this;
  }
}

/** A metric with a current value; the last value from any thread counts. */
export class Gauge {
  readonly #metric: Noted;
  constructor(name: string, options: MetricOptions = {}) {
    this.#metric = new Noted("gauge", name, options, []);
  }

  /**
   * Sets the value.
   *
   * @throws InvalidOptionError for a value that is no number, or for tags that are missing or
   * unknown
   */
  set(value: number, tags: Tags = {}): void {
    this.#metric.note(this.#metric.number(value), tags);
  }

  /**
   * Sets the tags of records that do not give them.
   *
   * @throws InvalidOptionError for unknown tags
   */
  setDefaultTags(tags: Tags): this {
    this.#metric.setDefaultTags(tags);
    return this;
  }
}

/** A metric that counts observations by their size. */
export class Histogram {
  readonly #metric: Noted;
  constructor(name: string, options: HistogramOptions) {
    const boundaries: unknown = (options as Partial<HistogramOptions> | undefined)?.boundaries;
    const problem = checkBoundaries(boundaries);
    if (problem !== undefined) {
      throw new InvalidOptionError(
        "boundaries",
        `metrics.Histogram "${name}": option boundaries ${problem}, not ${show(boundaries)}`,
      );
    }
    this.#metric = new Noted("histogram", name, options, boundaries as readonly number[]);
  }

  /**
   * Counts an observation.
   *
   * @throws InvalidOptionError for a value that is no number, or for tags that are missing or
   * unknown
   */
  observe(value: number, tags: Tags = {}): void {
    this.#metric.note(this.#metric.number(value), tags);
  }

  /**
   * Sets the tags of records that do not give them.
   *
   * @throws InvalidOptionError for unknown tags
   */
  setDefaultTags(tags: Tags): this {
    this.#metric.setDefaultTags(tags);
    return this;
  }
}

/** Returns all metrics, including the session's own, in the text format of Prometheus. */
export async function text(): Promise<string> {
  return asked((directory) => directory.metricsText());
}

const kinds = { counter: "Counter", gauge: "Gauge", histogram: "Histogram" } as const;

/** The shared part of the three kinds. */
class Noted {
  readonly #info: MetricInfo;
  #defaults: Tags = {};
  /** Frozen tags whose values are known: they cannot be others the next time. */
  #known: { readonly tags: Tags; readonly values: readonly string[] } | undefined;

  constructor(
    kind: MetricInfo["kind"],
    name: string,
    options: MetricOptions,
    boundaries: readonly number[],
  ) {
    const where = `metrics.${kinds[kind]}`;
    if (typeof name !== "string" || !/^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name)) {
      throw new InvalidOptionError(
        "name",
        `${where}: a name has letters, digits, "_" and ":", and starts with no digit, unlike ${show(name)}`,
      );
    }
    const checks: Checks<HistogramOptions> = {
      description: isText,
      tagKeys,
      boundaries: checkBoundaries,
    };
    const { boundaries: _, ...common } = checks;
    checkOptions(`${where} "${name}"`, options, kind === "histogram" ? checks : (common as never));
    this.#info = {
      kind,
      name,
      description: options.description ?? name,
      tagKeys: [...(options.tagKeys ?? [])],
      boundaries: [...boundaries],
    };
    threadMetrics().define(this.#info);
  }

  setDefaultTags(tags: Tags): void {
    this.#checkKnown(tags);
    this.#known = undefined;
    this.#defaults = { ...tags };
  }

  number(value: unknown): number {
    if (typeof value === "number" && (!Number.isNaN(value) || this.#info.kind === "gauge")) {
      return value;
    }
    throw this.error("value", `takes a number, not ${show(value)}`);
  }

  note(value: number, tags: Tags): void {
    const known = this.#known?.tags === tags ? this.#known.values : this.#valuesOf(tags);
    threadMetrics().note(this.#info, known, value);
  }

  #valuesOf(tags: Tags): readonly string[] {
    this.#checkKnown(tags);
    const values = this.#info.tagKeys.map((key) => {
      const tag: unknown = tags[key] ?? this.#defaults[key];
      if (typeof tag === "string") return tag;
      throw this.error(
        key,
        tag === undefined
          ? `lacks tag "${key}", which has no default`
          : `has a tag "${key}" that is no text but ${show(tag)}`,
      );
    });
    if (Object.isFrozen(tags)) this.#known = { tags, values };
    return values;
  }

  error(option: string, problem: string): InvalidOptionError {
    return new InvalidOptionError(option, `metric "${this.#info.name}" ${problem}`);
  }

  #checkKnown(tags: Tags): void {
    const { tagKeys: known } = this.#info;
    for (const key of Object.keys(tags)) {
      if (known.includes(key)) continue;
      throw this.error(key, `has no tag "${key}"; it has ${known.join(", ") || "none"}`);
    }
  }
}

const tagKeys: Check = (value) =>
  Array.isArray(value) &&
  value.every((key) => typeof key === "string" && /^[a-zA-Z_]\w*$/.test(key))
    ? undefined
    : "must be a list of names of letters, digits and _";

const checkBoundaries: Check = (value) => {
  const fits =
    Array.isArray(value) &&
    value.length > 0 &&
    value.every(
      (bound: unknown, index) =>
        typeof bound === "number" && bound > (index === 0 ? 0 : (value[index - 1] as number)),
    );
  return fits ? undefined : "must be a list of rising numbers above 0";
};
