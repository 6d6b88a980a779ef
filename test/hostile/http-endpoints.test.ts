/** The one guard, at every HTTP endpoint: real endpoints, and requests as bytes, so that they can be what no client would send. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { endpoints, type OpenEndpoint } from "../fixtures/http-endpoints.ts";
import { askRaw, exchange, type RawAnswer, RawClient } from "../fixtures/raw-http.ts";
import { sized } from "../fixtures/suite.ts";

/** They have one guard: in the gate all that it refuses is tried at one of them, and some of each kind at all. */
const isWhole = (name: string): boolean => sized({ gate: name === "rayling serve", full: true });

describe.each(endpoints)("$name", ({ name, open, hasPage }) => {
  const some = <T>(all: readonly T[], few: number): readonly T[] =>
    isWhole(name) ? all : all.slice(0, few);
  let endpoint: OpenEndpoint;
  beforeAll(async () => {
    endpoint = await open();
  });
  afterAll(() => endpoint.close());

  interface Changes {
    readonly method?: string;
    readonly target?: string;
    readonly version?: string;
    readonly host?: string | undefined;
    readonly authorization?: string | undefined;
    /** Lines as they are. */
    readonly more?: readonly string[];
    readonly body?: string;
    readonly staysOpen?: true;
  }
  /** A good request but for the changes. */
  const request = (changes: Changes = {}): string => {
    const { method = endpoint.method, target = endpoint.path, version = "HTTP/1.1" } = changes;
    const { more = [], body = "" } = changes;
    const host = "host" in changes ? changes.host : `127.0.0.1:${endpoint.port}`;
    const sent = "authorization" in changes ? changes.authorization : `Bearer ${endpoint.token}`;
    const lines = [
      `${method} ${target} ${version}`,
      ...(host === undefined ? [] : [`Host: ${host}`]),
      ...(sent === undefined ? [] : [`Authorization: ${sent}`]),
      ...(changes.staysOpen === true ? [] : ["Connection: close"]),
      ...more,
    ];
    return [...lines, "", body].join("\r\n");
  };
  const ask = (changes?: Changes): Promise<RawAnswer> => askRaw(endpoint.port, request(changes));
  const statusOf = async (changes?: Changes): Promise<number> => (await ask(changes)).status;

  const ok = async (): Promise<void> => expect(await statusOf()).toBe(200);

  test("answers who has the token and calls it by a name that it has, with any port", async () => {
    const { port } = endpoint;
    for (const host of [
      "localhost",
      "LOCALHOST:1",
      "localhost.",
      "127.0.0.1",
      `127.0.0.1:${port}`,
      "127.0.0.1:9000",
      "127.1.2.3:80",
      "[::1]",
      "[::1]:65535",
    ]) {
      expect([host, await statusOf({ host })]).toEqual([host, 200]);
    }
    expect(await statusOf({ authorization: `bearer  ${endpoint.token} ` })).toBe(200);
  });

  test.each(
    some(
      [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1.evil.example",
        "0x7f.1",
        "0177.0.0.1",
        "2130706433",
        "10.0.0.256",
        "[10.0.0.1]",
        "[fe80::1::1]",
      ],
      3,
    ),
  )("is not called %s: 421", async (host) => {
    const answer = await ask({ host });
    expect(answer.status).toBe(421);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: "host_not_allowed" } });
    await ok();
  });

  test.each(some(["0.0.0.0", "169.254.169.254", "10.0.0.1:80", "[::]", "[2001:db8::7]:80"], 2))(
    "is behind any address (%s), as ports are forwarded, for who has the token",
    async (host) => {
      expect(await statusOf({ host })).toBe(200);
      expect(await statusOf({ host, authorization: undefined })).toBe(401);
      expect(await statusOf({ host, more: ["Origin: http://evil.example"] })).toBe(403);
    },
  );

  test.each(
    some<[string, string | undefined]>(
      [
        ["none", undefined],
        ["an empty one", ""],
        ["a user", "localhost@evil.example"],
        ["a path", "localhost/evil.example"],
        ["two in one", "localhost, evil.example"],
        ["a port that is none", "localhost:http"],
      ],
      3,
    ),
  )("wants a Host that is one, not %s: 400", async (_, host) => {
    expect(await statusOf({ host })).toBe(400);
    await ok();
  });

  test.each(
    some(
      [
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://localhost",
        "Origin:",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "sec-fetch-SITE: cross-site",
        ...(hasPage === true ? [] : ["Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none"]),
      ],
      5,
    ),
  )("is nothing for pages of others (%s): 403", async (line) => {
    expect(await statusOf({ more: [line] })).toBe(403);
    // Whoever has no token learns no more.
    expect(await statusOf({ more: [line], authorization: undefined })).toBe(403);
  });

  test("demands its token for every method and every path: 401", async () => {
    const { token } = endpoint;
    for (const authorization of [
      undefined,
      "",
      "Bearer",
      "Bearer ",
      token,
      `Basic ${token}`,
      `Basic ${Buffer.from(`:${token}`).toString("base64")}`,
      `Bearer ${token.slice(1)}`,
      `Bearer ${token}x`,
      `Bearer ${token} ${token}`,
      `Bearer ${token.toUpperCase()}`,
    ]) {
      const answer = await ask({ authorization });
      expect([authorization, answer.status]).toEqual([authorization, 401]);
      expect(answer.headers["www-authenticate"]).toBe("Bearer");
      expect(answer.body).not.toContain(token);
    }
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "LINK"]) {
      for (const target of [endpoint.path, "/", "/other", "/flush_cache"]) {
        const status = await statusOf({ method, target, authorization: undefined });
        expect([method, target, status]).toEqual([method, target, 401]);
      }
    }
  });

  test("has the paths that it has, as they are written: 404", async () => {
    const { path } = endpoint;
    const [first = ""] = path.slice(1);
    for (const target of [
      "/",
      "/nowhere",
      `${path}/`,
      `/${path}`,
      `/.${path}`,
      `/x/..${path}`,
      `/%2e${path}`,
      `/%${first.charCodeAt(0).toString(16)}${path.slice(2)}`,
      `${path}%00`,
      `${path};x`,
      path.toUpperCase(),
      "/flush_cache",
      "/constructor",
      "/__proto__",
    ]) {
      expect([target, await statusOf({ target })]).toEqual([target, 404]);
    }
    expect(await statusOf({ target: `${path}?x=/../%0d%0a` })).toBe(200);
  });

  test("takes the methods that it takes, and says which: 405", async () => {
    const answer = await ask({ method: endpoint.otherMethod });
    expect(answer.status).toBe(405);
    expect(answer.headers["allow"]).toContain(endpoint.method);
  });

  test.each(
    some(
      [
        "http://evil.example/",
        "http://localhost/metrics",
        "http://localhost",
        "https://127.0.0.1/v1/models",
        "*",
        "/a#b",
        "/a\\b",
      ],
      3,
    ),
  )("is no proxy: the target %s is the client's fault: 400", async (target) => {
    expect(await statusOf({ target })).toBe(400);
    await ok();
  });

  test("opens no tunnel: 405", async () => {
    expect(await statusOf({ method: "CONNECT", target: "evil.example:443" })).toBe(405);
    const upgrade = { more: ["Upgrade: websocket", "Connection: Upgrade"] };
    expect([200, 400]).toContain(await statusOf(upgrade));
  });

  test("has limits for what stands before the body: 414, 431", async () => {
    const { path } = endpoint;
    expect(await statusOf({ target: `${path}?${"x".repeat(9000)}` })).toBe(414);
    expect(await statusOf({ target: `${path}?${"x".repeat(100_000)}` })).toBe(414);
    expect(await statusOf({ more: [`X-Long: ${"x".repeat(17_000)}`] })).toBe(431);
    expect(await statusOf({ more: [`X-Long: ${"x".repeat(100_000)}`] })).toBe(431);
    const many = Array.from({ length: 200 }, (_, index) => `X-${index}: 1`);
    expect(await statusOf({ more: many })).toBe(431);
    await ok();
  });

  test.each(
    some<[string, Changes]>(
      [
        ["a length and chunks", { more: ["Content-Length: 4", "Transfer-Encoding: chunked"] }],
        ["chunks and a length", { more: ["Transfer-Encoding: chunked", "Content-Length: 4"] }],
        ["two lengths", { more: ["Content-Length: 4", "Content-Length: 40"] }],
        ["a length that is a list", { more: ["Content-Length: 4, 40"] }],
        ["a length with a sign", { more: ["Content-Length: +4"] }],
        ["a length below nothing", { more: ["Content-Length: -4"] }],
        ["a length in hex", { more: ["Content-Length: 0x4"] }],
        ["a coding before chunked", { more: ["Transfer-Encoding: gzip, chunked"] }],
        ["a coding behind chunked", { more: ["Transfer-Encoding: chunked, identity"] }],
        ["an unknown coding", { more: ["Transfer-Encoding: xchunked"] }],
        ["a space before the colon", { more: ["Transfer-Encoding : chunked"] }],
        ["two codings", { more: ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"] }],
        ["a folded header", { more: ["X-One: 1", " Transfer-Encoding: chunked"] }],
        ["a bare line feed", { more: ["X-One: 1\nContent-Length: 4"] }],
        ["a bare carriage return", { more: ["X-One: 1\rContent-Length: 4"] }],
        ["a zero byte", { more: ["X-One: 1\0"] }],
        ["a name with a space", { more: ["X One: 1"] }],
        ["a header without a name", { more: [": 1"] }],
        ["chunks of HTTP/1.0", { version: "HTTP/1.0", more: ["Transfer-Encoding: chunked"] }],
        ["two hosts", { more: ["Host: evil.example"] }],
        ["two tokens", { more: ["Authorization: Bearer another"] }],
        ["HTTP/0.9", { version: "HTTP/0.9" }],
        ["HTTP/2.0", { version: "HTTP/2.0" }],
        ["HTTP/9.9", { version: "HTTP/9.9" }],
        ["no version", { version: "" }],
        ["a method that is none", { method: "get" }],
      ],
      6,
    ),
  )("reads no request in two ways (%s), and answers nothing behind it", async (_, changes) => {
    const method = changes.method ?? "POST";
    const body = `0\r\n\r\n${request()}`;
    for (const kept of [{}, { staysOpen: true as const }]) {
      const bytes = request({ ...changes, ...kept, method, body });
      const { status } = await askRaw(endpoint.port, bytes);
      expect([400, 501, 505]).toContain(status);
    }
    await ok();
  });

  test("reads no body where none belongs, and none that is too large: 400, 413", async () => {
    const { method } = endpoint;
    if (method === "GET") {
      expect(await statusOf({ more: ["Content-Length: 4"], body: "abcd" })).toBe(400);
    }
    const long = "Content-Length: 1000000000";
    for (const more of [[long], [long, "Expect: 100-continue"]]) {
      const [first, ...others] = await exchange(
        endpoint.port,
        request({ method: "POST", target: "/v1/completions", more }),
      );
      // Nobody is told to go on.
      expect(others).toEqual([]);
      expect([404, 413]).toContain(first?.status);
    }
    await ok();
  });

  test.each<[string, Buffer]>([
    ["HTTP/2", Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")],
    ["TLS", Buffer.from("16030100c5010000c10303", "hex")],
    ["nonsense", Buffer.alloc(1000, 0xff)],
    ["an answer", Buffer.from("HTTP/1.1 200 OK\r\n\r\n")],
  ])("ends a connection that speaks %s", async (_, bytes) => {
    const answers = await exchange(endpoint.port, bytes);
    expect(answers).toHaveLength(1);
    for (const { status } of answers) expect([400, 505]).toContain(status);
    await ok();
  });

  test("refuses in the form of the OpenAI API, and lets nothing be kept, framed or guessed", async () => {
    const { headers, body } = await ask({ authorization: undefined });
    expect(JSON.parse(body)).toEqual({
      error: {
        message: expect.stringContaining("Authorization: Bearer") as string,
        type: "authentication_error",
        param: null,
        code: "invalid_token",
      },
    });
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "cache-control": "no-store",
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      "x-content-type-options": "nosniff",
      connection: "close",
    });
    expect(headers).not.toHaveProperty("access-control-allow-origin");
  });

  test.each(
    some<[string, Changes]>(
      [
        ["a tunnel", { method: "CONNECT", target: "evil.example:443" }],
        ["another protocol", { more: ["Upgrade: websocket", "Connection: Upgrade"] }],
        ["what it does not expect", { more: ["Expect: 200-ok"] }],
        ["to go on", { more: ["Expect: 100-continue", "Content-Length: 4"] }],
        ["nothing that is HTTP", { version: "HTTP/9.9" }],
        ["what it has", {}],
      ],
      3,
    ),
  )("outlives clients without a token that ask for %s, and reset", async (_, changes) => {
    const bytes = request({ authorization: undefined, staysOpen: true, ...changes });
    for (let count = 0; count < sized({ gate: 20, full: 40 }); count++) {
      const socket = connect(endpoint.port, "127.0.0.1");
      await once(socket, "connect");
      // Every second one resets behind another request, whose answer is under way.
      socket.write(count % 2 === 0 ? bytes : request({ staysOpen: true }) + bytes);
      socket.resetAndDestroy();
    }
    await ok();
  });

  test("waits neither for a head nor for a client that says nothing", async () => {
    const silent = new RawClient(endpoint.port);
    const slow = new RawClient(endpoint.port);
    slow.send(`${endpoint.method} ${endpoint.path} HTTP/1.1\r\nX-One: 1\r\n`);
    expect((await slow.answers()).map(({ status }) => status)).toEqual([408]);
    await silent.closed;
    await ok();
  });

  test("lets in who comes while others hold all connections and say nothing", async () => {
    const holding: RawClient[] = [];
    for (let count = 0; count < 3 * endpoint.maxConnections; count++) {
      const client = new RawClient(endpoint.port);
      await new Promise((resolve) => client.socket.once("connect", resolve));
      holding.push(client);
      if (count % endpoint.maxConnections === 0) await ok();
    }
    await ok();
    for (const client of holding) client.socket.destroy();
  });
});
