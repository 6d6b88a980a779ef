/** The router before reward-model servers: real servers, real connections. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { connect } from "node:net";
import type { AddressInfo } from "node:net";
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from "undici";
import { afterEach, describe, expect, test } from "vitest";
import { goldenFile } from "../../../../test/fixtures/golden.ts";
import { RewardModelRouter } from "../../src/reward-model/router.ts";
import { Upstreams } from "../../src/reward-model/upstreams.ts";

interface Golden {
  readonly name: string;
  readonly fn: string;
  readonly inputs: {
    readonly worker_urls: readonly string[];
    readonly ops: readonly (readonly ["select" | "release", string | null])[];
  };
  readonly expected: {
    readonly picked: readonly (string | null)[];
    readonly counts: Readonly<Record<string, number>>;
  };
}

const { cases } = goldenFile("reward-scores.json") as { cases: readonly Golden[] };
const golden = cases.filter(({ fn }) => fn === "NaiveRouter.pick_order");

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function serverOf(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ends.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function routerOf(
  servers: readonly string[],
  options: Parameters<typeof RewardModelRouter.start>[1] = {},
): Promise<RewardModelRouter> {
  const router = await RewardModelRouter.start(servers, { ...standard, ...options });
  ends.push(() => router.close());
  return router;
}

/** Nothing but what is asked here comes to the servers. */
const standard = { healthEveryMs: 2 ** 30, token: "t".repeat(32), allowedPaths: ["/"] };

function ask(address: string, path = "/", init: RequestInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${standard.token}`, ...(init.headers as object) };
  return fetch(`http://${address}${path}`, { ...init, headers });
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}

/** The body of an answer of the router's own. */
function refusal(code: string, message: string): object {
  return { error: { message, type: "server_error", param: null, code } };
}

const named =
  (name: string): RequestListener =>
  (_, response) =>
    void response.end(name);

/** Nobody listens there. A port that was free a moment ago may be the next router's. */
const nobody = "127.0.0.1:1";

describe("who gets the next one", () => {
  test.each(golden)("$name", ({ inputs, expected }) => {
    const upstreams = new Upstreams(inputs.worker_urls);
    const picked = inputs.ops.map(([op, value]) => {
      if (op === "select") return upstreams.select(new Set(), value ?? undefined);
      upstreams.release(value as string);
      return null;
    });
    expect(picked).toEqual(expected.picked);
    const counts = upstreams.states.map(({ url, inFlight }) => [url, inFlight]);
    expect(Object.fromEntries(counts)).toEqual(expected.counts);
  });

  test("in turn, without those that failed until they are well again", () => {
    const upstreams = new Upstreams(["a", "b", "c"], { strategy: "round-robin", failures: 2 });
    const picks = (count: number): (string | undefined)[] =>
      Array.from({ length: count }, () => upstreams.select());
    expect(picks(4)).toEqual(["a", "b", "c", "a"]);
    upstreams.failed("b");
    expect(picks(2)).toEqual(["b", "c"]);
    upstreams.failed("b");
    expect(picks(4)).toEqual(["a", "c", "a", "c"]);
    upstreams.checked("b", true);
    expect(picks(3)).toEqual(["a", "b", "c"]);
    for (const url of ["a", "b", "c"]) upstreams.checked(url, false);
    expect(picks(1)).toEqual(["a"]);
    expect(upstreams.select(new Set(["a", "b", "c"]))).toBeUndefined();
  });
});

