/** Idempotency keys: one outcome for each, also over a kill -9 under load where a log is kept. */

import { appendFile, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { folder, inProcess, shown, startShell } from "../command.ts";
import { type Answered, ask, type Gate, gate, reward, type Running, serve } from "./served.ts";
import { inFull, sized } from "../../../../test/fixtures/suite.ts";

interface Line {
  readonly key?: string;
  readonly component: string | null;
  readonly index: number;
  readonly valid: boolean;
  readonly score: number | null;
}

const linesOf = async (log: string): Promise<Line[]> =>
  (await readFile(log, "utf8"))
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);

const asking = (server: Running, response: string, headers = {}, id?: string) =>
  ask(`${server.url}/score`, { response, ...(id === undefined ? {} : { id }) }, { headers });

const recording = (log: string): Promise<Running> =>
  serve(["--reward-kwarg", `gate=${judge.url}`, "--record", log]);

const closing: (() => Promise<void>)[] = [];
const after = (close: () => Promise<void>): void => void closing.push(close);
let judge: Gate;
let server: Running;
/** One that keeps a log, for what does not end it. */
let recorder: Running;
let recorded = "";

beforeAll(async () => {
  judge = await gate(after);
  server = await serve(["--reward-kwarg", `gate=${judge.url}`], { after });
  recorded = join(await folder(after), "rewards.jsonl");
  recorder = await serve(["--reward-kwarg", `gate=${judge.url}`, "--record", recorded], { after });
});
beforeEach(() => {
  judge.open();
  judge.runs.clear();
});
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
});

test("the same key gets the same answer, by header or id, and nothing runs again", async () => {
  const first = await asking(server, "ask:a", { "idempotency-key": "k1" });
  const again = await asking(server, "ask:a", { "idempotency-key": '"k1"' });
  const byId = await asking(server, "ask:a", {}, "k1");
  expect(again.body).toEqual({ ...(first.body as object), replayed: true });
  expect(byId.body).toMatchObject({ ...(first.body as object), replayed: true, id: "k1" });
  expect(judge.runs.get("a")).toBe(1);
  // Without a key each is scored.
  await asking(server, "ask:a");
  expect(judge.runs.get("a")).toBe(2);
});

test("a sample that is too deep to be scored is answered alike, and takes no key", async () => {
  const deep = (levels: number, id: string): Promise<Answered> =>
    ask(
      `${server.url}/score`,
      `{"response":"1","id":"${id}","extra_info":{"a":${"[".repeat(levels)}${"]".repeat(levels)}}}`,
    );
  for (const levels of [900, 3000, 100_000]) {
    const id = `deep-${levels}`;
    for (const { status, body } of [await deep(levels, id), await deep(levels, id)]) {
      expect([levels, status]).toEqual([levels, 200]);
      expect(body).toMatchObject({ id, error: { code: "INVALID_SAMPLE" } });
    }
  }
  expect((await asking(server, "0", {}, "deep-3000")).status).toBe(200);
  expect((await asking(server, "0", {}, "deep-900")).status).toBe(422);
});

test("who asks while a key is under way waits for the one answer", async () => {
  judge.hold(() => true);
  const both = [asking(server, "ask:a", {}, "k2"), asking(server, "ask:a", {}, "k2")];
  await judge.waiting(1);
  const third = asking(server, "ask:a", {}, "k2");
  judge.open();
  const answers = await Promise.all([...both, third]);
  const scores = new Set(answers.map(({ body }) => (body as { readonly score: number }).score));
  expect(scores.size).toBe(1);
  expect(judge.runs.get("a")).toBe(1);
});

test("a key stands for one sample, and a failure is an outcome as well", async () => {
  await asking(server, "throw", {}, "k3");
  expect((await asking(server, "throw", {}, "k3")).body).toMatchObject({
    replayed: true,
    valid: false,
    error: { code: "SCORE_THREW" },
  });
  const other = await asking(server, "ask:b", {}, "k3");
  expect(other.status).toBe(422);
  expect(other.body).toMatchObject({ error: { code: "idempotency_key_reused" } });
  const twice = [
    { response: "ask:c", id: "same" },
    { response: "ask:d", id: "same" },
  ];
  expect((await ask(`${server.url}/score/batch`, { samples: twice })).status).toBe(422);
  expect([...judge.runs.keys()]).toEqual([]);
});

