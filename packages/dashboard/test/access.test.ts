/** Who may see the page: who has its link, from its own pages, by its own name. */
import { connect } from "node:net";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import * as ray from "@rayling/core";
import { serveSession } from "@rayling/dashboard";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createApp, standardUnreadMs } from "../src/server/app.ts";
import { Counter } from "./fixtures/actors.ts";
import { servedAt, servedSession } from "./fixtures/served.ts";

test("a session without a server for the page says what is missing", async () => {
  await expect(ray.init({ dashboard: true })).rejects.toThrow("needs @rayling/dashboard");
  expect(ray.isInitialized()).toBe(false);
});

test.each<[unknown, string]>([
  [{ port: 70_000 }, "port"],
  [{ host: "" }, "host"],
  [{ path: "/" }, '"path"'],
  ["yes", "true, false or"],
])("an option that makes no sense is named: %j", async (dashboard, named) => {
  await expect(ray.init({ dashboard: dashboard as boolean })).rejects.toThrow(named);
});

test("the link leads to the page and leaves no token in the address", async () => {
  const { port, url, path, cookie, token, ask } = await servedSession({ prewarm: 0 });
  const link = await ask(`/?token=${token}`, { cookie: "", "sec-fetch-site": "none" });
  expect(link.status).toBe(303);
  expect(link.headers["location"]).toBe(path);
  expect(path).not.toContain(token);
  expect(link.headers["set-cookie"]).toBe(`${cookie}; Path=${path}; HttpOnly; SameSite=Strict`);
  expect(url).toBe(`http://127.0.0.1:${port}/?token=${token}`);
  const page = await ask(path, { "sec-fetch-site": "same-origin" });
  expect(page.status).toBe(200);
  expect(page.headers).toMatchObject({
    "content-security-policy": expect.stringContaining("default-src 'none'; script-src 'self'"),
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
  });
  // Nothing that the page loads is elsewhere.
  expect(page.body).not.toMatch(/https?:/);
  expect((await ask(`${path}page.js`)).headers["content-type"]).toMatch(/javascript/);
});

describe("the page is refused", () => {
  test("without its token, or with another one", async () => {
    const { path, token, cookie, ask } = await servedSession({ prewarm: 0 });
    for (const target of ["/", path, `${path}api/overview`, `${path}page.js`]) {
      expect([target, (await ask(target, { cookie: "" })).status]).toEqual([target, 401]);
    }
    expect((await ask(`/?token=${token}x`, { cookie: "" })).status).toBe(401);
    expect((await ask(path, { cookie: `${cookie}x` })).status).toBe(401);
    expect((await ask(path, { cookie: cookie.replace(/^[^=]+/, "other") })).status).toBe(401);
    // The link opens the page, and nothing else.
    expect((await ask(`${path}api/overview?token=${token}`, { cookie: "" })).status).toBe(401);
  });

  test("by another name, as after DNS rebinding", async () => {
    const { path, token, ask } = await servedSession({ prewarm: 0 });
    for (const host of ["evil.example", "evil.example:8266", "127.0.0.1.evil.example"]) {
      expect((await ask(`/?token=${token}`, { host })).status).toBe(421);
      expect((await ask(`${path}api/overview`, { host })).status).toBe(421);
    }
  });

  test("from pages of other origins, also of other ports of this machine, and nothing is killed", async () => {
    const { path, ask, port } = await servedSession({ prewarm: 1 });
    const counter = Counter.remote();
    expect(await ray.get(counter.increment.remote())).toBe(1);
    const [row] = await ray.state.listActors();
    const foreign = [
      { origin: "http://evil.example", "sec-fetch-site": "cross-site" },
      { origin: `http://127.0.0.1:${port + 1}`, "sec-fetch-site": "same-site" },
      { origin: `http://127.0.0.1:${port + 1}` },
      { "sec-fetch-site": "same-site" },
      { origin: "null" },
    ];
    for (const lines of foreign) {
      const kill = await ask(`${path}api/kill`, lines, { actorId: row?.actorId });
      expect([lines, kill.status]).toEqual([lines, 403]);
      expect([lines, (await ask(`${path}api/overview`, lines)).status]).toEqual([lines, 403]);
    }
    expect((await ask(`${path}api/kill`, {}, { actorId: 5 })).status).toBe(400);
    expect(await ray.get(counter.increment.remote())).toBe(2);
    const own = { origin: `http://127.0.0.1:${port}`, "sec-fetch-site": "same-origin" };
    expect((await ask(`${path}api/kill`, own, { actorId: row?.actorId })).status).toBe(200);
    await expect(ray.get(counter.increment.remote())).rejects.toThrow("from the dashboard");
  });
});

