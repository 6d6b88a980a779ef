/** What the router lets through, what of it, and whose failure it is: real servers, and requests as bytes. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import * as ray from "@rayling/core";
import { RewardLoopManager, RewardModelManager, RewardModelRouter } from "@rayling/reward-loop";
import { chatComplete, postJson } from "@rayling/reward-loop/client";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { askRaw, RawClient } from "../../../../test/fixtures/raw-http.ts";
import { rememberToken, withRouterToken } from "../../src/client/router-tokens.ts";
import { startJudge } from "../judge.ts";
import { fixture } from "../loop.ts";

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});
beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

interface Seen extends Pick<IncomingMessage, "method" | "url" | "headers"> {
  readonly body: string;
}

/** A server that notes what comes, and answers as it is told. */
async function serverOf(
  answer: RequestListener = (_, response) => void response.end("well"),
): Promise<{ readonly address: string; readonly seen: readonly Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    let body = "";
    for await (const chunk of request) body += String(chunk);
    seen.push({ method, url, headers, body });
    answer(request, response);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  ends.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

const token = "0123456789abcdef0123456789abcdef";

async function routerOf(
  servers: readonly string[],
  options: Parameters<typeof RewardModelRouter.start>[1] = {},
): Promise<RewardModelRouter> {
  const standard = { token, healthEveryMs: 2 ** 30 };
  const router = await RewardModelRouter.start(servers, { ...standard, ...options });
  ends.push(() => router.close());
  return router;
}

const portOf = ({ address }: RewardModelRouter): number => Number(address.split(":")[1]);

function bytesOf(start: string, ...more: readonly string[]): string {
  const [method = "", target = ""] = start.split(" ");
  const body = method === "POST" ? "{}" : "";
  const length = body === "" ? [] : [`Content-Length: ${body.length}`];
  const lines = [`${method} ${target} HTTP/1.1`, "Host: localhost"];
  const own = [`Authorization: Bearer ${token}`, "Connection: close"];
  return [...lines, ...own, ...length, ...more, "", body].join("\r\n");
}

describe("paths", () => {
  test("that ask a model, and those that say what it is, come to the server", async () => {
    const server = await serverOf();
    const router = await routerOf([server.address]);
    const asked = [
      "/v1/chat/completions",
      "/v1/completions",
      "/v1/embeddings",
      "/v1/responses",
      "/classify",
      "/v1/classify",
      "/pooling",
      "/score",
      "/v1/score",
      "/rerank",
      "/v1/rerank",
      "/v2/rerank",
      "/generate",
      "/encode",
      "/tokenize",
      "/detokenize",
    ].map((path) => `POST ${path}`);
    const read = ["/health", "/v1/models", "/version", "/get_model_info", "/v1/models?a=%2e%2e//"];
    const all = [...asked, ...read.map((path) => `GET ${path}`)];
    for (const one of all) {
      expect([one, (await askRaw(portOf(router), bytesOf(one))).status]).toEqual([one, 200]);
    }
    expect(server.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(all);
  });

  /** Of vLLM and SGLang, of several versions. */
  const admin = [
    ..."abort_request abort_requests clear_hicache_storage_backend close_session collective_rpc configure_logging destroy_weights_update_group".split(
      " ",
    ),
    ..."dump_expert_distribution_record flush_cache freeze_gc get_server_info get_weights_by_name init_weight_transfer_engine".split(
      " ",
    ),
    ..."init_weights_send_group_for_remote_instance init_weights_update_group invocations is_sleeping load_lora_adapter metrics open_session".split(
      " ",
    ),
    ..."pause pause_generation continue_generation release_memory_occupation reset_encoder_cache reset_mm_cache reset_prefix_cache resume".split(
      " ",
    ),
    ..."resume_memory_occupation scale_elastic_ep send_weights_to_remote_instance server_info set_internal_state shutdown sleep slow_down".split(
      " ",
    ),
    ..."start_expert_distribution_record start_profile stop_profile tokenizer_info unload_lora_adapter update_weights update_weights_from_disk".split(
      " ",
    ),
    ..."update_weights_from_distributed update_weights_from_ipc update_weights_from_tensor update_weight_version wake_up".split(
      " ",
    ),
    ..."v1/load_lora_adapter v1/unload_lora_adapter v1/files v1/batches docs openapi.json".split(
      " ",
    ),
  ];

  test("that do anything else to a server do not, by any method and in any spelling", async () => {
    const server = await serverOf();
    const router = await routerOf([server.address]);
    const spellings = admin.flatMap((path) => [
      `/${path}`,
      `/${path}/`,
      `//${path}`,
      `/v1/models/../../${path}`,
      `/v1/completions/..%2f..%2f${path}`,
      `/%2e/${path}`,
      `/${path}?level=1`,
    ]);
    for (const target of spellings) {
      for (const method of ["GET", "POST"]) {
        const { status } = await askRaw(portOf(router), bytesOf(`${method} ${target}`));
        expect([target, status]).toEqual([target, 404]);
      }
    }
    expect(server.seen).toEqual([]);
    expect(router.servers[0]).toMatchObject({ failed: 0, served: 0, inFlight: 0 });
  });

  test("that its owner adds come to the server, and nothing else that is near them", async () => {
    const server = await serverOf();
    const allowedPaths = ["/v1/audio/*", "/my_score", "/"];
    const router = await routerOf([server.address], { allowedPaths });
    const statusOf = async (start: string): Promise<number> =>
      (await askRaw(portOf(router), bytesOf(start))).status;
    for (const one of ["POST /v1/audio/a/b", "GET /my_score", "POST /my_score", "GET /"]) {
      expect([one, await statusOf(one)]).toEqual([one, 200]);
    }
    for (const one of ["POST /v1/audio/../flush_cache", "GET /my_score/", "GET /v1/audio"]) {
      expect([one, await statusOf(one)]).toEqual([one, 404]);
    }
    expect(await statusOf("DELETE /my_score")).toBe(405);
    expect(await statusOf("GET /v1/chat/completions")).toBe(405);
  });
});

describe("what is wrong with a request", () => {
  test("is no server's failure, and asks none", async () => {
    const server = await serverOf();
    const router = await routerOf([server.address], { maxBodyBytes: 10 });
    const long = bytesOf("POST /v1/completions").replace(
      "Content-Length: 2\r\n",
      "Content-Length: 11\r\n",
    );
    for (const [bytes, status] of [
      [bytesOf("GET http://127.0.0.1:1/health"), 400],
      [bytesOf(`GET http://${server.address}/flush_cache`), 400],
      [bytesOf("GET /health", "Transfer-Encoding: gzip, chunked"), 501],
      [bytesOf("GET /health", "Origin: http://evil.example"), 403],
      [bytesOf("GET /health").replace("Host: localhost", "Host: evil.example"), 421],
      [bytesOf("GET /health").replace(token, `${token}x`), 401],
      [long, 413],
      [bytesOf(`GET /health?${"x".repeat(10_000)}`), 414],
      [bytesOf("GET /health", `X-Long: ${"x".repeat(20_000)}`), 431],
    ] as const) {
      expect((await askRaw(portOf(router), bytes)).status).toBe(status);
    }
    expect(server.seen).toEqual([]);
    expect(router.servers[0]).toMatchObject({ failed: 0, served: 0, inFlight: 0, isOut: false });
  });

  test("is no server's failure if its client goes before all of it is there", async () => {
    const server = await serverOf();
    const router = await routerOf([server.address]);
    for (let round = 0; round < 5; round++) {
      const client = new RawClient(portOf(router));
      const begun = bytesOf("POST /v1/completions").replace("Length: 2\r\n", "Length: 20\r\n");
      client.send(begun);
      await once(client.socket, "connect");
      client.socket.destroy();
    }
    expect((await askRaw(portOf(router), bytesOf("GET /health"))).status).toBe(200);
    expect(server.seen).toHaveLength(1);
    expect(router.servers[0]).toMatchObject({ failed: 0, served: 1 });
  });

  test("that many bodies are there at once is a matter of time: 503, and the server is asked no more", async () => {
    const waiting: ServerResponse[] = [];
    const server = await serverOf((_, response) => void waiting.push(response));
    const limits = { maxBodyBytes: 100, maxBufferedBytes: 150 };
    const router = await routerOf([server.address], limits);
    const headers = { authorization: `Bearer ${token}` };
    const post = (): Promise<Response> =>
      fetch(`http://${router.address}/score`, { method: "POST", headers, body: "x".repeat(100) });
    const first = post();
    await expect.poll(() => waiting.length).toBe(1);
    const second = await post();
    expect(second.status).toBe(503);
    expect(await second.json()).toMatchObject({
      error: { code: "too_many_bytes", type: "server_error" },
    });
    waiting[0]?.end("first");
    expect(await (await first).text()).toBe("first");
    const third = post();
    await expect.poll(() => waiting.length).toBe(2);
    waiting[1]?.end("third");
    expect((await third).status).toBe(200);
    expect(router.servers[0]).toMatchObject({ failed: 0 });
  });
});

describe("headers", () => {
  test("of one connection stay there, those that Connection names, too; the token stays with the router", async () => {
    const server = await serverOf((_, response) => {
      response.writeHead(200, {
        connection: "close, x-hop",
        "x-hop": "1",
        "x-own": "1",
        "keep-alive": "timeout=5",
        "proxy-authenticate": "Basic",
        "www-authenticate": "Bearer",
      });
      response.end("well");
    });
    const router = await routerOf([server.address]);
    const answer = await askRaw(
      portOf(router),
      bytesOf(
        "POST /v1/completions",
        "Connection: X-Secret, keep-alive",
        "X-Secret: 1",
        "X-Request-Id: 7",
        "X-Api-Key: 8",
        "Proxy-Authorization: Basic abc",
        "Proxy-Connection: keep-alive",
        "Keep-Alive: timeout=5",
        "TE: trailers",
        "Trailer: X-Last",
        "Upgrade: websocket",
      ),
    );
    expect(answer).toMatchObject({ status: 200, headers: { "x-own": "1" }, body: "well" });
    for (const name of ["x-hop", "keep-alive", "proxy-authenticate"]) {
      expect(answer.headers).not.toHaveProperty(name);
    }
    const [{ headers, body } = { headers: {}, body: "" }] = server.seen;
    expect(body).toBe("{}");
    expect(headers).toMatchObject({
      "x-request-id": "7",
      "x-api-key": "8",
      host: server.address,
      via: expect.stringMatching(/^1\.1 rayling-/) as string,
    });
    for (const name of [
      "authorization",
      "x-secret",
      "proxy-authorization",
      "proxy-connection",
      "keep-alive",
      "te",
      "trailer",
      "upgrade",
    ]) {
      expect(headers).not.toHaveProperty(name);
    }
    expect(JSON.stringify(server.seen)).not.toContain(token);
  });

  test("have the servers' own key, when the router asks for itself as well", async () => {
    const server = await serverOf();
    const router = await routerOf([server.address], { apiKey: "the-key" });
    await askRaw(portOf(router), bytesOf("POST /v1/completions"));
    await router.checkHealth();
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual([
      "Bearer the-key",
      "Bearer the-key",
    ]);
  });
});

test("an answer comes part by part; its server is given up with its client, also behind another on one connection", async () => {
  const answers: ServerResponse[] = [];
  const server = await serverOf((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: 1\n\n");
    answers.push(response);
  });
  const router = await routerOf([server.address]);
  const client = new RawClient(portOf(router));
  const one = bytesOf("POST /v1/completions").replace("Connection: close\r\n", "");
  client.send(one + one);
  await client.until((text) => text.includes("data: 1"));
  await expect.poll(() => answers.length).toBe(2);
  answers[0]?.write("data: 2\n\n");
  await client.until((text) => text.includes("data: 2"));
  const gone = answers.map((answer) => once(answer, "close"));
  client.socket.destroy();
  await Promise.all(gone);
  await expect.poll(() => router.servers[0]).toMatchObject({ inFlight: 0, failed: 0 });
});

describe("secrets", () => {
  const samples = { dataSource: "test", response: "18", groundTruth: "18" };

  test("are new for each router, and each demands its own", async () => {
    const server = await serverOf();
    const [one, other] = await Promise.all(
      [1, 2].map(() => RewardModelRouter.start([server.address])),
    );
    for (const router of [one, other]) if (router !== undefined) ends.push(() => router.close());
    expect(one?.token).toMatch(/^[\w-]{43}$/);
    expect(one?.token).not.toBe(other?.token);
    const ask = (address = "", headers = {}): Promise<Response> =>
      fetch(`http://${address}/health`, { headers });
    expect((await ask(one?.address)).status).toBe(401);
    const authorization = `Bearer ${one?.token}`;
    expect((await ask(one?.address, { authorization })).status).toBe(200);
    expect((await ask(other?.address, { authorization })).status).toBe(401);
  });

  test("of the environment are taken, and the servers are told to sleep with their key", async () => {
    const server = await serverOf();
    vi.stubEnv("RAYLING_ROUTER_TOKEN", token);
    vi.stubEnv("RAYLING_REWARD_MODEL_API_KEY", "the-key");
    onTestFinished(() => void vi.unstubAllEnvs());
    const servers = [server.address];
    await using manager = await RewardModelManager.create({
      engine: "vllm",
      servers,
      sleeps: true,
    });
    expect(manager.routerToken).toBe(token);
    const headers = { authorization: `Bearer ${token}` };
    await manager.awake(() => fetch(`http://${manager.routerAddress}/v1/models`, { headers }));
    const asked = server.seen.map(({ url, headers: sent }) => [url, sent.authorization]);
    expect(asked.filter(([url]) => url !== "/health")).toEqual(
      ["/sleep?level=1", "/wake_up", "/v1/models", "/sleep?level=1"].map((url) => [
        url,
        "Bearer the-key",
      ]),
    );
  });

  test("servers that are started demand the key, and get no other secret of the environment", async () => {
    vi.stubEnv("RAYLING_ROUTER_TOKEN", token);
    vi.stubEnv("RAYLING_NODES", "rayling://secret@127.0.0.1:1");
    onTestFinished(() => void vi.unstubAllEnvs());
    const program = `require("node:http").createServer((_, response) => response.end(JSON.stringify(process.env))).listen(Number(process.argv[1]), "127.0.0.1")`;
    await using manager = await RewardModelManager.create({
      engine: "vllm",
      apiKey: "the-key",
      launch: { command: process.execPath, args: ["-e", program, "{port}"] },
    });
    const headers = { authorization: `Bearer ${manager.routerToken}` };
    const answer = await fetch(`http://${manager.routerAddress}/health`, { headers });
    const env = (await answer.json()) as Record<string, string>;
    expect(env["VLLM_API_KEY"]).toBe("the-key");
    const names = Object.keys(env).filter((name) => /TOKEN|NODES|MODEL_API_KEY/.test(name));
    expect(names.filter((name) => name.startsWith("RAYLING_"))).toEqual([]);
  });

  test.each([
    ["token", { token: "short-secret" }],
    ["token", { token: `${token} \r\nX: 1` }],
    ["apiKey", { apiKey: "short secret" }],
    ["token", { token: 12_345 }],
  ])("are refused where they cannot be, and not shown: %s", async (name, options) => {
    const error = await RewardModelRouter.start([], options as never).catch(
      (reason: unknown) => reason,
    );
    expect(error).toMatchObject({ name: "RewardLoopOptionError", option: `router.${name}` });
    for (const value of Object.values(options)) {
      expect(JSON.stringify(error) + String(error)).not.toContain(String(value));
    }
    const bad = { engine: "vllm", servers: ["x"], router: options } as never;
    await expect(RewardModelManager.create(bad)).rejects.toMatchObject({
      option: `rewardModel.router.${name}`,
    });
  });

  test("come to a function of yours, and by the client they go to their router and nowhere else", async () => {
    await using judge = await startJudge();
    const elsewhere = await serverOf((_, response) => void response.end("{}"));
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      reward: {
        path: fixture("by-router.ts"),
        name: "bySecrets",
        rewardKwargs: { elsewhere: elsewhere.address },
      },
      rewardModel: {
        engine: "vllm",
        model: "judge",
        servers: [judge.address],
        router: { token },
      },
    });
    const outcome = await loop.computeScore(samples);
    expect(outcome).toMatchObject({
      valid: true,
      rewardExtraInfo: { token, byClient: 200, byHand: 200, without: 401, other: 401 },
    });
    expect(elsewhere.seen.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  test("of a router that you name are yours to give, and a loop's own goes to its own router only", async () => {
    const server = await serverOf((_, response) => void response.end('{"choices":[]}'));
    await using judge = await startJudge();
    const named = await routerOf([server.address]);
    const reward = { path: fixture("by-router.ts"), name: "bySecrets" };
    const options = { workers: 1, executors: 1, reward };
    await expect(
      RewardLoopManager.create({ ...options, rewardRouterToken: token }),
    ).rejects.toMatchObject({ option: "rewardRouterAddress" });
    await using loop = await RewardLoopManager.create({
      ...options,
      rewardRouterAddress: named.address,
      rewardRouterToken: token,
    });
    expect(await loop.computeScore(samples)).toMatchObject({ rewardExtraInfo: { token } });
    await using without = await RewardLoopManager.create({
      ...options,
      rewardRouterAddress: named.address,
      rewardModel: { engine: "vllm", model: "judge", servers: [judge.address] },
    });
    expect(await without.computeScore(samples)).toMatchObject({
      rewardExtraInfo: { token: null, byClient: 401 },
    });
  });

  test.each([
    ["127.0.0.1:80", "http://127.0.0.1/score", true],
    ["127.0.0.1:8000", "http://127.0.0.1:8000/v1/x?y", true],
    ["[::1]:8000", "http://[::1]:8000/", true],
    ["http://node-1:8000", "http://NODE-1:8000/", true],
    ["HTTP://node-2:8000", "http://node-2:8000/", true],
    ["127.0.0.1:8000", "http://127.0.0.1:8001/", false],
    ["127.0.0.1:8000", "http://127.0.0.1:8000@evil.example/", false],
    ["127.0.0.1:8000", "http://evil.example/127.0.0.1:8000", false],
    ["node-1:8000", "http://node-1.evil.example:8000/", false],
    ["node-1:8000", "node-1:8000", false],
  ])("of the router %s go to %s: %s", (address, url, goes) => {
    rememberToken(address, token);
    const wanted = goes ? { authorization: `Bearer ${token}` } : {};
    expect(withRouterToken(url)).toEqual(wanted);
    const own = { "X-Own": "1", AUTHORIZATION: "Bearer mine" };
    expect(withRouterToken(url, own)).toEqual(own);
  });

  test("are in no error of the client", async () => {
    const router = await routerOf([]);
    const headers = { authorization: `Bearer ${token}` };
    const body = { model: "m", messages: [] };
    const errors = await Promise.all([
      postJson(`http://${router.address}/score`, body, { headers }).catch((one: unknown) => one),
      chatComplete({ baseUrl: router.address, ...body, apiKey: token }).catch(
        (one: unknown) => one,
      ),
    ]);
    for (const error of errors) {
      expect(error).toMatchObject({ name: "EndpointError", status: 503 });
      expect(JSON.stringify(error) + String((error as Error).stack)).not.toContain(token);
    }
  });
});

test.each<[string, unknown, string]>([
  ["allowedPaths", ["flush_cache"], "paths like"],
  ["allowedPaths", ["/a/../b"], "paths like"],
  ["allowedPaths", ["/v1/*/b"], "paths like"],
  ["allowedPaths", "/a", "a list"],
  ["allowedHosts", ["node:80"], "without a port"],
  ["allowedHosts", ["http://node"], "without a port"],
  ["maxConnections", 0, "at least 1"],
  ["maxBodyBytes", 1.5, "whole number"],
  ["maxBufferedBytes", -1, "at least 1"],
  ["headersTimeoutMs", 2 ** 31, "below"],
  ["requestTimeoutMs", Number.NaN, "at least 1"],
  ["port", 65_536, "below 65536"],
  ["healthPath", "health", "a path like"],
  ["strategy", "random", "least-in-flight"],
  ["routerToken", token, "one of"],
])("an option that cannot be is refused by name: %s %j", async (name, value, words) => {
  const started = RewardModelRouter.start([], { [name]: value });
  await expect(started).rejects.toMatchObject({
    name: "RewardLoopOptionError",
    option: `router.${name}`,
    message: expect.stringContaining(words) as string,
  });
});