test("the key of a batch stands for its samples, and trainers may send one", async () => {
  const samples = [{ response: "ask:a" }, { response: "ask:b" }, { response: "ask:c", id: "own4" }];
  const headers = { "idempotency-key": "batch" };
  const first = await ask(`${server.url}/score/batch`, { samples }, { headers });
  const again = await ask(`${server.url}/score/batch`, { samples }, { headers });
  const { outcomes } = first.body as { readonly outcomes: readonly object[] };
  expect(again.body).toEqual({ outcomes: outcomes.map((one) => ({ ...one, replayed: true })) });
  expect(Object.fromEntries(judge.runs)).toEqual({ a: 1, b: 1, c: 1 });
  const body = { prompt: "", response: "ask:d", label: null };
  const slime = () => ask(`${server.url}/slime`, body, { headers: { "idempotency-key": "s" } });
  expect((await slime()).text).toBe((await slime()).text);
  expect(judge.runs.get("d")).toBe(1);
});

test("a key that stands twice in a batch is scored once", async () => {
  const samples = [1, 2, 3].map(() => ({ response: "ask:twice", id: "twice" }));
  const { body } = await ask(`${server.url}/score/batch`, { samples });
  const { outcomes } = body as { readonly outcomes: readonly { readonly score: number }[] };
  expect(new Set(outcomes.map(({ score }) => score)).size).toBe(1);
  expect(judge.runs.get("twice")).toBe(1);
});

test("a client that goes loses nothing: its sample is scored, and its key is answered", async () => {
  judge.hold(() => true);
  const gone = new AbortController();
  const lost = ask(`${server.url}/score`, { response: "ask:a", id: "k5" }, { signal: gone.signal });
  await judge.waiting(1);
  gone.abort();
  await expect(lost).rejects.toThrow();
  judge.open();
  expect((await asking(server, "ask:a", {}, "k5")).body).toMatchObject({ valid: true });
  expect(judge.runs.get("a")).toBe(1);
});

test("with a log every outcome is known again after a kill -9 under load", async () => {
  const log = join(await folder(), "rewards.jsonl");
  const count = sized({ gate: 150, full: 300 });
  const names = Array.from({ length: count }, (_, index) => `n${index}`);
  const known = new Map<string, unknown>();
  const first = await recording(log);
  judge.hold((name) => Number(name.slice(1)) % 5 === 4);
  const single = names.slice(0, (2 * count) / 3).map(async (name) => {
    const { body } = await asking(first, `ask:${name}`, {}, name);
    known.set(name, body);
  });
  const samples = names
    .slice((2 * count) / 3)
    .map((name) => ({ response: `ask:${name}`, id: name }));
  const batch = ask(`${first.url}/score/batch`, { samples });
  const cut = Promise.allSettled([...single, batch]);
  // A fifth is under way when it dies; the rest has been answered or is in the middle of it.
  await judge.waiting(count / 5 - 5);
  await expect.poll(() => known.size).toBeGreaterThan(0);
  first.signal("SIGKILL");
  await first.ended;
  await cut;
  const before = new Map((await linesIfWhole(log)).map((line) => [line.key, line]));
  for (const name of known.keys()) expect(before.has(name)).toBe(true);
  judge.open();

  const second = await recording(log);
  const answers = new Map<string, unknown>();
  await Promise.all(
    names.map(async (name) => {
      answers.set(name, (await asking(second, `ask:${name}`, {}, name)).body);
    }),
  );
  for (const [name, body] of known) {
    expect(answers.get(name)).toEqual({ ...(body as object), replayed: true });
  }
  const lines = await linesOf(log);
  expect(lines).toHaveLength(names.length);
  expect(new Set(lines.map(({ key }) => key))).toEqual(new Set(names));
  expect(new Set(lines.map(({ index }) => index)).size).toBe(names.length);
  for (const name of names) {
    const { score } = lines.find(({ key }) => key === name) as Line;
    expect(answers.get(name)).toMatchObject({ score, valid: true });
    // Only what was under way ran twice.
    const runs = judge.runs.get(name) ?? 0;
    expect([name, runs]).toEqual([name, before.has(name) ? 1 : Math.min(2, Math.max(1, runs))]);
  }
  expect(known.size).toBeGreaterThan(0);
  expect(before.size).toBeLessThan(names.length);
});

