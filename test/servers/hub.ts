/** A Hugging Face Hub of one machine: what its API answers for repositories that a test gives, and what was asked. */
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { once } from "node:events";

export interface TestHub extends AsyncDisposable {
  /** For HF_ENDPOINT. */
  readonly url: string;
  /** Method and path of each request, without its query. */
  readonly asked: string[];
}

/** The files of a repository, by its name: "datasets/acme/sums" or "acme/tiny". */
export type Repositories = Readonly<Record<string, Readonly<Record<string, string>>>>;

export const commit: string = "c0ffee".padEnd(40, "0");

/** @param token what a request must have; undefined: nothing is private */
export async function startHub(repositories: Repositories, token?: string): Promise<TestHub> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "", "http://hub");
    asked.push(`${request.method} ${pathname}`);
    if (token !== undefined && request.headers.authorization !== `Bearer ${token}`) {
      return answer(response, 401, { error: "Invalid credentials" });
    }
    const [kind, name, what, rest] = placeOf(decodeURIComponent(pathname));
    const files = repositories[name];
    if (files === undefined) return answer(response, 404, { error: "Repository not found" });
    if (kind === "file") return sendFile(request, response, files[rest]);
    if (what === "revision") return answer(response, 200, aboutOf(name));
    const entries = Object.entries(files).map(([path, text]) => ({
      type: "file",
      oid: "1".repeat(40),
      size: text.length,
      path,
    }));
    return answer(response, 200, entries);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Paths of the API, and those of files. */
function placeOf(path: string): readonly [kind: string, name: string, what: string, rest: string] {
  const api = /^\/api\/(?:models\/)?((?:datasets\/)?[^/]+\/[^/]+)\/(revision|tree)\/(.+)$/.exec(
    path,
  );
  if (api !== null) return ["api", api[1] ?? "", api[2] ?? "", api[3] ?? ""];
  const file = /^\/((?:datasets\/)?[^/]+\/[^/]+)\/resolve\/[^/]+\/(.+)$/.exec(path);
  return ["file", file?.[1] ?? "", "resolve", file?.[2] ?? ""];
}

function aboutOf(name: string): object {
  const id = name.replace("datasets/", "");
  const counts = { downloads: 1, likes: 0, private: false, gated: false };
  return { _id: "1", id, sha: commit, lastModified: "2026-01-01T00:00:00.000Z", ...counts };
}

function sendFile(request: IncomingMessage, response: ServerResponse, text?: string): void {
  if (text === undefined) {
    response.setHeader("x-error-code", "EntryNotFound");
    return answer(response, 404, { error: "Entry not found" });
  }
  const body = Buffer.from(text);
  response.setHeader("etag", '"1"');
  const [, first = "0", last = String(body.length - 1)] =
    /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
  if (request.headers.range === undefined) {
    response.end(body);
    return;
  }
  response.statusCode = 206;
  response.setHeader("content-range", `bytes ${first}-${last}/${body.length}`);
  response.end(body.subarray(Number(first), Number(last) + 1));
}

function answer(response: ServerResponse, status: number, value: unknown): void {
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(value));
}
