/** Who may ask: tokens, names, browsers, limits; and what a server refuses to be started as. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { RequestNotes } from "../../src/serve/request-notes.ts";
import { folder, inProcess } from "../command.ts";
import { ask, type Gate, gate, reward, type Running, serve } from "./served.ts";

const closing: (() => Promise<void>)[] = [];
const after = (close: () => Promise<void>): void => void closing.push(close);
const token = "a-token-of-some-length";
const sample = { response: "1", ground_truth: 1 };
let guarded: Running;
let open: Running;
let judge: Gate;

beforeAll(async () => {
  const path = await folder(after);
  const tokenFile = join(path, "token");
  await writeFile(tokenFile, `${token}\n`);
  judge = await gate(after);
  const limits = ["--max-body", "2000", "--max-requests", "3"];
  guarded = await serve(
    ["--listen", "0.0.0.0:0", "--token-file", tokenFile, "--allowed-host", "rewards.example"],
    { after },
  );
  open = await serve([...limits, "--reward-kwarg", `gate=${judge.url}`], { after });
});
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
});

const bearer = { authorization: `Bearer ${token}` };
const statusOf = async (server: Running, headers: Readonly<Record<string, string>>) =>
  (await ask(`http://127.0.0.1:${server.port}/score`, sample, { headers })).status;

describe("with a token", () => {
  test("who has it is answered, by a header or by a URL", async () => {
    expect(await statusOf(guarded, bearer)).toBe(200);
    // As aiohttp and requests make it of http://rayling:TOKEN@host.
    const basic = Buffer.from(`rayling:${token}`).toString("base64");
    expect(await statusOf(guarded, { authorization: `Basic ${basic}` })).toBe(200);
  });

  test.each([
    ["none", {}],
    ["another", { authorization: "Bearer another-token-of-length" }],
    ["another's password", { authorization: `Basic ${btoa(`admin:${token}`)}` }],
    ["a wrong password", { authorization: `Basic ${btoa("rayling:wrong")}` }],
    ["no password", { authorization: `Basic ${btoa(token)}` }],
  ])("%s: 401", async (_, headers) => {
    expect(await statusOf(guarded, headers)).toBe(401);
  });

  test("every path demands it", async () => {
    for (const path of [
      "/",
      "/docs",
      "/healthz",
      "/readyz",
      "/metrics",
      "/openapi.json",
      "/nowhere",
    ]) {
      const { status } = await ask(`http://127.0.0.1:${guarded.port}${path}`);
      expect([path, status]).toEqual([path, 401]);
    }
  });

  test("no page of a browser is let in", async () => {
    expect(await statusOf(guarded, { ...bearer, origin: `http://127.0.0.1:${guarded.port}` })).toBe(
      403,
    );
    expect(await statusOf(guarded, { ...bearer, "sec-fetch-site": "none" })).toBe(403);
  });

  test("it is called by names that it has, and by the address of who forwards its port", async () => {
    expect(await statusOf(guarded, { ...bearer, host: "rewards.example" })).toBe(200);
    expect(await statusOf(guarded, { ...bearer, host: "192.0.2.7:8100" })).toBe(200);
    expect(await statusOf(guarded, { host: "192.0.2.7:8100" })).toBe(401);
    const headers = { ...bearer, host: "evil.example" };
    const { status, text } = await ask(`http://127.0.0.1:${guarded.port}/score`, sample, {
      headers,
    });
    expect([status, text]).toEqual([421, expect.stringContaining("--allowed-host lists")]);
  });
});

describe("on the loopback without one", () => {
  test.each<[string, Record<string, string>, number]>([
    ["a page of another site", { origin: "http://evil.example" }, 403],
    ["a page without an origin", { origin: "null" }, 403],
    ["a request of another site", { "sec-fetch-site": "cross-site" }, 403],
    ["a page of another port", { "sec-fetch-site": "same-site" }, 403],
    ["a name that points here", { host: "evil.example" }, 421],
    ["an address of another machine", { host: "192.0.2.7" }, 421],
    ["a person who types the address", { "sec-fetch-site": "none" }, 200],
    ["its own page", { "sec-fetch-site": "same-origin" }, 200],
  ])("%s gets %o: %i", async (_, headers, status) => {
    expect(await statusOf(open, headers)).toBe(status);
  });

  test("a body that is too large is refused, whatever is said of its length", async () => {
    const large = { response: "x".repeat(3000) };
    expect((await ask(`${open.url}/score`, large)).status).toBe(413);
    const headers = { "transfer-encoding": "chunked" };
    expect((await ask(`${open.url}/score`, large, { headers })).status).toBe(413);
    expect((await ask(`${open.url}/score`, sample)).status).toBe(200);
  });

  test("more requests at once than it takes are told to come again", async () => {
    judge.hold(() => true);
    const held = ["a", "b", "c"].map((name) =>
      ask(`${open.url}/score`, { response: `ask:${name}` }),
    );
    await judge.waiting(3);
    const { status, headers } = await ask(`${open.url}/score`, sample);
    expect([status, headers["retry-after"]]).toEqual([503, "1"]);
    judge.open();
    for (const { status: answered } of await Promise.all(held)) expect(answered).toBe(200);
    expect((await ask(`${open.url}/score`, sample)).status).toBe(200);
  });
});

test("what is refused before it is read is counted and logged, by its path if that is one", async () => {
  const packed = { headers: { "content-encoding": "gzip" } };
  const count = async (labels: string): Promise<number> => {
    const { text } = await ask(`${open.url}/metrics`);
    const line = text
      .split("\n")
      .find((one) => one.startsWith(`ray_reward_requests_total{${labels}}`));
    return Number(line?.split(" ").at(-1) ?? 0);
  };
  const unpacked = 'path="/score/batch",status="415"';
  const other = 'path="other",status="404"';
  const before = [await count(unpacked), await count(other)];
  const url = `${open.url}/ng-rollout/r1/score/batch`;
  expect((await ask(url, { samples: [] }, packed)).status).toBe(415);
  expect((await ask(`${open.url}/scores`, sample)).status).toBe(404);
  expect((await ask(`${open.url}/ng-rollout/r1/scores`, sample)).status).toBe(404);
  expect([await count(unpacked), await count(other)]).toEqual(
    before.map((n, index) => n + index + 1),
  );
  await expect
    .poll(open.log)
    .toMatch(/Z POST \/score\/batch 415 refused error=unsupported_encoding\n/);
});

test("a flood of refused requests is logged in part, and counted in the log", () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const lines: string[] = [];
  const notes = new RequestNotes((line) => lines.push(line));
  const flood = (count: number): void => {
    for (let left = count; left > 0; left--)
      notes.addRefused({
        method: undefined,
        path: undefined,
        status: 408,
        code: "request_timeout",
      });
  };
  flood(25);
  expect(lines).toEqual(
    Array.from({ length: 20 }, () => "- other 408 refused error=request_timeout"),
  );
  vi.advanceTimersByTime(1000);
  expect(lines.slice(20)).toEqual(["refused 5 more requests in 1 s"]);
  flood(1);
  vi.advanceTimersByTime(1000);
  expect(lines).toHaveLength(22);
});

describe("is not started", () => {
  const refused = async (flags: readonly string[], stderr: string): Promise<void> => {
    const listen = flags.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"];
    expect(await inProcess("serve", ...listen, "--workers", "1", ...flags)).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining(stderr) as string,
    });
  };

  test.each([
    ["0.0.0.0:0", "others can reach this address"],
    ["[::]:0", "others can reach this address"],
  ])("beyond the loopback without a token: %s", async (listen, stderr) => {
    await refused(["--reward", reward, "--listen", listen], stderr);
  });

  test.each<[string, readonly string[], string]>([
    ["no function", [], "--reward is missing"],
    ["two of them", ["--reward", reward, "--rewards", "x.yaml"], "give one of them"],
    ["a module that is not there", ["--reward", "./nowhere.ts"], "--reward ./nowhere.ts"],
    ["a share for runs that end", ["--reward", reward, "--fail-above", "0.1"], "--on-invalid"],
    ["no value", ["--reward", reward, "--on-invalid", "zero"], "fail, null or a number"],
    ["an address that is none", ["--reward", reward, "--listen", "8100"], "host:port"],
    ["a drain of a month", ["--reward", reward, "--drain-timeout", "2592000"], "2147482"],
    ["a silence of a month", ["--reward", reward, "--idle-timeout", "2592000"], "2147482"],
    ["a name with a port", ["--reward", reward, "--allowed-host", "a.b:80"], "without a scheme"],
    ["a URL as a name", ["--reward", reward, "--allowed-host", "http://a"], "without a scheme"],
    ["no token file", ["--reward", reward, "--token-file", "/nowhere/token"], "--token-file"],
    ["a file that is no token", ["--reward", reward, "--token-file", reward], "a token has"],
  ])("with %s", async (_, flags, stderr) => {
    await refused(flags, stderr);
  });

  test.each(["Ranks", "Shares"])(
    "with a function that looks at all answers to a prompt, unless it may: %s",
    async (name) => {
      const ofGroups = [
        "--reward",
        `${join(import.meta.dirname, "../fixtures/of-groups.ts")}:${name}`,
      ];
      await refused(ofGroups, "looks at all answers to a prompt");
      const { url } = await serve(["--one-by-one"], { functions: ofGroups });
      const { status, body } = await ask(`${url}/score`, { response: "four", ground_truth: "4" });
      expect(status).toBe(200);
      expect(body).toMatchObject({ valid: true, score: name === "Ranks" ? 0 : 4 });
    },
  );

  test("on a port that is taken", async () => {
    await refused(["--reward", reward, "--listen", `127.0.0.1:${open.port}`], "EADDRINUSE");
  });
});
