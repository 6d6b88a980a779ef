/** The one HTTP endpoint: its limits, its end, and whom it lets in, over real sockets. test/hostile/http-endpoints.test.ts attacks those of the packages. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { networkInterfaces } from "node:os";
import { promisify } from "node:util";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import {
  cutUnread,
  HttpEndpoint,
  type HttpEndpointOptions,
  type HttpExchange,
  type HttpHandler,
  HttpRefusal,
} from "@rayling/core/http";
import { answersIn, askRaw, exchange, RawClient } from "../../../test/fixtures/raw-http.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const routes = [{ path: "/", methods: ["GET", "POST"] }];

async function listen(
  handle: HttpHandler,
  options: Partial<HttpEndpointOptions> = {},
): Promise<HttpEndpoint> {
  const standard = { port: 0, token: undefined, tokenHint: "", routes };
  const endpoint = await HttpEndpoint.listen({ ...standard, ...options }, handle);
  ends.push(() => endpoint.close("now"));
  return endpoint;
}

const echo: HttpHandler = async ({ response, body }) => void response.end(await body());

function connectTo({ port }: HttpEndpoint): RawClient {
  const client = new RawClient(port);
  ends.push(() => client.socket.destroy());
  return client;
}

const get = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
const lastGet = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const post = (length: number): string =>
  `POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\n`;

/** A handler whose requests wait until the test says so. */
function waiting(): { handle: HttpHandler; come: (count: number) => Promise<HttpExchange[]> } {
  const all: HttpExchange[] = [];
  return {
    handle: async (one) => void all.push(one),
    come: async (count) => {
      await expect.poll(() => all.length).toBe(count);
      return all;
    },
  };
}

describe("a body", () => {
  test("is read whole, with a length or in chunks, and then no longer counted", async () => {
    const endpoint = await listen(echo, { limits: { maxBodyBytes: 10 } });
    expect((await askRaw(endpoint.port, `${post(10)}0123456789`)).body).toBe("0123456789");
    const chunked = `POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const chunks = "4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n";
    expect((await askRaw(endpoint.port, chunked + chunks)).body).toBe("0123456789");
    const tooMany = await askRaw(endpoint.port, `${chunked}4\r\n0123\r\n7\r\n4567890\r\n0\r\n\r\n`);
    expect(tooMany.status).toBe(413);
    await expect.poll(() => endpoint.bufferedBytes).toBe(0);
  });

  test("that is too large is refused so that its client can read why, while it still sends", async () => {
    const endpoint = await listen(echo, { limits: { maxBodyBytes: 1000 } });
    for (let round = 0; round < 5; round++) {
      const answer = await fetch(`http://${endpoint.address}`, {
        method: "POST",
        body: Buffer.alloc(500_000),
      });
      expect(answer.status).toBe(413);
    }
  });

  test("is told to go on only if it is wanted", async () => {
    const endpoint = await listen(echo, { limits: { maxBodyBytes: 10 } });
    const asking = (length: number): string =>
      post(length).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
    const statuses = async (length: number): Promise<number[]> =>
      (await exchange(endpoint.port, `${asking(length)}${"x".repeat(length)}`)).map(
        ({ status }) => status,
      );
    expect(await statuses(10)).toEqual([100, 200]);
    expect(await statuses(11)).toEqual([413]);
    const strange = post(0).replace("\r\n\r\n", "\r\nExpect: miracles\r\n\r\n");
    expect((await askRaw(endpoint.port, strange)).status).toBe(417);
  });

  test("waits for its turn where all bodies together take too much: 503", async () => {
    const { handle, come } = waiting();
    const kept: Promise<Buffer>[] = [];
    const endpoint = await listen(
      async (one) => {
        kept.push(one.body());
        await kept.at(-1);
        await handle(one);
      },
      { limits: { maxBodyBytes: 10, maxBufferedBytes: 15 } },
    );
    const first = connectTo(endpoint);
    first.send(`${post(10)}0123456789`);
    const [one] = await come(1);
    expect(endpoint.bufferedBytes).toBe(10);
    const refused = await askRaw(endpoint.port, `${post(10)}0123456789`);
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
    one?.response.end("first");
    expect((await first.answers())[0]?.body).toBe("first");
    await expect.poll(() => endpoint.bufferedBytes).toBe(0);
    const third = connectTo(endpoint);
    third.send(`${post(10)}0123456789`);
    await come(2);
  });

  test("whose client goes in the middle is counted no more", async () => {
    const failed = Promise.withResolvers<unknown>();
    const endpoint = await listen(({ body }) => body().then(() => undefined, failed.resolve), {
      limits: { maxBodyBytes: 1000 },
    });
    const client = connectTo(endpoint);
    client.send(`${post(1000)}0123456789`);
    await expect.poll(() => endpoint.bufferedBytes).toBe(10);
    client.socket.destroy();
    expect(String(await failed.promise)).toMatch(/Error/);
    await expect.poll(() => endpoint.bufferedBytes).toBe(0);
  });

  test("that cannot be read is the client's fault, also in the middle: 400", async () => {
    const endpoint = await listen(echo, { limits: { maxBodyBytes: 1000 } });
    const chunked =
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n0123\r\n";
    for (const bad of ["zz\r\n", "4 4\r\n", "-1\r\n", "fffffffffffffffff\r\n", "4\r\n01234\r\n"]) {
      const client = connectTo(endpoint);
      client.send(chunked);
      await expect.poll(() => endpoint.bufferedBytes).toBe(4);
      client.send(`${bad}${get}`);
      expect([bad, (await client.answers()).map(({ status }) => status)]).toEqual([bad, [400]]);
      await expect.poll(() => endpoint.bufferedBytes).toBe(0);
    }
  });

  test("that does not arrive in time is not waited for: 408", async () => {
    const endpoint = await listen(echo, {
      limits: { maxBodyBytes: 1000, requestTimeoutMs: 600 },
    });
    const client = connectTo(endpoint);
    client.send(`${post(1000)}0123456789`);
    expect((await client.answers()).map(({ status }) => status)).toEqual([408]);
    await expect.poll(() => endpoint.bufferedBytes).toBe(0);
  });
});

