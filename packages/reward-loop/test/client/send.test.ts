/** Requests of the client: what undici's `request` does, and what is left to fetch. */

import dns from "node:dns";
import { getEventListeners } from "node:events";
import { createServer } from "node:http";
import type { IncomingHttpHeaders, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, constants, deflateSync, gzipSync } from "node:zlib";
import {
  apiUrlOf,
  chatComplete,
  EndpointError,
  postJson,
  postRequest,
} from "@rayling/reward-loop/client";
import type { ChatOptions, PostOptions, PostRequestOptions } from "@rayling/reward-loop/client";
import { fieldOf, requests } from "@rayling/reward-manager-registry/values";
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";

interface Asked {
  readonly path: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

type Behaviour = (asked: Asked, response: ServerResponse) => void;

interface Endpoint extends AsyncDisposable {
  readonly url: string;
  readonly asked: Asked[];
  /** Connections so far. */
  readonly connections: () => number;
}

const said = JSON.stringify({ answer: 42 });

async function startEndpoint(behaviour: Behaviour): Promise<Endpoint> {
  const asked: Asked[] = [];
  let connections = 0;
  const server: Server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (part: string) => (body += part));
    request.on("end", () => {
      const { url: path = "", method = "", headers } = request;
      const one = { path, method, headers, body };
      asked.push(one);
      behaviour(one, response);
    });
  });
  server.on("connection", () => (connections += 1));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const answering: Behaviour = (_, response) => response.end(said);

afterEach(() => vi.unstubAllGlobals());

test("a name none of whose addresses is reached is refused with what each said", async () => {
  const addresses = [
    { address: "::1", family: 6 },
    { address: "127.0.0.1", family: 4 },
  ];
  const lookup = ((_: string, __: object, answer: (error: null, all: object[]) => void) =>
    answer(null, addresses)) as typeof dns.lookup;
  const spy = vi.spyOn(dns, "lookup").mockImplementation(lookup);
  onTestFinished(() => spy.mockRestore());
  await expect(postJson("http://two.example:1/x", {})).rejects.toThrow(
    /could not be asked: connect E\w+ ::1:1.*; connect ECONNREFUSED 127\.0\.0\.1:1$/,
  );
});

test("a request says what fetch says, and connections are used again", async () => {
  await using endpoint = await startEndpoint(answering);
  const headers = { "Content-Type": "application/vnd.api+json", "X-Trace": "7" };
  for (const name of ["one", "two", "three"]) {
    expect(await postJson(`${endpoint.url}/v1?of=${name}#part`, { name }, { headers })).toEqual({
      answer: 42,
    });
  }
  expect(endpoint.connections()).toBeLessThan(3);
  expect(endpoint.asked.map(({ path, method, body }) => [method, path, body])).toEqual([
    ["POST", "/v1?of=one", '{"name":"one"}'],
    ["POST", "/v1?of=two", '{"name":"two"}'],
    ["POST", "/v1?of=three", '{"name":"three"}'],
  ]);
  expect(endpoint.asked[0]?.headers).toMatchObject({
    accept: "*/*",
    "content-length": "14",
    "content-type": "application/vnd.api+json",
    "user-agent": "node",
    "x-trace": "7",
  });
});

test.each([301, 302, 303, 307, 308])(
  "a redirect is followed as fetch does (%d)",
  async (status) => {
    await using endpoint = await startEndpoint(({ path }, response) => {
      if (path === "/there") return response.end(said);
      return response.writeHead(status, { location: "/there" }).end("moved");
    });
    expect(await postJson(`${endpoint.url}/here`, { n: 1 })).toEqual({ answer: 42 });
    const { method, body } = endpoint.asked.at(-1) ?? {};
    const [kept] = [[307, 308].includes(status)];
    expect([method, body]).toEqual(kept ? ["POST", '{"n":1}'] : ["GET", ""]);
  },
);

test("an endless redirect is final", async () => {
  await using endpoint = await startEndpoint((_, response) =>
    response.writeHead(307, { location: "/" }).end(),
  );
  await expect(postJson(endpoint.url, {})).rejects.toThrow("redirect count exceeded");
});

