/**
 * The run of an MLflow server: found or made, with verl's names. `trainer.project_name` is the
 * experiment, `trainer.experiment_name` the run.
 *
 * The run's id stays in `mlflow.json` in the folder of the run, so that a resumed run continues the
 * same run of the server. MLFLOW_RUN_ID names another one, as in verl. Where the file cannot be
 * read or written, the resumed run is another one there, and no value is lost.
 */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, isRecord } from "@rayling/reward-manager-registry/values";
import { replaceFile } from "../../values/replace-file.ts";
import type { TrackedRun } from "../tracking-logger.ts";
import { MlflowError } from "./mlflow-client.ts";
import type { MlflowClient } from "./mlflow-client.ts";

export interface MlflowRun {
  readonly id: string;
  /** Where the server keeps artifacts: `mlflow-artifacts:/1/{id}/artifacts`. */
  readonly artifactUri: string;
  /** Keys of parameters that the run had before; those are immutable. */
  readonly params: ReadonlyMap<string, string>;
}

const file = "mlflow.json";

type Warn = (problem: string, cause?: unknown) => void;

/**
 * Returns the id of the run to continue, if there is one. Never rejects: `warn` is called for a
 * note that cannot be read.
 */
export async function knownMlflowRun(
  { directory }: TrackedRun,
  uri: string,
  warn: Warn,
): Promise<string | undefined> {
  const { MLFLOW_RUN_ID: named } = process.env;
  if (named) return named;
  const path = join(directory, file);
  try {
    const kept: unknown = JSON.parse(await readFile(path, "utf8"));
    if (!isRecord(kept)) throw new TypeError("it is no object");
    const { trackingUri, runId } = kept;
    return trackingUri === uri && typeof runId === "string" ? runId : undefined;
  } catch (cause) {
    if (codeOf(cause) !== "ENOENT") {
      warn(`${path} cannot be read, and this run will be another one than before`, cause);
    }
    return undefined;
  }
}

/** The run that a logger opens. */
export interface WantedMlflowRun {
  readonly tracked: TrackedRun;
  /** The run to continue. Undefined: one is made. */
  readonly known: string | undefined;
  /** A text of the logger's own, which marks the run that it makes. */
  readonly mark: string;
  /** Whether the server may have made it before, and its answer was lost or late. */
  isAsked: boolean;
}

/**
 * Makes the run on the server, or continues the known one. Where an attempt before had no answer,
 * the run that it may have made is looked for first. Rejects with what the server, or the way to
 * it, fails with.
 */
export async function openMlflowRun(
  client: MlflowClient,
  wanted: WantedMlflowRun,
  signal: AbortSignal,
): Promise<MlflowRun> {
  const { tracked, known, mark } = wanted;
  if (known !== undefined) return await continued(client, known, signal);
  const experiment = await experimentId(client, tracked.projectName, signal);
  const made = wanted.isAsked ? await runMarked(client, experiment, mark, signal) : undefined;
  if (made !== undefined) return made;
  wanted.isAsked = true;
  const answer = await client.call({
    method: "POST",
    path: "mlflow/runs/create",
    body: {
      experiment_id: experiment,
      run_name: tracked.experimentName,
      start_time: Date.now(),
      tags: [
        { key: "mlflow.source.name", value: "rayling" },
        { key: markKey, value: mark },
      ],
    },
    signal,
  });
  return runIn(answer);
}

const markKey = "rayling.run";

async function runMarked(
  client: MlflowClient,
  experiment: string,
  mark: string,
  signal: AbortSignal,
): Promise<MlflowRun | undefined> {
  const body = {
    experiment_ids: [experiment],
    filter: `tags.\`${markKey}\` = '${mark}'`,
    max_results: 1,
  };
  const { runs } = await client.call({ method: "POST", path: "mlflow/runs/search", body, signal });
  const [run]: readonly unknown[] = Array.isArray(runs) ? runs : [];
  return run === undefined ? undefined : runIn({ run });
}

/** Notes the run for those that resume. Never rejects: `warn` is called where that fails. */
export async function noteMlflowRun(
  { directory }: TrackedRun,
  trackingUri: string,
  runId: string,
  warn: Warn,
): Promise<void> {
  const path = join(directory, file);
  const kept = JSON.stringify({ trackingUri, runId });
  try {
    await replaceFile(path, (unfinished) => writeFile(unfinished, `${kept}\n`));
  } catch (cause) {
    warn(`${path} cannot be written, and a run that resumes will be another one there`, cause);
  }
}

async function continued(
  client: MlflowClient,
  id: string,
  signal: AbortSignal,
): Promise<MlflowRun> {
  const query = { run_id: id };
  const found = runIn(await client.call({ method: "GET", path: "mlflow/runs/get", query, signal }));
  const body = { run_id: id, status: "RUNNING" };
  await client.call({ method: "POST", path: "mlflow/runs/update", body, signal });
  return found;
}

async function experimentId(
  client: MlflowClient,
  name: string,
  signal: AbortSignal,
): Promise<string> {
  const found = await experimentNamed(client, name, signal);
  if (found !== undefined) return found;
  try {
    const path = "mlflow/experiments/create";
    const { experiment_id: id } = await client.call({
      method: "POST",
      path,
      body: { name },
      signal,
    });
    return textOf(id, "experiment_id");
  } catch (error) {
    // Another run made it meanwhile.
    const isThere = error instanceof MlflowError && error.errorCode === "RESOURCE_ALREADY_EXISTS";
    const other = isThere ? await experimentNamed(client, name, signal) : undefined;
    if (other === undefined) throw error;
    return other;
  }
}

async function experimentNamed(
  client: MlflowClient,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const path = "mlflow/experiments/get-by-name";
    const query = { experiment_name: name };
    const { experiment } = await client.call({ method: "GET", path, query, signal });
    return textOf(isRecord(experiment) ? experiment["experiment_id"] : undefined, "experiment_id");
  } catch (error) {
    const isMissing = error instanceof MlflowError && error.errorCode === "RESOURCE_DOES_NOT_EXIST";
    if (isMissing) return undefined;
    throw error;
  }
}

function runIn({ run }: Readonly<Record<string, unknown>>): MlflowRun {
  const info = isRecord(run) && isRecord(run["info"]) ? run["info"] : {};
  const data = isRecord(run) && isRecord(run["data"]) ? run["data"] : {};
  const params = Array.isArray(data["params"]) ? data["params"].filter(isRecord) : [];
  return {
    id: textOf(info["run_id"], "run_id"),
    artifactUri: textOf(info["artifact_uri"], "artifact_uri"),
    params: new Map(params.map(({ key, value }) => [String(key), String(value)])),
  };
}

function textOf(value: unknown, name: string): string {
  if (typeof value === "string") return value;
  throw new TypeError(`the answer of the MLflow server has no ${name}`);
}
