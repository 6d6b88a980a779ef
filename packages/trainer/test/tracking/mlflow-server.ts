/** A small MLflow server by its REST API that keeps what it got, and can be away or refuse. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface MlflowKept {
  readonly uri: string;
  /** Paths of all requests, in order. */
  readonly paths: string[];
  readonly params: Map<string, string>;
  /** Values by key and step. */
  readonly metrics: Map<string, unknown>;
  readonly artifacts: Map<string, unknown>;
  readonly statuses: unknown[];
  readonly authorizations: Set<string | undefined>;
  /** Answers the next requests with this status, or page; undefined: answers well. */
  answerWith: ((path: string, body: string) => number | Page | undefined) | undefined;
  /** Keys for which all values of a request are refused. */
  readonly refused: Set<string>;
  /** How many of the next answers to a request that makes a run are lost on their way. */
  unheard: number;
}

/** What a gateway before the server answers. */
export interface Page {
  readonly status: number;
  readonly html: string;
}

interface Sent {
  readonly metrics?: readonly {
    readonly key: string;
    readonly value: unknown;
    readonly step: number;
  }[];
  readonly params?: readonly { readonly key: string; readonly value: string }[];
  readonly status?: unknown;
  readonly filter?: string;
  readonly tags?: readonly { readonly key: string; readonly value: string }[];
}

export async function mlflowServer(): Promise<MlflowKept> {
  const experiments = new Map<string, string>();
  const marks = new Set<string>();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "", "http://localhost");
    const path = url.pathname.replace("/api/2.0/", "");
    let text = "";
    for await (const part of request) text += String(part);
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(body));
    };
    kept.paths.push(path);
    kept.authorizations.add(request.headers.authorization);
    const told = kept.answerWith?.(path, text);
    if (typeof told === "object") {
      response.writeHead(told.status, { "content-type": "text/html" });
      return void response.end(told.html);
    }
    if (told !== undefined) return answer(told, { error_code: "TOLD", message: "as told" });
    const body = (text === "" ? {} : JSON.parse(text)) as Sent & { readonly name?: string };
    const bad = [...(body.metrics ?? []), ...(body.params ?? [])].find(({ key }) =>
      kept.refused.has(key),
    );
    if (bad !== undefined) {
      const message = `Invalid value "${bad.key}"`;
      return answer(400, { error_code: "INVALID_PARAMETER_VALUE", message });
    }
    const run = {
      info: { run_id: "r1", artifact_uri: "mlflow-artifacts:/1/r1/artifacts" },
      data: { params: [...kept.params].map(([key, value]) => ({ key, value })) },
    };
    const name = url.searchParams.get("experiment_name") ?? "";
    if (path.endsWith("get-by-name")) {
      const id = experiments.get(name);
      return id === undefined
        ? answer(404, { error_code: "RESOURCE_DOES_NOT_EXIST", message: name })
        : answer(200, { experiment: { experiment_id: id } });
    }
    if (path.endsWith("experiments/create")) {
      experiments.set(body.name ?? "", "1");
      return answer(200, { experiment_id: "1" });
    }
    if (path.endsWith("runs/search")) {
      const [, mark = ""] = /^tags\.`rayling\.run` = '([^']+)'$/.exec(body.filter ?? "") ?? [];
      return answer(200, marks.has(mark) ? { runs: [run] } : {});
    }
    if (path.endsWith("runs/create")) {
      for (const { key, value } of body.tags ?? []) if (key === "rayling.run") marks.add(value);
      if (kept.unheard-- > 0) return void request.socket.destroy();
    }
    if (path.startsWith("mlflow-artifacts/")) kept.artifacts.set(path, body);
    if (body.status !== undefined) kept.statuses.push(body.status);
    for (const { key, value } of body.params ?? []) kept.params.set(key, value);
    for (const { key, value, step } of body.metrics ?? [])
      kept.metrics.set(`${key} ${step}`, value);
    answer(200, { run });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const kept: MlflowKept = {
    uri: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    paths: [],
    params: new Map(),
    metrics: new Map(),
    artifacts: new Map(),
    statuses: [],
    authorizations: new Set(),
    answerWith: undefined,
    refused: new Set(),
    unheard: 0,
  };
  return kept;
}