/** Quickly: nobody looks at how small it gets. */
const brotli = (data: string | Uint8Array): Buffer =>
  brotliCompressSync(data, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
const packers = { gzip: gzipSync, deflate: deflateSync, br: brotli };

test.each(Object.entries(packers))(
  "an answer may be packed though nobody has asked for that (%s)",
  async (encoding, pack) => {
    await using endpoint = await startEndpoint((_, response) =>
      response.writeHead(200, { "content-encoding": encoding }).end(pack(said)),
    );
    expect(await postJson(endpoint.url, {})).toEqual({ answer: 42 });
    expect(endpoint.asked[0]?.headers["accept-encoding"]).toBeUndefined();
  },
);

test.each(Object.entries(packers))(
  "more than 64 MiB are not unpacked (%s)",
  async (encoding, pack) => {
    const bomb = pack(Buffer.alloc(65 * 2 ** 20, " "));
    await using endpoint = await startEndpoint((_, response) =>
      response.writeHead(200, { "content-encoding": encoding }).end(bomb),
    );
    await expect(postJson(endpoint.url, {})).rejects.toMatchObject({ code: "MALFORMED_ANSWER" });
  },
);

test("a signal ends the request, and the answer", async () => {
  for (const isBegun of [false, true]) {
    const asked = Promise.withResolvers<ServerResponse>();
    await using endpoint = await startEndpoint((_, response) => {
      if (isBegun) response.writeHead(200).write("{");
      asked.resolve(response);
    });
    const given = new AbortController();
    const answer = postJson(endpoint.url, {}, { signal: given.signal });
    const closed = asked.promise.then(
      (response) => new Promise((resolve) => response.on("close", resolve)),
    );
    await asked.promise;
    given.abort(new Error("no more"));
    await expect(answer).rejects.toThrow("no more");
    await closed;
  }
});

test("a deadline is forgotten with its answer, and leaves the signal without a listener", async () => {
  let status = 200;
  await using endpoint = await startEndpoint((_, response) => {
    response.writeHead(status).end(said);
  });
  const { signal } = new AbortController();
  const timeoutMs = 86_399_999;
  const begun = vi.spyOn(globalThis, "setTimeout");
  const cleared = vi.spyOn(globalThis, "clearTimeout");
  for (const given of [{ signal, timeoutMs }, { timeoutMs }]) {
    status = 200;
    await postJson(endpoint.url, {}, given);
    status = 400;
    await expect(postJson(endpoint.url, {}, given)).rejects.toMatchObject({ status });
  }
  const timers = begun.mock.results.filter(
    (_, index) => begun.mock.calls[index]?.[1] === timeoutMs,
  );
  expect(timers).toHaveLength(4);
  const ended = new Set<unknown>(cleared.mock.calls.map(([timer]) => timer));
  expect(timers.filter(({ value }) => !ended.has(value))).toEqual([]);
  expect(getEventListeners(signal, "abort")).toEqual([]);
  vi.restoreAllMocks();
});

test("a signal that is aborted already ends a request with a deadline by its reason", async () => {
  await using endpoint = await startEndpoint(answering);
  const reason = new Error("enough");
  const given = { signal: AbortSignal.abort(reason), timeoutMs: 60_000 };
  await expect(postJson(endpoint.url, {}, given)).rejects.toBe(reason);
});

test("another dispatcher of the thread is asked", async () => {
  await using endpoint = await startEndpoint(answering);
  const before = getGlobalDispatcher();
  const paths: string[] = [];
  const agent = new Agent().compose((dispatch) => (options, handler) => {
    paths.push(options.path);
    return dispatch(options, handler);
  });
  setGlobalDispatcher(agent);
  try {
    await postJson(`${endpoint.url}/by/agent`, {});
    await postJson(`${endpoint.url}/by/agent`, {}, { timeoutMs: 10_000 });
  } finally {
    setGlobalDispatcher(before);
    await agent.close();
  }
  expect(paths).toEqual(["/by/agent", "/by/agent"]);
});

test("a dispatcher without `request` is asked by fetch, which waits as long as it is told", async () => {
  await using endpoint = await startEndpoint(answering);
  const before = getGlobalDispatcher();
  const timeouts: unknown[] = [];
  const agent = new Agent().compose((dispatch) => (options, handler) => {
    timeouts.push(options.headersTimeout);
    return dispatch(options, handler);
  });
  setGlobalDispatcher(Object.create(agent, { request: { value: undefined } }) as Agent);
  try {
    await postJson(endpoint.url, {}, { timeoutMs: 10_000 });
  } finally {
    setGlobalDispatcher(before);
    await agent.close();
  }
  expect(timeouts).toEqual([0]);
});

test("a function in the place of fetch is asked", async () => {
  const stub = vi.fn(async (url: string, { body, ...init }: { readonly body: string }) =>
    Response.json({ url, ...init, body: JSON.parse(body) as unknown }),
  );
  vi.stubGlobal("fetch", stub);
  expect(await postJson("http://nowhere.invalid/v1", { n: 1 })).toMatchObject({
    url: "http://nowhere.invalid/v1",
    method: "POST",
    body: { n: 1 },
  });
  expect(stub).toHaveBeenCalledOnce();
});

test("what no request can be made of says so", async () => {
  await expect(postJson("nowhere", {})).rejects.toThrow("nowhere could not be asked");
  await expect(postJson("http://a:b@localhost/", {})).rejects.toThrow("credentials");
  await expect(postJson("ftp://localhost/", {})).rejects.toThrow("could not be asked");
  const headers = { "x-bad": "one\ntwo" };
  await expect(postJson("http://127.0.0.1:1/", {}, { headers })).rejects.toThrow("x-bad");
});

test.each([
  ["0 shortens no pause", "0", [20, 40, 80]],
  ["a longer one holds, and is announced", "200", [200, 200, 200]],
])("a server's retry-after: %s", async (_, retryAfterMs, least) => {
  const announced: unknown[] = [];
  const hear = (request: unknown): void => void announced.push(fieldOf(request, "pauseMs"));
  requests.subscribe(hear);
  onTestFinished(() => {
    requests.unsubscribe(hear);
  });
  const atMs: number[] = [];
  await using endpoint = await startEndpoint((_asked, response) => {
    atMs.push(performance.now());
    response.writeHead(503, { "retry-after-ms": retryAfterMs }).end();
  });
  const asking = postRequest(endpoint.url, {}, { secondMs: 20, maxRetries: 4 });
  await expect(asking).rejects.toMatchObject({ status: 503 });
  const pauses = atMs.slice(1).map((at, place) => at - (atMs[place] ?? 0));
  expect(pauses).toHaveLength(3);
  // A timer of Node may be a millisecond early.
  for (const [place, ms] of least.entries()) expect(pauses[place]).toBeGreaterThan(ms - 2);
  const asked = Number(retryAfterMs);
  expect(announced).toEqual([0, asked, asked, asked]);
});

test.each([Infinity, 2 ** 31, 2 ** 40 + 0.5, 60_000.5])(
  "a deadline of %d ms is one that a timer can take",
  async (timeoutMs) => {
    await using endpoint = await startEndpoint(answering);
    expect(await postJson(endpoint.url, {}, { timeoutMs })).toEqual({ answer: 42 });
  },
);

test.each([0, -1])("a deadline that is over, of %d ms, is late", async (timeoutMs) => {
  await using endpoint = await startEndpoint(() => undefined);
  await expect(postJson(endpoint.url, {}, { timeoutMs })).rejects.toMatchObject({
    name: "EndpointError",
    code: "ETIMEDOUT",
  });
});

test("a deadline that is no number is refused, and named", async () => {
  await using endpoint = await startEndpoint(answering);
  const asked = postJson(endpoint.url, {}, { timeoutMs: Number.NaN });
  await expect(asked).rejects.toThrow(`The timeoutMs of ${endpoint.url} is not a number`);
  expect(endpoint.asked).toEqual([]);
});

test("a request that is given up in its pause rejects with the signal's reason", async () => {
  await using endpoint = await startEndpoint(answering);
  const controller = new AbortController();
  const reason = new Error("enough");
  const check = (): never => {
    // The pause begins as soon as this has thrown.
    setImmediate(() => controller.abort(reason));
    throw new EndpointError(endpoint.url, "said nothing", { code: "MALFORMED_ANSWER" });
  };
  const { signal } = controller;
  const asking = postRequest(endpoint.url, {}, { secondMs: 1e6, signal, check });
  await expect(asking).rejects.toBe(reason);
  expect(endpoint.asked).toHaveLength(1);
});

test("options that are none are refused by their names, and nothing is asked", async () => {
  await using endpoint = await startEndpoint(answering);
  const { url } = endpoint;
  const chat = { baseUrl: url, model: "judge", messages: [] };
  const asked: readonly (readonly [option: string, ask: () => Promise<unknown>])[] = [
    ["postJson.timeout", () => postJson(url, {}, { timeout: 5 } as PostOptions)],
    ["postJson.signal", () => postJson(url, {}, { signal: new AbortController() as never })],
    ["postRequest.retries", () => postRequest(url, {}, { retries: 5 } as PostRequestOptions)],
    ["postRequest.secondMs", () => postRequest(url, {}, { secondMs: Number.NaN })],
    ["chatComplete.baseUrl", () => chatComplete({ ...chat, baseUrl: undefined as never })],
    ["chatComplete.model", () => chatComplete({ ...chat, model: "" })],
    ["chatComplete.maxTokens", () => chatComplete({ ...chat, maxTokens: Number.NaN })],
    ["chatComplete.again", () => chatComplete({ ...chat, again: ["lenght" as "length"] })],
    ["chatComplete.max_tokens", () => chatComplete({ ...chat, max_tokens: 5 } as ChatOptions)],
  ];
  for (const [option, ask] of asked) {
    await expect(ask()).rejects.toMatchObject({ code: "REWARD_LOOP_OPTION", option });
  }
  const late = postJson(url, {}, { timeoutMs: "abc" as never });
  await expect(late).rejects.toThrow(`The timeoutMs of ${url} is not a number`);
  expect(endpoint.asked).toEqual([]);
});

test("a number of tries that is none is one", async () => {
  await using endpoint = await startEndpoint((_, response) => response.writeHead(503).end());
  const tries = { maxRetries: Number.NaN, secondMs: 0 };
  await expect(postRequest(endpoint.url, {}, tries)).rejects.toMatchObject({ status: 503 });
  expect(endpoint.asked).toHaveLength(1);
});

test("whole numbers that a double cannot hold are sent digit by digit", async () => {
  await using endpoint = await startEndpoint(answering);
  await postJson(endpoint.url, { truths: [12345678901234567890n, 1n], one: 0.5 });
  expect(endpoint.asked[0]?.body).toBe('{"truths":[12345678901234567890,1],"one":0.5}');
});

test.each([
  ["node-1:8000", "http://node-1:8000/v1/chat"],
  ["node-1:8000/", "http://node-1:8000/v1/chat"],
  ["node-1:8000/v1", "http://node-1:8000/v1/chat"],
  ["node-1:8000/v2/", "http://node-1:8000/v2/chat"],
  ["[::1]:8000", "http://[::1]:8000/v1/chat"],
  ["http://node-1:8000", "http://node-1:8000/chat"],
  ["HTTP://node-1:8000/v1", "http://node-1:8000/v1/chat"],
  ["https://node-1/v1?api-version=1&b=", "https://node-1/v1/chat?api-version=1&b="],
  ["https://me:a%2Fb@node-1/v1/#top", "https://me:a%2Fb@node-1/v1/chat"],
  ["node-1:99999", "http://node-1:99999/chat"],
])("the API at %s is asked at %s", (baseUrl, url) => {
  expect(apiUrlOf(baseUrl, "/chat")).toBe(url);
});

test("a base URL with a query keeps it, behind the path", async () => {
  const answer = JSON.stringify({ choices: [{ message: { content: "yes" } }] });
  await using endpoint = await startEndpoint((_, response) => response.end(answer));
  const baseUrl = `${endpoint.url}/v1?api-version=1`;
  await chatComplete({ baseUrl, model: "judge", messages: [] });
  expect(endpoint.asked[0]?.path).toBe("/v1/chat/completions?api-version=1");
});