describe("more than there is room for", () => {
  test("requests in all: 503, and room again when one is answered", async () => {
    const { handle, come } = waiting();
    const endpoint = await listen(handle, { limits: { maxRequests: 2 } });
    const clients = [connectTo(endpoint), connectTo(endpoint)];
    for (const client of clients) client.send(lastGet);
    const [first] = await come(2);
    expect((await askRaw(endpoint.port, lastGet)).status).toBe(503);
    first?.response.end();
    await expect.poll(() => clients.filter(({ socket }) => socket.closed).length).toBe(1);
    connectTo(endpoint).send(lastGet);
    await come(3);
  });

  test("requests of one connection that come before the first is answered: 429", async () => {
    const { handle, come } = waiting();
    const endpoint = await listen(handle, { limits: { maxPipelined: 2 } });
    const client = connectTo(endpoint);
    client.send(get + get + get);
    for (const { response } of await come(2)) response.end("well");
    await client.until((text) => answersIn(text).length === 3);
    expect(answersIn(client.text).map(({ status }) => status)).toEqual([200, 200, 429]);
  });

  test("as many as one connection may send before the first is answered: no warning", async () => {
    const warnings: Error[] = [];
    const warned = (warning: Error): void => void warnings.push(warning);
    process.on("warning", warned);
    onTestFinished(() => void process.off("warning", warned));
    const { handle, come } = waiting();
    const endpoint = await listen(handle);
    const client = connectTo(endpoint);
    client.send(get.repeat(16));
    for (const { response } of await come(16)) response.end("well");
    await client.until((text) => answersIn(text).length === 16);
    expect(answersIn(client.text).every(({ status }) => status === 200)).toBe(true);
    expect(warnings).toEqual([]);
  });

  test("connections, where each has a request under way: 503", async () => {
    const { handle, come } = waiting();
    const endpoint = await listen(handle, { limits: { maxConnections: 2 } });
    const clients = [connectTo(endpoint), connectTo(endpoint)];
    for (const client of clients) client.send(get);
    const [first] = await come(2);
    expect((await askRaw(endpoint.port, lastGet)).status).toBe(503);
    first?.response.end("well");
    // Its connection does nothing now, and goes for the next.
    connectTo(endpoint).send(get);
    await come(3);
    expect(clients.filter(({ socket }) => socket.closed)).toHaveLength(1);
  });

  test("requests one after the other: the connection ends behind the last", async () => {
    const endpoint = await listen(echo, { limits: { maxRequestsPerConnection: 3 } });
    const client = connectTo(endpoint);
    for (let count = 1; count <= 3; count++) {
      client.send(get);
      await client.until((text) => answersIn(text).length === count);
    }
    expect((await client.answers()).map(({ headers }) => headers["connection"])).toEqual([
      "keep-alive",
      "keep-alive",
      "close",
    ]);
  });
});