describe("a server", () => {
  test.each([
    [1, 1],
    [2, 2],
  ])("that failed %i times in a row is asked no more: `failures`", async (failures, most) => {
    let asked = 0;
    const failing = await serverOf((_, response) => {
      asked += 1;
      response.writeHead(503).end();
    });
    const well = await serverOf(named("well"));
    const router = await routerOf([failing, well], { strategy: "round-robin", failures });
    for (const _ of Array(6)) expect(await (await ask(router.address)).text()).toBe("well");
    expect(asked).toBe(most);
    expect(router.servers.map(({ isOut }) => isOut)).toEqual([true, false]);
  });

  test("not one that is well and whose requests are given up without an answer, until one is answered", () => {
    const upstreams = new Upstreams(["silent", "good"], { failures: 3 });
    const isOut = (): boolean | undefined => upstreams.states[0]?.isOut;
    const first = (): string | undefined => {
      const chosen = upstreams.select();
      upstreams.release(chosen ?? "");
      return chosen;
    };
    upstreams.succeeded("good", 800);
    expect(first()).toBe("silent");
    // A hedge was quicker than an answer takes; a loop has ended with all that it had sent.
    for (let n = 0; n < 9; n++) upstreams.givenUp("silent", 1000 * n, 1000 * n + 50);
    expect(first()).toBe("silent");
    for (let n = 0; n < 9; n++) upstreams.givenUp("silent", n, 10_000);
    expect(isOut()).toBe(false);
    // Beside one without marks it is second.
    expect(first()).toBe("good");
    upstreams.succeeded("silent", 800);
    expect(first()).toBe("silent");
    for (const ms of [10_000, 20_000, 30_000]) {
      expect(isOut()).toBe(false);
      upstreams.givenUp("silent", ms, ms + 10_000);
    }
    expect(isOut()).toBe(true);
    // It says that it is well, and has to show it.
    upstreams.checked("silent", true);
    expect(isOut()).toBe(false);
    upstreams.givenUp("silent", 40_000, 50_000);
    expect(isOut()).toBe(true);
    upstreams.succeeded("silent", 800);
    expect(isOut()).toBe(false);
  });

  test("is known by a health check that goes the way of the requests, by no proxy of the thread", async () => {
    const thread = getGlobalDispatcher();
    const proxy = new Agent();
    proxy.dispatch = () => {
      throw new Error("the thread's proxy was asked");
    };
    const router = await routerOf([await serverOf(named("well"))]);
    setGlobalDispatcher(proxy);
    ends.push(async () => setGlobalDispatcher(thread));
    await router.checkHealth();
    expect(router.servers[0]?.isOut).toBe(false);
  });

  test("is known by a health check while all its connections are in use", async () => {
    const asked = Promise.withResolvers<ServerResponse>();
    const server = await serverOf((request, response) => {
      if (request.url === "/health") response.end();
      else asked.resolve(response);
    });
    const router = await routerOf([server], { connections: 1, healthTimeoutMs: 600_000 });
    const answer = ask(router.address);
    const response = await asked.promise;
    await router.checkHealth();
    expect(router.servers[0]).toMatchObject({ inFlight: 1, isOut: false });
    response.end("late");
    expect(await (await answer).text()).toBe("late");
  });

  test("that does not say in `healthTimeoutMs` how it is gets no requests", async () => {
    const silent = await serverOf(() => undefined);
    const well = await serverOf(named("well"));
    const router = await routerOf([silent, well], { healthTimeoutMs: 1000.5 });
    await router.checkHealth();
    expect(router.servers.map(({ isOut }) => isOut)).toEqual([true, false]);
  });
});

