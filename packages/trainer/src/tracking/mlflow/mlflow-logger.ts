/**
 * A run on an MLflow tracking server, by its REST API: settings as parameters, metrics, validation
 * generations as artifacts in verl's form, and how the run ended.
 *
 * The server may be away: reports are kept and sent again, and lost values are counted in a
 * warning. Only an address that is missing or wrong, or refused credentials, keep a run from
 * starting.
 */

import { Delivery, RefusedReport } from "../delivery.ts";
import type { Report } from "../delivery.ts";
import type {
  Generation,
  RunEnd,
  StepMetrics,
  TrackedRun,
  TrackingLogger,
} from "../tracking-logger.ts";
import { MlflowClient, NotMlflowError } from "./mlflow-client.ts";
import { MlflowKeys } from "./mlflow-keys.ts";
import { openMlflowRun } from "./mlflow-run.ts";
import type { MlflowRun } from "./mlflow-run.ts";
import { mlflowMetrics, mlflowParams } from "./mlflow-values.ts";
import type { KeyValue } from "./mlflow-values.ts";

/** Server of an `MlflowLogger`, and its patience. */
export interface MlflowLoggerOptions {
  /** Address of the tracking server, by HTTP. Default: the environment's MLFLOW_TRACKING_URI. */
  readonly trackingUri?: string;
  /**
   * Pause before a failed request is sent again, in milliseconds; it doubles with each failure, up
   * to 30 seconds. Default 1,000.
   */
  readonly pauseMs?: number;
  /** Number of values that are kept while the server does not answer. Default 1,000,000. */
  readonly maxKept?: number;
}

/** MLflow's limits for one request. */
const limits = { metrics: 1000, params: 100 } as const;
const artifactScheme = "mlflow-artifacts:/";
const firstTimeoutMs = 10_000;

/** Sends metrics, settings and validation generations to an MLflow tracking server. */
export class MlflowLogger implements TrackingLogger {
  /** The name of the logger in `trainer.logger`. */
  readonly name = "mlflow";
  readonly #options: MlflowLoggerOptions;
  readonly #metricKeys = new MlflowKeys("metrics", (problem) => this.#warn(problem));
  readonly #paramKeys = new MlflowKeys("settings", (problem) => this.#warn(problem));
  /** Parameters of which a warning says that the server keeps earlier ones. */
  readonly #kept = new Set<string>();
  #delivery: Delivery | undefined;
  #client: MlflowClient | undefined;
  #tracked: TrackedRun | undefined;
  #run: MlflowRun | undefined;
  #warn: (problem: string, cause?: unknown) => void = () => undefined;

  constructor(options: MlflowLoggerOptions = {}) {
    this.#options = options;
  }

  /** Makes the run on the server, or continues that of a resumed run, and sends the settings. */
  async open(run: TrackedRun, warn: (problem: string, cause?: unknown) => void): Promise<void> {
    const { pauseMs = 1000, maxKept = 1_000_000, trackingUri } = this.#options;
    const uri = trackingUri ?? process.env["MLFLOW_TRACKING_URI"] ?? "";
    if (uri === "") throw new TypeError("MLFLOW_TRACKING_URI, the server's address, is not set");
    this.#client = new MlflowClient(uri);
    this.#tracked = run;
    this.#warn = warn;
    this.#delivery = new Delivery({ warn, pauseMs, maxKept });
    try {
      await this.#opened(AbortSignal.timeout(firstTimeoutMs));
    } catch (error) {
      if (error instanceof RefusedReport || error instanceof NotMlflowError) throw error;
      // The delivery tries again, and warns.
    }
    this.#sendParams(mlflowParams(run.config ?? {}, this.#paramKeys));
  }

  /** Sends the metrics of a step. */
  log(metrics: StepMetrics, step: number): void {
    const timestamp = Date.now();
    for (const some of chunks(mlflowMetrics(metrics, this.#metricKeys), limits.metrics)) {
      this.#addValues("metric", some, async (part, client, { id }, signal) => {
        const sent = part.map(({ key, value }) => ({ key, value, timestamp, step }));
        await logBatch(client, { run_id: id, metrics: sent }, signal);
      });
    }
  }