describe("a client that goes", () => {
  test("ends its request, also one that waits behind another of its connection", async () => {
    const { handle, come } = waiting();
    const endpoint = await listen(handle);
    const client = connectTo(endpoint);
    client.send(get + get);
    const all = await come(2);
    const over = all.map(({ signal }) => once(signal, "abort"));
    client.socket.destroy();
    await Promise.all(over);
    await expect.poll(() => endpoint.connectionCount).toBe(0);
  });
});

describe("what a handler throws", () => {
  test("is the answer if it is a refusal, and else a failure that tells nothing", async () => {
    const errors = [new HttpRefusal(404, "gone", "it is gone"), new Error("the key is 1234")];
    const endpoint = await listen(async () => {
      throw errors.shift();
    });
    const client = connectTo(endpoint);
    client.send(get + lastGet);
    const [known, unknown] = await client.answers();
    expect([known?.status, JSON.parse(known?.body ?? "")]).toMatchObject([
      404,
      { error: { code: "gone", message: "it is gone", type: "not_found_error" } },
    ]);
    expect(unknown?.status).toBe(500);
    expect(unknown?.body).not.toContain("1234");
  });

  test("after the answer has begun ends the connection, as nothing else can say it", async () => {
    const endpoint = await listen(async ({ response }) => {
      response.write("the beginning");
      throw new Error("no more");
    });
    const client = connectTo(endpoint);
    client.send(get);
    expect((await client.answers())[0]?.body).toContain("the beginning");
  });
});

test("each refusal is reported once, with what was read of its request", async () => {
  const said: unknown[] = [];
  const { handle, come } = waiting();
  const endpoint = await listen(
    async (one) => {
      if (one.request.method === "GET") return handle(one);
      one.response.end(await one.body());
    },
    {
      limits: { maxBodyBytes: 10, maxRequests: 1, requestTimeoutMs: 600 },
      onRefused: ({ method, path, status, code }) => said.push([method, path, status, code]),
    },
  );
  const sent = async (text: string): Promise<void> => {
    const client = connectTo(endpoint);
    client.send(text);
    await client.answers();
  };
  const nowhere = lastGet.replace("GET /", "GET /nowhere?a");
  for (const text of [nowhere, post(11), "no HTTP\r\n\r\n", `${post(10)}0123`]) await sent(text);
  await sent(lastGet.replace("GET / ", "CONNECT localhost:1 "));
  await sent(
    "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890",
  );
  const held = connectTo(endpoint);
  held.send(lastGet);
  const [first] = await come(1);
  await sent(lastGet);
  first?.response.end();
  await held.answers();
  expect(said).toEqual([
    ["GET", "/nowhere", 404, "path_not_allowed"],
    ["POST", "/", 413, "body_too_large"],
    [undefined, undefined, 400, "malformed_request"],
    ["POST", "/", 408, "request_timeout"],
    ["CONNECT", "localhost:1", 405, "method_not_allowed"],
    ["POST", "/", 413, "body_too_large"],
    ["GET", "/", 503, "too_many_requests"],
  ]);
});

describe("a token as the password of a user", () => {
  const token = "a-token-of-some-length";
  const statusOf = async (
    authorization: string,
    options: Partial<HttpEndpointOptions>,
  ): Promise<number> => {
    const endpoint = await listen(echo, { token, ...options });
    const header = `Authorization: ${authorization}`;
    return (await askRaw(endpoint.port, lastGet.replace("\r\n\r\n", `\r\n${header}\r\n\r\n`)))
      .status;
  };
  const basic = (text: string): string => `Basic ${Buffer.from(text).toString("base64")}`;

  test.each([
    ["of that user", basic(`client:${token}`), 200],
    ["as a bearer's", `Bearer ${token}`, 200],
    ["of another user", basic(`root:${token}`), 401],
    ["of nobody", basic(`:${token}`), 401],
    ["a wrong one", basic("client:another"), 401],
    ["with more behind it", basic(`client:${token}x`), 401],
    ["no Base64", "Basic client:***", 401],
    ["nothing", "Basic ", 401],
  ])("%s", async (_, authorization, status) => {
    expect(await statusOf(authorization, { basicUser: "client" })).toBe(status);
  });

  test("is taken only where the owner says so", async () => {
    expect(await statusOf(basic(`client:${token}`), {})).toBe(401);
    expect(await statusOf(basic(`undefined:${token}`), {})).toBe(401);
  });
});

