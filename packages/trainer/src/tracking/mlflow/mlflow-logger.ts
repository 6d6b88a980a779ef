/**
 * A run on an MLflow tracking server, by its REST API: settings as parameters, metrics, validation
 * generations as artifacts in verl's form, and how the run ended.
 *
 * The server may be away: reports are kept and sent again, and lost values are counted in a
 * warning. Only an address that is missing or wrong, or refused credentials, keep a run from
 * starting.
 */

import { randomUUID } from "node:crypto";
import { Delivery, RefusedReport } from "../delivery.ts";
import type {
  Generation,
  RunEnd,
  StepMetrics,
  TrackedRun,
  TrackingLogger,
} from "../tracking-logger.ts";
import { MlflowClient, NotMlflowError } from "./mlflow-client.ts";
import { MlflowKeys } from "./mlflow-keys.ts";
import { knownMlflowRun, noteMlflowRun, openMlflowRun } from "./mlflow-run.ts";
import type { MlflowRun, WantedMlflowRun } from "./mlflow-run.ts";
import { mlflowMetrics, mlflowParams } from "./mlflow-values.ts";
import type { KeyValue } from "./mlflow-values.ts";
import { valuesReports } from "./values-report.ts";
import type { ValueKind } from "./values-report.ts";

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

/** A value of a metric: several steps may go in one request. */
interface DatedValue extends KeyValue {
  readonly timestamp: number;
  readonly step: number;
}

const artifactScheme = "mlflow-artifacts:/";
const firstTimeoutMs = 10_000;

