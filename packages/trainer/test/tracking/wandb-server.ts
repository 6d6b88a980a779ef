/** As much of a wandb server as `wandb sync` asks: it keeps the rows and files that it is sent. */

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export interface WandbKept {
  readonly uri: string;
  readonly runs: {
    readonly displayName: string;
    readonly project: string;
    readonly config: string;
  }[];
  readonly rows: Readonly<Record<string, unknown>>[];
  readonly files: Map<string, string>;
  exitCode: unknown;
}

interface GraphqlRequest {
  readonly query: string;
  readonly variables: {
    readonly name: string;
    readonly displayName: string;
    readonly project: string;
    readonly config: string;
    readonly files: readonly string[];
  };
}

export async function wandbServer(): Promise<WandbKept> {
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const part of request.setEncoding("utf8")) text += String(part);
    const [path = ""] = (request.url ?? "").split("?");
    response.setHeader("content-type", "application/json");
    if (path === "/graphql") {
      const data = answerTo(JSON.parse(text) as GraphqlRequest, kept);
      response.end(JSON.stringify({ data }));
      return;
    }
    if (path.startsWith("/upload/")) kept.files.set(path.slice("/upload/".length), text);
    if (path.endsWith("/file_stream")) takeRows(text, kept);
    response.end("{}");
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kept: WandbKept = { uri, runs: [], rows: [], files: new Map(), exitCode: undefined };
  return kept;
}

function answerTo({ query, variables }: GraphqlRequest, kept: WandbKept): object {
  const { name, displayName, project } = variables;
  if (query.includes("upsertBucket")) {
    kept.runs.push(variables);
    const owner = { id: "p", name: project, entity: { id: "e", name: "ada" } };
    const bucket = {
      id: "b",
      name,
      displayName,
      config: "{}",
      historyLineCount: 0,
      project: owner,
    };
    return { upsertBucket: { bucket, inserted: true } };
  }
  if (query.includes("createRunFiles")) {
    const files = variables.files.map((file) => ({
      name: file,
      uploadUrl: `${kept.uri}/upload/${file}`,
    }));
    return { createRunFiles: { runID: "b", uploadHeaders: [], files } };
  }
  return {};
}

function takeRows(text: string, kept: WandbKept): void {
  const sent = JSON.parse(text) as {
    readonly files?: Readonly<Record<string, { readonly content: readonly string[] }>>;
    readonly exitcode?: unknown;
  };
  if (sent.exitcode !== undefined) kept.exitCode = sent.exitcode;
  for (const line of sent.files?.["wandb-history.jsonl"]?.content ?? []) {
    // Python's JSON.
    kept.rows.push(JSON.parse(line.replaceAll(/\bNaN\b/g, '"NaN"')) as Record<string, unknown>);
  }
}
