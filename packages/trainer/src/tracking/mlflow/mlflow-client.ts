/**
 * Requests to an MLflow tracking server by its REST API 2.0, with the credentials that MLflow's own
 * client takes from the environment.
 */

import { isRecord } from "@rayling/reward-manager-registry/values";
import { FailedReport, RefusedReport } from "../delivery.ts";

/** The server answered with an error. */
export class MlflowError extends RefusedReport {
  /** HTTP status. */
  readonly status: number;
  /** MLflow's error code, such as RESOURCE_DOES_NOT_EXIST. */
  readonly errorCode: string;

  constructor(what: string, status: number, errorCode: string, message: string) {
    super(`${what}: HTTP ${status} ${errorCode}: ${message}`);
    this.status = status;
    this.errorCode = errorCode;
  }

  override get isForValue(): boolean {
    return this.status === 400;
  }
}

export interface MlflowRequest {
  readonly method: "GET" | "POST" | "PUT";
  /** Below the API's root: `mlflow/runs/create`. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export class MlflowClient {
  /** Address of the server, without a slash at its end. */
  readonly uri: string;
  readonly #headers: Readonly<Record<string, string>>;

  /** Throws TypeError for an address that is not of HTTP. */
  constructor(uri: string) {
    const url = new URL(uri);
    if (!/^https?:$/.test(url.protocol)) throw new TypeError(`"${uri}" is not an HTTP address`);
    this.uri = uri.replace(/\/+$/, "");
    this.#headers = { "content-type": "application/json", ...credentials(process.env) };
  }

  /**
   * Returns the answer's JSON. Rejects with MlflowError where the server refuses, and with another
   * error where a later attempt may go well.
   */
  async call(request: MlflowRequest): Promise<Readonly<Record<string, unknown>>> {
    const { method, path, body, query = {}, signal } = request;
    const url = new URL(`${this.uri}/api/2.0/${path}`);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const response = await fetch(url, {
      method,
      headers: this.#headers,
      signal,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.ok) return recordIn(text);
    const { error_code: code, message } = recordIn(text);
    const { status } = response;
    const error = new MlflowError(
      path,
      status,
      typeof code === "string" ? code : "",
      typeof message === "string" ? message : text.slice(0, 200),
    );
    // These may go well later; the others are refusals.
    if (status < 500 && status !== 408 && status !== 429) throw error;
    throw new FailedReport(error.message);
  }
}

function credentials(env: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  const token = env["MLFLOW_TRACKING_TOKEN"];
  if (token !== undefined && token !== "") return { authorization: `Bearer ${token}` };
  const [name, password] = [env["MLFLOW_TRACKING_USERNAME"], env["MLFLOW_TRACKING_PASSWORD"]];
  if (name === undefined || password === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}` };
}

function recordIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}