describe("a page of its own", () => {
  const options = { browsers: "own-page" } as const;
  const asking = (host: string, ...more: string[]): string =>
    [`GET / HTTP/1.1`, `Host: ${host}`, "Connection: close", ...more, "", ""].join("\r\n");

  test.each([
    ["a person types its address", ["Sec-Fetch-Site: none"], 200],
    ["it asks for more", ["Sec-Fetch-Site: same-origin"], 200],
    ["it sends something", ["Origin: http://localhost:1", "Sec-Fetch-Site: same-origin"], 200],
    ["a proxy has TLS for it", ["Origin: https://localhost:1"], 200],
    ["a page of another port", ["Origin: http://localhost:2", "Sec-Fetch-Site: same-site"], 403],
    ["a page of another site", ["Origin: http://evil.example"], 403],
    ["a link on another site", ["Sec-Fetch-Site: cross-site"], 403],
    ["a file, or a sandboxed frame", ["Origin: null"], 403],
  ])("%s", async (_, more, status) => {
    const endpoint = await listen(echo, options);
    expect((await askRaw(endpoint.port, asking("localhost:1", ...more))).status).toBe(status);
  });

  test("names that the owner lists are taken, with any port, and no others", async () => {
    const endpoint = await listen(echo, { allowedHosts: ["Node-1.example", "[fd00::1]"] });
    for (const [host, status] of [
      ["node-1.example", 200],
      ["NODE-1.example.:8080", 200],
      ["[fd00::1]:80", 200],
      ["a.node-1.example", 421],
      ["[fd00::2]", 421],
    ] as const) {
      expect([host, (await askRaw(endpoint.port, asking(host))).status]).toEqual([host, status]);
    }
  });
});

describe("an address as its name", () => {
  const asking = (host: string, ...more: string[]): string =>
    ["GET / HTTP/1.1", `Host: ${host}`, "Connection: close", ...more, "", ""].join("\r\n");
  const token = "a-token-of-some-length";
  const bearer = `Authorization: Bearer ${token}`;

  test.each(["192.0.2.7:8100", "192.0.2.7", "[2001:db8::7]:8100", "[::ffff:192.0.2.7]"])(
    "%s, of a machine that forwards its port, is known to who has the token, and to nobody else",
    async (host) => {
      const endpoint = await listen(echo, { token });
      const statusOf = async (...more: string[]): Promise<number> =>
        (await askRaw(endpoint.port, asking(host, ...more))).status;
      expect(await statusOf(bearer)).toBe(200);
      expect(await statusOf()).toBe(401);
      expect(await statusOf(bearer, "Origin: http://evil.example")).toBe(403);
      const open = await listen(echo);
      expect((await askRaw(open.port, asking(host))).status).toBe(421);
    },
  );

  test("without a token is that of the connection alone", async () => {
    const endpoint = await listen(echo, { host: "0.0.0.0" });
    expect((await askRaw(endpoint.port, asking("127.0.0.1"))).status).toBe(200);
    const own = Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .find(({ family, internal }) => family === "IPv4" && !internal);
    if (own === undefined) return;
    expect((await fetch(`http://${own.address}:${endpoint.port}`)).status).toBe(200);
    expect((await askRaw(endpoint.port, asking(own.address))).status).toBe(421);
  });

  test.each(["192.0.2", "192.0.2.256", "0300.0.2.7", "0xc0000207", "[192.0.2.7]", "[:::]"])(
    "%s is none: 421, also for who has the token",
    async (host) => {
      const endpoint = await listen(echo, { token });
      expect((await askRaw(endpoint.port, asking(host, bearer))).status).toBe(421);
    },
  );
});

test("whoever calls it by another name is told the ways that there are", async () => {
  const evil = lastGet.replace("localhost", "evil.example");
  const messageOf = async (options: Partial<HttpEndpointOptions>): Promise<string> => {
    const { body } = await askRaw((await listen(echo, options)).port, evil);
    return (JSON.parse(body) as { error: { message: string } }).error.message;
  };
  const start = "this endpoint is not called evil.example: call it localhost";
  expect(await messageOf({})).toBe(`${start} or by its address`);
  expect(await messageOf({ hostsOption: "--names" })).toBe(
    `${start}, by its address or by a name that --names lists`,
  );
});