/** The last line may have been cut off. */
async function linesIfWhole(log: string): Promise<Line[]> {
  const lines = (await readFile(log, "utf8")).split("\n");
  return lines.flatMap((line, index) => {
    if (line === "" || index === lines.length - 1) return [];
    return [JSON.parse(line) as Line];
  });
}

test.runIf(
  inFull("the kill under load above cuts off lines as well, and their samples are scored again"),
)("a line that was cut off was answered to nobody, and its sample is scored again", async () => {
  const log = join(await folder(), "rewards.jsonl");
  const first = await recording(log);
  await asking(first, "ask:a", {}, "a");
  first.signal("SIGKILL");
  await first.ended;
  const [line = ""] = (await readFile(log, "utf8")).split("\n");
  await appendFile(log, line.replace('"a"', '"b"').slice(0, -20));
  const second = await recording(log);
  expect((await asking(second, "ask:a", {}, "a")).body).toMatchObject({ replayed: true });
  expect((await asking(second, "ask:b", {}, "b")).body).not.toHaveProperty("replayed");
  expect(Object.fromEntries(judge.runs)).toEqual({ a: 1, b: 1 });
});

test("several rewards have one outcome for a key, lines of their own in the log, and one budget over restarts", async () => {
  const path = await folder();
  const log = join(path, "rewards.jsonl");
  const yaml = join(path, "rewards.yaml");
  const of = (weight: number): string =>
    `{ reward: { path: ${JSON.stringify(reward)}, rewardKwargs: { gate: "${judge.url}" } }, weight: ${weight} }`;
  await writeFile(yaml, `rewards:\n  right: ${of(1)}\n  style: ${of(10)}\n`);
  const started = (): Promise<Running> =>
    serve(["--record", log, "--price", "0,0,1", "--budget", "2"], {
      functions: ["--rewards", yaml],
    });
  const first = await started();
  const { body } = await asking(first, "ask:a", {}, "k");
  expect(body).toMatchObject({ valid: true, extra: { right: expect.any(Number) as number } });
  expect(judge.runs.get("a")).toBe(2);
  first.signal("SIGKILL");
  await first.ended;
  const second = await started();
  const again = await asking(second, "ask:a", {}, "k");
  expect(again.body).toEqual({ ...(body as object), replayed: true });
  expect(judge.runs.get("a")).toBe(2);
  expect((await linesOf(log)).map(({ component }) => component)).toEqual(["right", "style", null]);
  const { body: beyond } = await asking(second, "ask:b");
  expect(beyond).toMatchObject({ valid: false, error: { code: "SPEND_CAP" } });
  expect(judge.runs.has("b")).toBe(false);
});

test("a key in the log of an earlier release, which left out names, is known by the group, and the answer of another function is kept where the server is told to", async () => {
  const log = join(await folder(), "older.jsonl");
  const scored = async ({ url }: Running, extra_info: object, status: number): Promise<unknown> => {
    const answer = await ask(`${url}/score`, { response: "ask:a", id: "k", extra_info });
    expect(answer.status).toBe(status);
    return answer.body;
  };
  // Such a line, by what its release made of the extra info.
  await scored(recorder, { more: 1 }, 200);
  const line = (await readFile(recorded, "utf8")).split("\n").find((one) => one.includes('"k"'));
  const older = line?.replace('"group":null', '"group":"p1"');
  await writeFile(log, `${older?.replace(/"version":"[^"]*"/, '"version":"before"')}\n`);
  const judgeHere = ["--reward-kwarg", `gate=${judge.url}`];
  const flags = ["--reward", reward, ...judgeHere, "--listen", "127.0.0.1:0", "--record", log];
  expect(await inProcess("serve", ...flags)).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /--record: 1 of the 1 keys in .*older.jsonl .*--keep-stale/,
    ) as unknown,
  });
  const second = await serve([...judgeHere, "--record", log, "--keep-stale"]);
  expect(await scored(second, { more: 1, uid: "p1" }, 200)).toMatchObject({ replayed: true });
  await scored(second, { more: 1, uid: "p2" }, 422);
  expect(judge.runs.get("a")).toBe(1);
  second.signal("SIGTERM");
  expect((await second.ended).stdout).toContain(
    "1 keys are known, 1 of them with answers of another version of the reward functions.\n",
  );
});

