/**
 * The run of an MLflow server: found or made, with verl's names. `trainer.project_name` is the
 * experiment, `trainer.experiment_name` the run.
 *
 * The run's id stays in `mlflow.json` in the folder of the run, so that a resumed run continues the
 * same run of the server. MLFLOW_RUN_ID names another one, as in verl.
 */

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "@rayling/reward-manager-registry/values";
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

export async function openMlflowRun(
  client: MlflowClient,
  run: TrackedRun,
  signal: AbortSignal,
): Promise<MlflowRun> {
  const known = process.env["MLFLOW_RUN_ID"] || (await idIn(run.directory, client.uri));
  if (known !== undefined) return await continued(client, known, signal);
  const experiment = await experimentId(client, run.projectName, signal);
  const answer = await client.call({
    method: "POST",
    path: "mlflow/runs/create",
    body: {
      experiment_id: experiment,
      run_name: run.experimentName,
      start_time: Date.now(),
      tags: [{ key: "mlflow.source.name", value: "rayling" }],
    },
    signal,
  });
  const made = runIn(answer);
  const kept = JSON.stringify({ trackingUri: client.uri, runId: made.id });
  await replaceFile(join(run.directory, file), (path) => writeFile(path, `${kept}\n`));
  return made;
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

async function idIn(directory: string, uri: string): Promise<string | undefined> {
  const text = await readFile(join(directory, file), "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  const kept: unknown = JSON.parse(text);
  const isSame = isRecord(kept) && kept["trackingUri"] === uri;
  return isSame && typeof kept["runId"] === "string" ? kept["runId"] : undefined;
}