/** Sends metrics, settings and validation generations to an MLflow tracking server. */
export class MlflowLogger implements TrackingLogger {
  /** The name of the logger in `trainer.logger`. */
  readonly name = "mlflow";
  readonly #options: MlflowLoggerOptions;
  readonly #metricKeys = new MlflowKeys("metrics", (problem) => this.#warn(problem));
  readonly #paramKeys = new MlflowKeys("settings", (problem) => this.#warn(problem));
  readonly #metrics: ValueKind<DatedValue> = {
    what: "metric",
    limit: 1000,
    send: (values, signal) => this.#sendMetrics(values, signal),
  };
  readonly #params: ValueKind<KeyValue> = {
    what: "setting",
    limit: 100,
    send: (values, signal) => this.#sendParams(values, signal),
  };
  /** Parameters of which a warning says that the server keeps earlier ones. */
  readonly #kept = new Set<string>();
  #delivery: Delivery | undefined;
  #client: MlflowClient | undefined;
  #wanted: WantedMlflowRun | undefined;
  #run: MlflowRun | undefined;
  #warn: (problem: string, cause?: unknown) => void = () => undefined;

  constructor(options: MlflowLoggerOptions = {}) {
    this.#options = options;
  }

  /** Makes the run on the server, or continues that of a resumed run, and sends the settings. */
  async open(run: TrackedRun, warn: (problem: string, cause?: unknown) => void): Promise<void> {
    const { pauseMs = 1000, maxKept = 1_000_000, trackingUri } = this.#options;
    this.#client = new MlflowClient(trackingUri);
    this.#warn = warn;
    const known = await knownMlflowRun(run, this.#client.uri, warn);
    this.#wanted = { tracked: run, known, mark: randomUUID(), isAsked: false };
    this.#delivery = new Delivery({ warn, pauseMs, maxKept });
    try {
      await this.#opened(AbortSignal.timeout(firstTimeoutMs));
    } catch (error) {
      if (error instanceof RefusedReport || error instanceof NotMlflowError) throw error;
      // The delivery tries again, and warns.
    }
    const params = mlflowParams(run.config ?? {}, this.#paramKeys);
    for (const report of valuesReports(this.#params, params)) this.#delivery.add(report);
  }

  /** Sends the metrics of a step. */
  log(metrics: StepMetrics, step: number): void {
    const timestamp = Date.now();
    const values = mlflowMetrics(metrics, this.#metricKeys);
    const dated = values.map((one) => ({ ...one, timestamp, step }));
    for (const report of valuesReports(this.#metrics, dated)) this.#delivery?.add(report);
  }

  /** Sends generations as the artifact `val_step{step}.json`, as verl does. */
  generations(step: number, generations: readonly Generation[]): void {
    const rows = generations.map(({ input, output, score }) => ({
      input: input.toWellFormed(),
      output: output.toWellFormed(),
      score: Number.isFinite(score) ? score : null,
    }));
    const what = `the validation generations of step ${step}`;
    const send = async (signal: AbortSignal): Promise<void> => {
      const { client, run } = await this.#opened(signal);
      const { artifactUri } = run;
      if (!artifactUri.startsWith(artifactScheme)) {
        throw new RefusedReport(
          `the server takes no artifacts by HTTP: they are in ${artifactUri}`,
        );
      }
      // mlflow-artifacts:/1/id/artifacts, or mlflow-artifacts://host/1/id/artifacts
      const root = new URL(artifactUri).pathname.replace(/^\/+/, "");
      const path = `mlflow-artifacts/artifacts/${root}/val_step${step}.json`;
      await client.call({ method: "PUT", path, body: rows, signal });
    };
    this.#delivery?.add({ values: rows.length, what, send });
  }

  /** Sends what is left, and whether the run finished or failed. */
  async close({ error }: RunEnd): Promise<void> {
    const status = error === undefined ? "FINISHED" : "FAILED";
    const end = { status, end_time: Date.now() };
    const send = async (signal: AbortSignal): Promise<void> => {
      const { client, run } = await this.#opened(signal);
      const body = { run_id: run.id, ...end };
      await client.call({ method: "POST", path: "mlflow/runs/update", body, signal });
    };
    await this.#delivery?.close({ values: 1, what: "how the run ended", send });
  }

  async #sendMetrics(values: readonly DatedValue[], signal: AbortSignal): Promise<void> {
    const { client, run } = await this.#opened(signal);
    const metrics = values.map(({ name: _name, ...sent }) => sent);
    await logBatch(client, { run_id: run.id, metrics }, signal);
  }

  /** Parameters are immutable: a resumed run keeps its earlier ones. */
  async #sendParams(values: readonly KeyValue[], signal: AbortSignal): Promise<void> {
    const { client, run } = await this.#opened(signal);
    const { id, params: earlier } = run;
    const added = values.filter(({ key }) => !earlier.has(key));
    const changed = values.filter(({ key, value }) => (earlier.get(key) ?? value) !== value);
    this.#warnOfKept(changed.map(({ key }) => key));
    if (added.length === 0) return;
    const params = added.map(({ key, value }) => ({ key, value }));
    await logBatch(client, { run_id: id, params }, signal);
  }

  #warnOfKept(changed: readonly string[]): void {
    const keys = changed.filter((key) => !this.#kept.has(key));
    if (keys.length === 0) return;
    for (const key of keys) this.#kept.add(key);
    this.#warn(`the run on the server keeps its earlier parameters: ${keys.join(", ")}`);
  }

  async #opened(signal: AbortSignal): Promise<OpenedRun> {
    if (this.#client === undefined || this.#wanted === undefined) {
      throw new TypeError("the logger is not open");
    }
    if (this.#run === undefined) {
      this.#run = await openMlflowRun(this.#client, this.#wanted, signal);
      const { tracked, known } = this.#wanted;
      const { id } = this.#run;
      if (known === undefined) await noteMlflowRun(tracked, this.#client.uri, id, this.#warn);
    }
    return { client: this.#client, run: this.#run };
  }
}

interface OpenedRun {
  readonly client: MlflowClient;
  readonly run: MlflowRun;
}

async function logBatch(
  client: MlflowClient,
  body: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<void> {
  await client.call({ method: "POST", path: "mlflow/runs/log-batch", body, signal });
}