describe("what is asked with the token", () => {
  test("is a path of the page and no file of the disk", async () => {
    const { path, ask } = await servedSession({ prewarm: 0 });
    const up = ["..", "%2e%2e", "..%2f..", String.raw`..\..`, "..;", "%252e%252e", "./.."];
    const targets = [
      ...up.flatMap((one) => [`${path}${one}/etc/passwd`, `${path}api/${one}/${one}/etc/passwd`]),
      `${path}page.js/../../../etc/passwd`,
      `${path}page.js%00.html`,
      `${path}package.json`,
      `${path}//etc/passwd`,
      `/${path}`,
    ];
    for (const target of targets) {
      const { status, body } = await ask(target);
      expect([target, status >= 400 && status < 500]).toEqual([target, true]);
      expect([target, body.includes("root:")]).toEqual([target, false]);
    }
  });

  test("kills only as a POST of the page's own form, of a bounded size", async () => {
    const { path, port, ask } = await servedSession({ prewarm: 1 });
    const counter = Counter.remote();
    await ray.get(counter.increment.remote());
    const [{ actorId } = { actorId: "" }] = await ray.state.listActors();
    const kill = `${path}api/kill`;
    expect((await ask(`${kill}?actorId=${actorId}`)).status).toBe(405);
    // What a form of another page could send, if it had the cookie.
    const form = { "content-type": "text/plain", origin: `http://127.0.0.1:${port + 1}` };
    expect((await ask(kill, form, { actorId })).status).toBe(403);
    const bodies = [{}, [], [actorId], { actorId: [actorId] }, null, "a", { actorId: { id: 1 } }];
    for (const body of bodies)
      expect([body, (await ask(kill, {}, body)).status]).toEqual([body, 400]);
    expect((await ask(kill, {}, { actorId, more: "x".repeat(17_000) })).status).toBe(413);
    expect((await ask(kill, {}, { actorId: "actor-nobody" })).status).toBe(200);
    expect(await ray.get(counter.increment.remote())).toBe(2);
  });

  test("of any size and kind is answered, and the page goes on", async () => {
    const { path, ask } = await servedSession({ prewarm: 0 });
    const long = "x".repeat(8000);
    for (const view of ["overview", "actors", "tasks", "actor", "samples", "sample", "runs"]) {
      for (const query of [
        `text=${long}`,
        `sort=${long}`,
        `id=${long}`,
        `runs=${long}`,
        "runs=-1",
      ]) {
        const { status, body } = await ask(`${path}api/${view}?${query}`);
        expect([view, query.slice(0, 9), status < 500, body.length < 50_000]).toEqual([
          view,
          query.slice(0, 9),
          true,
          true,
        ]);
      }
    }
    expect((await ask(`${path}api/actors?sort=__proto__&text=constructor`)).status).toBe(200);
    expect((await ask(`${path}api/overview?${"x".repeat(100_000)}`)).status).toBe(414);
    expect((await ask(`${path}api/rooms`, { "x-more": "y".repeat(100_000) })).status).toBe(431);
    expect((await ask(`${path}api/rooms`)).status).toBe(200);
  });
});

test("the token is in no argument, environment or answer, and in no line but the link's", async () => {
  const { token, path, ask } = await servedSession({ prewarm: 1, numCpus: 2 });
  const counter = Counter.options({ isolation: "process" }).remote();
  await ray.get(counter.increment.remote());
  const [{ pid } = { pid: 0 }] = await ray.state.listActors({ detail: true });
  expect(pid).not.toBe(process.pid);
  for (const one of [process.pid, pid ?? 0]) {
    for (const file of ["cmdline", "environ"]) {
      expect(await readFile(`/proc/${one}/${file}`, "latin1")).not.toContain(token);
    }
  }
  for (const view of ["rooms", "overview", "actors", "workers", "nodes", "sampleLogs", "runs"]) {
    const { headers, body } = await ask(`${path}api/${view}`);
    expect([view, JSON.stringify([headers, body]).includes(token)]).toEqual([view, false]);
  }
  for (const file of ["", "page.js", "page.css"]) {
    expect((await ask(`${path}${file}`)).body).not.toContain(token);
  }
});

test("each page takes the next free port, and goes with its session", async () => {
  const first = await ray.init({ prewarm: 0, dashboard: true });
  onTestFinished(() => ray.shutdown());
  const second = await serveSession(sessionOfNobody, {});
  onTestFinished(() => second.close());
  const ports = [first.dashboardUrl ?? "", second.url].map((url) => Number(new URL(url).port));
  expect(ports[0]).toBeGreaterThanOrEqual(8266);
  expect(ports[1]).toBeGreaterThan(ports[0] ?? 0);
  const { ask, path } = await servedAt(first.dashboardUrl ?? "");
  expect((await ask(`${path}api/rooms`)).status).toBe(200);
  await ray.shutdown();
  const socket = connect(ports[0] ?? 0, "127.0.0.1");
  const [error] = (await once(socket, "error")) as [NodeJS.ErrnoException];
  expect(error.code).toBe("ECONNREFUSED");
});

test("a port that is taken is an error when it was asked for", async () => {
  const { port } = await servedSession({ prewarm: 0 });
  await expect(serveSession(sessionOfNobody, { port })).rejects.toThrow(`port ${port}`);
});

/** A page that is not looked at asks nothing. */
const sessionOfNobody: Parameters<typeof serveSession>[0] = {
  status: unasked,
  list: unasked,
  summarize: unasked,
  memory: unasked,
  logs: unasked,
  killActor: unasked,
};

function unasked(): never {
  throw new Error("nobody looks at this page");
}

test("a client that takes nothing of a stream is cut, and none that reads", async () => {
  const gone = new AbortController();
  onTestFinished(() => gone.abort());
  let looks = 0;
  const views = { news: async () => ({ news: ++looks }) };
  const ask = async (unreadMs: number, cut: () => void): Promise<Response> => {
    const env = { body: new Uint8Array(), signal: gone.signal, cut };
    const { fetch } = createApp({ views, unreadMs });
    return await fetch(new Request("http://page/api/news/events"), env);
  };
  const isCut = Promise.withResolvers<void>();
  const unread = await ask(20, isCut.resolve);
  const cut = vi.fn<() => void>();
  const reader = (await ask(standardUnreadMs, cut)).body?.getReader();
  for (let events = 0; events < 3; events++) await reader?.read();
  await isCut.promise;
  expect(cut).not.toHaveBeenCalled();
  await Promise.all([unread.body?.cancel(), reader?.cancel()]);
});