test("a log belongs to one server, and is a reward log", async () => {
  const path = await folder();
  const serveWith = (record: string) =>
    inProcess("serve", "--reward", reward, "--listen", "127.0.0.1:0", "--record", record);
  const busy = await serveWith(recorded);
  expect(busy).toMatchObject({ code: 2, stderr: expect.stringContaining("--record: ") as string });
  const other = join(path, "other.jsonl");
  await appendFile(other, '{"not": "a record"}\n');
  expect(await serveWith(other)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("--record: ") as string,
  });
  expect(await readFile(other, "utf8")).toBe('{"not": "a record"}\n');
});

test("what cannot be recorded is not answered, and the server says that it is not ready", async () => {
  const log = join(await folder(), "rewards.jsonl");
  // 4 KiB of a file, and an error in place of a signal for what goes beyond.
  const limits = "trap '' XFSZ; ulimit -f 8; export NODE_DISABLE_COMPILE_CACHE=1";
  const started = startShell(
    `${limits}; exec "$@" serve --listen 127.0.0.1:0 --reward '${reward}' --workers 1 --record '${log}'`,
  );
  onTestFinished(async () => {
    started.child.kill("SIGKILL");
    await started.ended;
  });
  const [, url = ""] = await shown(started, /Serving rewards on (\S+)\n/);
  const answers: Answered[] = [];
  while (answers.at(-1)?.status !== 503 && answers.length < 50) {
    answers.push(await ask(`${url}/score`, { response: "told:", id: `k${answers.length}` }));
  }
  expect(answers.at(-1)).toMatchObject({
    status: 503,
    body: { error: { code: "record_failed" } },
    headers: { "retry-after": "5" },
  });
  const answered = answers.slice(0, -1).map((_, index) => `k${index}`);
  expect((await linesIfWhole(log)).map(({ key }) => key)).toEqual(answered);
  const ready = await ask(`${url}/readyz`);
  expect([ready.status, ready.body]).toMatchObject([503, { ready: false }]);
  expect((await ask(`${url}/healthz`)).status).toBe(200);
});

test("a log that was moved away is begun anew, and what is refused meanwhile does not run", async () => {
  expect((await asking(recorder, "ask:a", {}, "k1")).status).toBe(200);
  await rename(recorded, `${recorded}.1`);
  expect((await asking(recorder, "ask:b", {}, "k2")).status).toBe(503);
  expect((await ask(`${recorder.url}/readyz`)).status).toBe(503);
  await expect
    .poll(async () => (await asking(recorder, "ask:b", {}, "k2")).status, { interval: 100 })
    .toBe(200);
  expect(judge.runs.get("b")).toBe(2);
  expect((await ask(`${recorder.url}/readyz`)).status).toBe(200);
  expect((await asking(recorder, "ask:a", {}, "k1")).body).toMatchObject({ replayed: true });
  expect((await linesOf(`${recorded}.1`)).map(({ key }) => key)).toContain("k1");
  expect((await linesOf(recorded)).map(({ key }) => key)).toEqual(["k2"]);
});

test("without a log as many answers are known as have room", async () => {
  const path = join(await folder(), "long.ts");
  await writeFile(
    path,
    'export const computeScore = () => ({ score: 1, reason: "because ".repeat(2 ** 20) });\n',
  );
  const { url } = await serve([], { functions: ["--reward", path] });
  const post = (id: string) => ask(`${url}/score`, { response: "4", id });
  const replayed = async (id: string): Promise<unknown> =>
    ((await post(id)).body as { readonly replayed?: boolean }).replayed;
  for (let index = 0; index < 8; index++) await post(`k${index}`);
  // Eight of 8 million characters are too many, and seven are not.
  expect(await replayed("k7")).toBe(true);
  expect(await replayed("k2")).toBe(true);
  expect(await replayed("k0")).toBeUndefined();
});
