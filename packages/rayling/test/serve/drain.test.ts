/** How a server ends: what is under way is answered, the rest is told to go elsewhere. */

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { folder } from "../command.ts";
import { RequestNotes } from "../../src/serve/request-notes.ts";
import { RewardServer } from "../../src/serve/reward-server.ts";
import { ServedScores } from "../../src/serve/served-scores.ts";
import { ask, gate, type Running, serve } from "./served.ts";
import { inFull } from "../../../../test/fixtures/suite.ts";

/** Resolves when it has heard the signal. */
const isEnding = async (server: Running): Promise<void> => {
  await expect.poll(async () => (await ask(`${server.url}/readyz`)).status).toBe(503);
};

test("SIGTERM answers what is under way, and refuses what comes with a Retry-After; the longest times are timers that wait", async () => {
  const judge = await gate();
  const log = join(await folder(), "rewards.jsonl");
  const longest = ["--drain-timeout", "2147482", "--idle-timeout", "2147482", "--record", log];
  const server = await serve(["--reward-kwarg", `gate=${judge.url}`, ...longest]);
  judge.hold(() => true);
  const single = ask(`${server.url}/score`, { response: "ask:a", id: "a" });
  const samples = [{ response: "ask:b" }, { response: "ask:c" }];
  const lines = ask(
    `${server.url}/score/batch`,
    { samples },
    {
      headers: { accept: "application/jsonl" },
    },
  );
  await judge.waiting(3);
  server.signal("SIGTERM");
  await isEnding(server);
  for (const path of ["/score", "/score/batch", "/slime", "/get_reward", "/verify"]) {
    const { status, headers, body } = await ask(`${server.url}${path}`, { response: "1" });
    expect([path, status, headers["retry-after"]]).toEqual([path, 503, "5"]);
    expect(body).toMatchObject({ error: { code: "draining" } });
  }
  expect((await ask(`${server.url}/healthz`)).status).toBe(200);
  judge.open();
  expect((await single).body).toMatchObject({ valid: true, id: "a" });
  expect((await lines).text.trimEnd().split("\n")).toHaveLength(2);
  const { code, signal, stderr } = await server.ended;
  expect([code, signal]).toEqual([0, null]);
  // Node has nothing to say of the times.
  expect(stderr).not.toContain("Warning");
  expect((await readFile(log, "utf8")).trimEnd().split("\n")).toHaveLength(3);
});

test("samples whose client has gone: those of a stream are counted when they are scored, and one is scored and recorded before the end", async () => {
  const judge = await gate();
  const log = join(await folder(), "rewards.jsonl");
  const server = await serve(["--reward-kwarg", `gate=${judge.url}`, "--record", log]);
  const samples = [{ response: "ask:a" }, { response: "ask:b" }];
  const streamed = { accept: "application/x-ndjson" };
  judge.hold(() => true);
  const leaving = async (count: number, path: string, body: object, headers = {}) => {
    const gone = new AbortController();
    const { signal } = gone;
    const lost = ask(`${server.url}${path}`, body, { headers, signal });
    await judge.waiting(count);
    gone.abort();
    await expect(lost).rejects.toThrow();
  };
  await leaving(2, "/score/batch", { samples }, streamed);
  const metrics = async (): Promise<string> => (await ask(`${server.url}/metrics`)).text;
  await expect.poll(metrics).toMatch(/^ray_reward_requests_total\{path="\/score\/batch"/m);
  judge.open();
  await expect.poll(metrics).toMatch(/^ray_served_samples_total\{outcome="valid"\} 2$/m);
  judge.hold(() => true);
  await leaving(1, "/score", { response: "ask:c" });
  server.signal("SIGTERM");
  await isEnding(server);
  judge.open();
  expect((await server.ended).code).toBe(0);
  const lines = (await readFile(log, "utf8")).trimEnd().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { valid: boolean }).valid)).toEqual([
    true,
    true,
    true,
  ]);
});

test("what takes longer than --drain-timeout is given up, and said", async () => {
  const judge = await gate();
  const server = await serve(["--reward-kwarg", `gate=${judge.url}`, "--drain-timeout", "0"]);
  judge.hold(() => true);
  const lost = ask(`${server.url}/score`, { response: "ask:a" });
  const seen = expect(lost).rejects.toThrow();
  await judge.waiting(1);
  server.signal("SIGTERM");
  await seen;
  const { code, stderr } = await server.ended;
  expect(code).toBe(1);
  expect(stderr).toContain("1 were still under way");
});

test("a request that asks for no score and does not arrive is given up then, too", async () => {
  const computeScore = async (): Promise<never> => {
    throw new Error("nobody asks for a score");
  };
  const mebibyte = 2 ** 20;
  const server = await RewardServer.start({
    host: "127.0.0.1",
    port: 0,
    token: undefined,
    allowedHosts: [],
    version: "0",
    onInvalid: "fail",
    scores: await ServedScores.open({ computeScore, version: "v" }, undefined),
    metrics: async () => "",
    notes: new RequestNotes(() => undefined),
    limits: {
      maxBodyBytes: mebibyte,
      maxSamples: 1,
      maxRequests: 8,
      maxConnections: 8,
      idleTimeoutMs: 60_000,
    },
  });
  const lost = request(`${server.url}/seed_session`, {
    method: "POST",
    headers: { "content-length": "1000", expect: "100-continue" },
    agent: false,
  });
  const seen = once(lost, "error");
  lost.flushHeaders();
  await once(lost, "continue");
  expect(await server.drain(0)).toBe(1);
  await seen;
});

test("a second signal ends it at once", async () => {
  const judge = await gate();
  const server = await serve(["--reward-kwarg", `gate=${judge.url}`]);
  judge.hold(() => true);
  const seen = expect(ask(`${server.url}/score`, { response: "ask:a" })).rejects.toThrow();
  await judge.waiting(1);
  server.signal("SIGINT");
  await isEnding(server);
  server.signal("SIGINT");
  await seen;
  expect((await server.ended).code).toBe(130);
});

test.runIf(inFull("format.test.ts ends a server that nobody asks any more"))(
  "a server that nobody asks ends at once",
  async () => {
    const server = await serve();
    server.signal("SIGTERM");
    expect((await server.ended).code).toBe(0);
  },
);