describe("a request", () => {
  test("goes on as it is, and the answer comes back as it is, status and all", async () => {
    const server = await serverOf(async (request, response) => {
      const { method, url, headers } = request;
      const body = await textOf(request);
      response.writeHead(418, { "x-own": "1", "content-type": "application/json" });
      response.end(
        JSON.stringify({ method, url, body, key: headers["x-key"], host: headers.host }),
      );
    });
    const { address } = await routerOf([server]);
    const answer = await ask(address, "/v1/completions?y=1", {
      method: "POST",
      headers: { "x-key": "k" },
      body: "the body",
    });
    expect(answer.status).toBe(418);
    expect(answer.headers.get("x-own")).toBe("1");
    expect(await answer.json()).toEqual({
      method: "POST",
      url: "/v1/completions?y=1",
      body: "the body",
      key: "k",
      host: server,
    });
  });

  test("that a server does not take goes to another one; the status of the last is passed on", async () => {
    let refused = 0;
    const busy = await serverOf((_, response) => {
      refused += 1;
      response.writeHead(503, { "retry-after": "7" }).end("busy");
    });
    const cutting = await serverOf((request) => request.socket.destroy());
    const good = await serverOf(named("good"));
    const router = await routerOf([busy, nobody, cutting, good], { attempts: 4 });
    expect(await (await ask(router.address)).text()).toBe("good");
    expect(refused).toBe(1);
    expect(router.servers.map(({ failed }) => failed)).toEqual([1, 1, 1, 0]);
    const alone = await routerOf([busy]);
    const answer = await ask(alone.address);
    expect([answer.status, answer.headers.get("retry-after"), await answer.text()]).toEqual([
      503,
      "7",
      "busy",
    ]);
  });

  test("that is answered with a 5xx has failed, and its server is left out after some", async () => {
    const broken = await serverOf((_, response) => {
      response.writeHead(500).end("CUDA out of memory");
    });
    const router = await routerOf([broken, await serverOf(named("good"))]);
    for (const failed of [1, 2, 3]) {
      const answer = await ask(router.address);
      expect([answer.status, await answer.text()]).toEqual([500, "CUDA out of memory"]);
      await expect
        .poll(() => router.servers[0])
        .toMatchObject({ failed, served: 0, inFlight: 0, isOut: failed === 3 });
    }
    expect(await (await ask(router.address)).text()).toBe("good");
  });

  test("that nobody takes says why: 502, 503, 504", async () => {
    const none = await routerOf([]);
    const dead = await ask((await routerOf([nobody])).address);
    expect([dead.status, await dead.json()]).toEqual([
      502,
      refusal("server_unreachable", expect.stringContaining(nobody) as string),
    ]);
    const empty = await ask(none.address);
    expect([empty.status, await empty.json()]).toEqual([
      503,
      refusal("no_server", "No available workers"),
    ]);
    const silent = await serverOf(() => undefined);
    const late = await ask((await routerOf([silent], { timeoutMs: 50 })).address);
    expect([late.status, await late.json()]).toEqual([
      504,
      refusal("server_timeout", expect.stringContaining("did not answer in time") as string),
    ]);
  });

  test("that comes back to its router does not go round: 508, or another server", async () => {
    let address = "";
    const back = await serverOf((request, response) => {
      const headers = { via: request.headers.via ?? "" };
      void (async () => {
        const answer = await ask(address, "/", { headers });
        response.writeHead(answer.status).end(await answer.text());
      })();
    });
    ({ address } = await routerOf([back]));
    const alone = await ask(address);
    expect([alone.status, await alone.json()]).toEqual([
      508,
      refusal(
        "loop_detected",
        `the router ${address} is one of its own servers, or behind one of them`,
      ),
    ]);
    ({ address } = await routerOf([back, await serverOf(named("other"))]));
    expect(await (await ask(address)).text()).toBe("other");
  });

  test("whose body is too large is refused", async () => {
    const { address } = await routerOf([await serverOf(named("no"))], { maxBodyBytes: 1000 });
    const answer = await ask(address, "/", { method: "POST", body: "x".repeat(1001) });
    expect(answer.status).toBe(413);
  });

  test("comes back part by part, and is given up with its client", async () => {
    const asked = Promise.withResolvers<ServerResponse>();
    const gone = Promise.withResolvers<void>();
    const server = await serverOf((_, response) => {
      response.write("first ");
      response.once("close", gone.resolve);
      asked.resolve(response);
    });
    const router = await routerOf([server]);
    const client = new AbortController();
    const answer = await ask(router.address, "/", { signal: client.signal });
    const parts = (answer.body as ReadableStream<Uint8Array>).getReader();
    const first = await parts.read();
    expect(Buffer.from(first.value ?? []).toString()).toBe("first ");
    expect(router.servers[0]?.inFlight).toBe(1);
    client.abort();
    await parts.closed.catch(() => undefined);
    await gone.promise;
    await asked.promise;
    await expect.poll(() => router.servers[0]?.inFlight).toBe(0);
    expect(router.servers[0]).toMatchObject({ failed: 0, served: 0 });
  });
});

describe("an answer whose body does not come to its end", () => {
  const begun: RequestListener = (_, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("the beginning");
  };
  const asked = async (router: RewardModelRouter): Promise<string> => {
    const answer = await ask(router.address);
    expect(answer.status).toBe(200);
    return answer.text().catch(() => "broken");
  };

  test("is a failure of its server, which is left out after some", async () => {
    const cutting = await serverOf((request, response) => {
      begun(request, response);
      response.write("and no more", () => request.socket.destroy());
    });
    const router = await routerOf([cutting, await serverOf(named("good"))]);
    for (const failed of [1, 2, 3]) {
      expect(await asked(router)).toBe("broken");
      await expect
        .poll(() => router.servers[0])
        .toMatchObject({ failed, served: 0, inFlight: 0, isOut: failed === 3 });
    }
    expect(await asked(router)).toBe("good");
    await expect.poll(() => router.servers[1]).toMatchObject({ failed: 0, served: 1 });
  });

  test("because nothing more comes is one, too", async () => {
    const router = await routerOf([await serverOf(begun)], { timeoutMs: 1000 });
    expect(await asked(router)).toBe("broken");
    await expect.poll(() => router.servers[0]).toMatchObject({ failed: 1, served: 0 });
  });
});