  /** Sends generations as the artifact `val_step{step}.json`, as verl does. */
  generations(step: number, generations: readonly Generation[]): void {
    const rows = generations.map(({ input, output, score }) => ({
      input: input.toWellFormed(),
      output: output.toWellFormed(),
      score: Number.isFinite(score) ? score : null,
    }));
    const what = `the validation generations of step ${step}`;
    this.#add({ values: rows.length, what }, async (client, { artifactUri }, signal) => {
      if (!artifactUri.startsWith(artifactScheme)) {
        throw new RefusedReport(
          `the server takes no artifacts by HTTP: they are in ${artifactUri}`,
        );
      }
      // mlflow-artifacts:/1/id/artifacts, or mlflow-artifacts://host/1/id/artifacts
      const root = new URL(artifactUri).pathname.replace(/^\/+/, "");
      const path = `mlflow-artifacts/artifacts/${root}/val_step${step}.json`;
      await client.call({ method: "PUT", path, body: rows, signal });
    });
  }

  /** Sends what is left, and whether the run finished or failed. */
  async close({ error }: RunEnd): Promise<void> {
    const status = error === undefined ? "FINISHED" : "FAILED";
    const end = { status, end_time: Date.now() };
    this.#add({ values: 1, what: "how the run ended" }, async (client, { id }, signal) => {
      const body = { run_id: id, ...end };
      await client.call({ method: "POST", path: "mlflow/runs/update", body, signal });
    });
    await this.#delivery?.close();
  }

  /** Parameters are immutable: a resumed run keeps its earlier ones. */
  #sendParams(params: readonly KeyValue[]): void {
    for (const some of chunks(params, limits.params)) {
      this.#addValues("setting", some, async (part, client, { id, params: earlier }, signal) => {
        const added = part.filter(({ key }) => !earlier.has(key));
        const changed = part.filter(({ key, value }) => (earlier.get(key) ?? value) !== value);
        this.#warnOfKept(changed.map(({ key }) => key));
        if (added.length === 0) return;
        const sent = added.map(({ key, value }) => ({ key, value }));
        await logBatch(client, { run_id: id, params: sent }, signal);
      });
    }
  }

  #warnOfKept(changed: readonly string[]): void {
    const keys = changed.filter((key) => !this.#kept.has(key));
    if (keys.length === 0) return;
    for (const key of keys) this.#kept.add(key);
    this.#warn(`the run on the server keeps its earlier parameters: ${keys.join(", ")}`);
  }

  #addValues(what: string, values: readonly KeyValue[], send: SendValues): void {
    const client = this.#client;
    if (client === undefined) return;
    this.#delivery?.add(
      valuesReport(what, values, async (part, signal) =>
        send(part, client, await this.#opened(signal), signal),
      ),
    );
  }

  #add(
    about: Pick<Report, "values" | "what">,
    send: (client: MlflowClient, run: MlflowRun, signal: AbortSignal) => Promise<void>,
  ): void {
    const client = this.#client;
    if (client === undefined) return;
    this.#delivery?.add({
      ...about,
      send: async (signal) => send(client, await this.#opened(signal), signal),
    });
  }

  async #opened(signal: AbortSignal): Promise<MlflowRun> {
    if (this.#client === undefined || this.#tracked === undefined) {
      throw new TypeError("the logger is not open");
    }
    this.#run ??= await openMlflowRun(this.#client, this.#tracked, signal);
    return this.#run;
  }
}

type SendValues = (
  values: readonly KeyValue[],
  client: MlflowClient,
  run: MlflowRun,
  signal: AbortSignal,
) => Promise<void>;

/**
 * The server refuses all values of a request for one of them: they are sent again in halves, so
 * that only that one is lost.
 */
function valuesReport(
  what: string,
  values: readonly KeyValue[],
  send: (part: readonly KeyValue[], signal: AbortSignal) => Promise<void>,
): Report {
  const [first] = values;
  const about = { values: values.length, send: (signal: AbortSignal) => send(values, signal) };
  if (first === undefined || values.length === 1) {
    return { ...about, what: `the ${what} ${JSON.stringify(first?.name)}` };
  }
  const half = Math.ceil(values.length / 2);
  const parts = (): Report[] => chunks(values, half).map((part) => valuesReport(what, part, send));
  return { ...about, parts };
}

async function logBatch(
  client: MlflowClient,
  body: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<void> {
  await client.call({ method: "POST", path: "mlflow/runs/log-batch", body, signal });
}

function chunks<Item>(items: readonly Item[], size: number): Item[][] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, index) => items.slice(index * size, (index + 1) * size));
}
