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
    // Too much at once, by a gateway's measure: less of it may pass.
    return this.status === 400 || this.status === 413;
  }
}

/**
 * Something else than MLflow answered at its address, such as a gateway or the page of a sign-in.
 * Nothing was delivered; MLflow may answer later.
 */
export class NotMlflowError extends FailedReport {}

export interface MlflowRequest {
  readonly method: "GET" | "POST" | "PUT";
  /** Below the API's root: `mlflow/runs/create`. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/** Returns the address without a slash at its end. Throws TypeError for one that is not of HTTP. */
export function mlflowAddress(uri: string = process.env["MLFLOW_TRACKING_URI"] ?? ""): string {
  if (uri === "") throw new TypeError("MLFLOW_TRACKING_URI, the server's address, is not set");
  if (!URL.canParse(uri) || !/^https?:$/.test(new URL(uri).protocol)) {
    throw new TypeError(`"${uri}" is not an HTTP address`);
  }
  return uri.replace(/\/+$/, "");
}

export class MlflowClient {
  /** Address of the server, without a slash at its end. */
  readonly uri: string;
  readonly #headers: Readonly<Record<string, string>>;

  /**
   * Throws TypeError for an address that is not of HTTP.
   *
   * @param uri default: the environment's MLFLOW_TRACKING_URI
   */
  constructor(uri?: string) {
    this.uri = mlflowAddress(uri);
    this.#headers = { "content-type": "application/json", ...credentials(process.env) };
  }

  /**
   * Returns the answer's JSON; each answer of MLflow is an object, `{}` if there is nothing to say.
   * Rejects with MlflowError where the server refuses, and with another error where a later attempt
   * may go well: NotMlflowError for an answer that is not MLflow's.
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
    const answer = recordIn(text);
    if (response.ok && answer !== undefined) return answer;
    throw failureOf(path, response.status, text, answer);
  }
}

/** Refusals that a gateway makes for MLflow: of credentials, and of the size of a request. */
const gatewayRefusals: ReadonlySet<number> = new Set([401, 403, 413]);

function failureOf(
  path: string,
  status: number,
  text: string,
  answer: Readonly<Record<string, unknown>> | undefined,
): Error {
  const { error_code: code, message } = answer ?? {};
  const said = typeof message === "string" ? message : text.slice(0, 200);
  const error = new MlflowError(path, status, typeof code === "string" ? code : "", said);
  // These may go well later; other errors of MLflow are refusals.
  if (status >= 500 || status === 408 || status === 429) return new FailedReport(error.message);
  if (typeof code === "string" || gatewayRefusals.has(status)) return error;
  return new NotMlflowError(`${path}: HTTP ${status}, and the answer is not MLflow's: ${said}`);
}

function credentials(env: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  const token = env["MLFLOW_TRACKING_TOKEN"];
  if (token !== undefined && token !== "") return { authorization: `Bearer ${token}` };
  const [name, password] = [env["MLFLOW_TRACKING_USERNAME"], env["MLFLOW_TRACKING_PASSWORD"]];
  if (name === undefined || password === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}` };
}

function recordIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