test("a server that fails is left out, and comes back when its health check is well", async () => {
  let isWell = false;
  const flaky = await serverOf((request, response) => {
    response.writeHead(isWell ? 200 : 500).end("flaky");
    if (request.url !== "/health" && !isWell) request.socket.destroy();
  });
  const good = await serverOf(named("good"));
  const router = await routerOf([flaky, good]);
  await router.checkHealth();
  expect(router.servers.map(({ isOut }) => isOut)).toEqual([true, false]);
  const texts = async (): Promise<string[]> =>
    Promise.all(Array.from({ length: 4 }, async () => (await ask(router.address)).text()));
  expect(await texts()).toEqual(["good", "good", "good", "good"]);
  isWell = true;
  await router.checkHealth();
  expect(new Set(await texts())).toEqual(new Set(["flaky", "good"]));
});

test.each(["nothing", "no more than a part"])(
  "a server that is well and answers with %s comes behind one that answers",
  async (kind) => {
    const arrived = Promise.withResolvers<void>();
    const silent = await serverOf((_, response) => {
      if (kind !== "nothing") response.write("a part");
      arrived.resolve();
    });
    const good = await serverOf(named("good"));
    const router = await routerOf([silent, good]);
    const client = new AbortController();
    const asked = ask(router.address, "/", { signal: client.signal });
    const text = asked.then((answer) => answer.text());
    text.catch(() => undefined);
    await arrived.promise;
    if (kind !== "nothing") await asked;
    client.abort();
    await expect.poll(() => router.servers[0]?.inFlight).toBe(0);
    expect(await (await ask(router.address)).text()).toBe("good");
    expect(router.servers[0]).toMatchObject({ isOut: false, failed: 0 });
  },
);

test("no more connections than allowed go to a server", async () => {
  let open = 0;
  let most = 0;
  const waiting: ServerResponse[] = [];
  const server = await serverOf((_, response) => {
    open += 1;
    most = Math.max(most, open);
    response.once("finish", () => (open -= 1));
    waiting.push(response);
    if (waiting.length === 3) for (const one of waiting.splice(0)) one.end();
  });
  const router = await routerOf([server], { connections: 3 });
  await Promise.all(Array.from({ length: 30 }, () => ask(router.address)));
  expect(most).toBe(3);
});

test("it drains: what is in flight is finished, and nobody is let in any more", async () => {
  const asked = Promise.withResolvers<ServerResponse>();
  const server = await serverOf((_, response) => asked.resolve(response));
  const router = await RewardModelRouter.start([server], standard);
  const { address } = router;
  const answer = ask(address);
  const response = await asked.promise;
  const closed = router.close();
  const [host = "", port = ""] = address.split(":");
  const refused = await new Promise<boolean>((resolve) => {
    const socket = connect(Number(port), host);
    socket.once("connect", () => resolve(false));
    socket.once("error", () => resolve(true));
  });
  expect(refused).toBe(true);
  response.end("finished");
  expect(await (await answer).text()).toBe("finished");
  await closed;
});

test("it ends also with a client that takes nothing of its answer", async () => {
  const server = await serverOf((_, response) => {
    const more = (): void => {
      while (response.write(Buffer.alloc(65_536)));
    };
    response.on("drain", more);
    more();
  });
  const router = await RewardModelRouter.start([server], { ...standard, timeoutMs: 500 });
  const [host = "", port = ""] = router.address.split(":");
  const socket = connect(Number(port), host);
  socket.on("error", () => undefined);
  const gone = once(socket, "close");
  socket
    .pause()
    .write(`GET / HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${standard.token}\r\n\r\n`);
  await expect.poll(() => router.servers[0]?.inFlight).toBe(1);
  await router.close();
  expect(router.servers[0]).toMatchObject({ inFlight: 0, failed: 0 });
  socket.destroy();
  await gone;
});
