/**
 * The metrics of users and of the session in the text format of Prometheus, by Ray's names. The
 * library for the format loads at the first query.
 */
import {
  counterName,
  type MetricInfo,
  type Metrics,
  type Series,
} from "../../telemetry/metrics.ts";
import type { Listed, Rows } from "../../rpc/state.ts";
import type { LocalDirectory } from "../directory.ts";

export interface SystemParts {
  readonly directory: LocalDirectory;
  /** Returns the bytes of big values in memory. */
  readonly usedBytes: () => number;
  readonly rows: <What extends Listed>(what: What) => Promise<readonly Rows[What][]>;
}

interface Value {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/**
 * A metric as the registry of prom-client expects it: the registry reads the values when it writes
 * them.
 */
interface Exposed {
  readonly name: string;
  get(): Promise<{
    readonly name: string;
    readonly help: string;
    readonly type: string;
    readonly aggregator: string;
    readonly values: readonly Value[];
  }>;
}

export async function metricsText(metrics: Metrics, parts: SystemParts): Promise<string> {
  const { Registry } = await import("prom-client");
  const registry = new Registry();
  const exposed = [...(await systemMetrics(parts)), ...metrics.all().map(userMetric)];
  for (const metric of exposed) registry.registerMetric(metric as never);
  // prom-client writes "Nan", which OpenMetrics does not accept.
  return (await registry.metrics()).replaceAll(/ Nan$/gm, " NaN");
}

function expose(name: string, type: string, help: string, values: readonly Value[]): Exposed {
  return { name, get: async () => ({ name, help, type, aggregator: "sum", values }) };
}

function userMetric({ info, series }: { info: MetricInfo; series: readonly Series[] }): Exposed {
  const name = `ray_${info.kind === "counter" ? counterName(info.name) : info.name}`;
  const values = series.flatMap((one) =>
    info.kind === "histogram"
      ? histogramValues(name, info, one)
      : [{ labels: labelsOf(info, one), value: one.value }],
  );
  return expose(name, info.kind, info.description, values);
}

function labelsOf({ tagKeys }: MetricInfo, { tags }: Series): Record<string, string> {
  return Object.fromEntries(tagKeys.map((key, index) => [key, tags[index] ?? ""]));
}

/** A bucket counts everything up to its bound. */
function histogramValues(name: string, info: MetricInfo, series: Series): readonly Value[] {
  const labels = labelsOf(info, series);
  const bounds = [...info.boundaries, "+Inf"];
  let count = 0;
  const buckets = bounds.map((le, index) => {
    count += series.buckets[index] ?? 0;
    return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: series.value },
    { metricName: `${name}_count`, labels, value: count },
  ];
}

async function systemMetrics({
  directory,
  rows,
  usedBytes,
}: SystemParts): Promise<readonly Exposed[]> {
  const [tasks, actors, objects, workers] = await Promise.all([
    rows("tasks"),
    rows("actors"),
    rows("objects"),
    rows("workers"),
  ]);
  const { total, available } = directory.cluster.resources();
  const resources = Object.entries(total).flatMap(([Name, amount]) => {
    const free = available[Name] ?? 0;
    return [
      { labels: { Name, State: "AVAILABLE" }, value: free },
      { labels: { Name, State: "USED" }, value: amount - free },
    ];
  });
  const stored = objects.filter(({ objectSize }) => objectSize > 0);
  return [
    expose(
      "ray_tasks",
      "gauge",
      "Tasks and calls by name and state.",
      counts(tasks, ({ name, state }) => ({ Name: name, State: state })),
    ),
    expose(
      "ray_actors",
      "gauge",
      "Actors by class and state.",
      counts(actors, ({ className, state }) => ({ Name: className, State: state })),
    ),
    expose("ray_resources", "gauge", "Resources of the living nodes.", resources),
    expose("ray_object_store_memory", "gauge", "Bytes of big values.", [
      { labels: { Location: "MMAP_SHM" }, value: usedBytes() },
    ]),
    expose("ray_owned_objects", "gauge", "Objects that others hold, or that are big.", [
      { labels: {}, value: stored.length },
    ]),
    expose(
      "ray_placement_groups",
      "gauge",
      "Placement groups by state.",
      counts(directory.cluster.groups(), ({ state }) => ({ State: state })),
    ),
    expose(
      "ray_workers",
      "gauge",
      "Hosts by what they run in.",
      counts(
        workers.filter(({ isAlive, workerType }) => isAlive && workerType === "WORKER"),
        ({ isolation }) => ({ Isolation: isolation }),
      ),
    ),
    expose("ray_scheduler_tasks", "gauge", "Requests that wait for resources.", [
      { labels: { State: "waiting" }, value: directory.waitingRequests() },
    ]),
  ];
}

function counts<Row>(
  rows: readonly Row[],
  labelsOfRow: (row: Row) => Record<string, string>,
): readonly Value[] {
  const values = new Map<string, { labels: Record<string, string>; value: number }>();
  for (const row of rows) {
    const labels = labelsOfRow(row);
    const key = JSON.stringify(labels);
    const known = values.get(key);
    if (known === undefined) values.set(key, { labels, value: 1 });
    else known.value += 1;
  }
  return [...values.values()];
}