test("paths below another are those that nobody reads in two ways", async () => {
  const below = [{ path: "/v1/*", methods: ["GET"] }];
  const endpoint = await listen(echo, { routes: below });
  const statusOf = async (target: string): Promise<number> =>
    (await askRaw(endpoint.port, lastGet.replace(" / ", ` ${target} `))).status;
  for (const target of ["/v1/a", "/v1/a/b-1.2_3~@x:y", "/v1/.hidden", "/v1/a?b/../c"]) {
    expect([target, await statusOf(target)]).toEqual([target, 200]);
  }
  for (const target of [
    "/v1",
    "/v1/",
    "/v1x/a",
    "/v1/../admin",
    "/v1/a/..",
    "/v1/./a",
    "/v1//a",
    "/v1/%2e%2e/admin",
    "/v1/a%2fb",
    "/v1/a;b",
    "//v1/a",
  ]) {
    expect([target, await statusOf(target)]).toEqual([target, 404]);
  }
});

describe("its end", () => {
  test("waits for what has arrived, and for nobody who says nothing or not all", async () => {
    const { handle, come } = waiting();
    const endpoint = await listen(
      async (one) => {
        if (one.request.method === "POST") await one.body();
        await handle(one);
      },
      { limits: { headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, maxBodyBytes: 100 } },
    );
    const [silent, half, asking] = [1, 2, 3].map(() => connectTo(endpoint));
    half?.send("GET / HTTP/1.1\r\nHost: ");
    asking?.send(get);
    const [one] = await come(1);
    await expect.poll(() => endpoint.connectionCount).toBe(3);
    const closed = endpoint.close("drain");
    await Promise.all([silent?.closed, half?.closed]);
    one?.response.end("the last");
    const [answer] = (await asking?.answers()) ?? [];
    expect(answer).toMatchObject({ body: "the last", headers: { connection: "close" } });
    await closed;
  });

  test("does not wait for a body that does not arrive", async () => {
    const endpoint = await listen(echo, { limits: { maxBodyBytes: 100, requestTimeoutMs: 1000 } });
    const client = connectTo(endpoint);
    client.send(`${post(100)}the beginning`);
    await expect.poll(() => endpoint.bufferedBytes).toBeGreaterThan(0);
    await Promise.all([endpoint.close("drain"), client.closed]);
  });

  test("is now if it must be, also when it was to drain", async () => {
    const { handle, come } = waiting();
    const endpoint = await listen(handle);
    const client = connectTo(endpoint);
    client.send(get);
    await come(1);
    const drained = endpoint.close("drain");
    await Promise.all([endpoint.close("now"), drained, client.closed]);
  });

  test("a process that has nothing else to do does not wait for it, nor for who holds a connection", async () => {
    const program = `
      import { connect } from "node:net";
      import { once } from "node:events";
      import { HttpEndpoint } from "@rayling/core/http";
      const routes = [{ path: "/", methods: ["GET"] }];
      const endpoint = await HttpEndpoint.listen({ port: 0, token: undefined, tokenHint: "", routes }, async ({ response }) => void response.end());
      const socket = connect(endpoint.port, "127.0.0.1");
      socket.write(${JSON.stringify(get)});
      await once(socket, "data");
      socket.unref();
      console.log("over");
    `;
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--input-type=module", "-e", program],
      { cwd: import.meta.dirname },
    );
    expect(stdout).toBe("over\n");
  });
});

describe("a client that takes nothing of its answer", () => {
  const unreadMs = 3_600_000;

  test("has a time for it, which does not go on for its next request", async () => {
    const { handle, come } = waiting();
    const endpoint = await listen(handle);
    const client = connectTo(endpoint);
    client.socket.write(get + get);
    const [first, second] = await come(2);
    if (first === undefined || second === undefined) throw new Error("no request came");
    const { socket } = first.request;
    cutUnread(first.response, unreadMs);
    const times: (number | undefined)[] = [];
    first.response.once("prefinish", () => times.push(socket.timeout));
    first.response.end("one");
    await once(first.response, "close");
    expect(times).toEqual([unreadMs]);
    expect(socket.timeout).toBe(0);
    second.response.end("two");
    // What Node gives a connection without a request.
    await expect.poll(() => socket.timeout).toBeGreaterThan(0);
    expect(socket.timeout).toBeLessThan(unreadMs);
  });

  test("is cut", async () => {
    const { handle, come } = waiting();
    const endpoint = await listen(handle);
    const client = connectTo(endpoint);
    client.socket.pause();
    client.socket.write(get);
    const [exchanged] = await come(1);
    if (exchanged === undefined) throw new Error("no request came");
    expect(endpoint.connectionCount).toBe(1);
    cutUnread(exchanged.response, 1);
    exchanged.response.end(Buffer.alloc(64 * 1024 * 1024));
    await expect.poll(() => endpoint.connectionCount).toBe(0);
  });
});
