/** The server's own wire form: what is asked, and what is answered, by requests over real sockets to a real process. */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ask, type Gate, gate, type Running, serve } from "./served.ts";

let server: Running;
let judge: Gate;
const closing: (() => Promise<void>)[] = [];
const after = (close: () => Promise<void>): void => void closing.push(close);

beforeAll(async () => {
  judge = await gate(after);
  const kwargs = [`gate=${judge.url}`, "big=12345678901234567890"];
  const flags = kwargs.flatMap((kwarg) => ["--reward-kwarg", kwarg]);
  server = await serve(["--max-samples", "50", ...flags], { after });
});
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
});

const score = (body: unknown, headers = {}) => ask(`${server.url}/score`, body, { headers });
const batch = (samples: unknown, headers = {}) =>
  ask(`${server.url}/score/batch`, { samples }, { headers });

test("a sample gets its score, with what the function said besides", async () => {
  const id = randomUUID();
  const { status, body } = await score({ response: "numbers", ground_truth: 1, id });
  expect(status).toBe(200);
  expect(body).toEqual({
    id,
    score: 0.25,
    valid: true,
    error: null,
    extra: { score: 0.25, acc: 1, length: 7, note: "text" },
    attempts: 1,
    latency_ms: expect.any(Number) as number,
    version: expect.any(String) as string,
  });
});

test("integers beyond 2^53 are not rounded", async () => {
  const sent = (truth: string): string => `{"response": "told:", "ground_truth": ${truth}}`;
  const truthOf = async (truth: string): Promise<unknown> => (await score(sent(truth))).body;
  // A function that returns a bigint has its digits among the extras, as in the reward log.
  const big = "123456789012345678901";
  expect(await truthOf(big)).toMatchObject({ extra: { groundTruth: big } });
  expect(await truthOf(`[-${big}]`)).toMatchObject({ extra: { groundTruth: [`-${big}`] } });
  expect(await truthOf("9007199254740991")).toMatchObject({
    extra: { groundTruth: 9007199254740991 },
  });
  expect(await truthOf("0.1234567890123456")).toMatchObject({
    extra: { groundTruth: 0.1234567890123456 },
  });
  expect(await truthOf("1e300")).toMatchObject({ extra: { groundTruth: 1e300 } });
  expect(await truthOf(`"${big}"`)).toMatchObject({ extra: { groundTruth: big } });
});

test("nor are those of --reward-kwarg", async () => {
  const body = { response: "big" };
  expect((await score(body)).body).toMatchObject({ extra: { big: "12345678901234567890" } });
});

test("a message that only calls tools has no content", async () => {
  const prompt = [
    { role: "user", content: "2+2?" },
    { role: "assistant", tool_calls: [{ id: "1" }] },
    { role: "tool", content: "4" },
  ];
  const { body } = await score({ response: "told:", prompt });
  expect(body).toMatchObject({ valid: true, extra: { question: "4" } });
  expect((await score({ response: "told:", prompt: prompt.slice(0, 2) })).status).toBe(200);
});

test.each([
  ["gzip", 415],
  ["br, gzip", 415],
  ["identity", 200],
])("a body in the encoding %s: %i", async (encoding, expected) => {
  const { status, body } = await score({ response: "4" }, { "content-encoding": encoding });
  expect(status).toBe(expected);
  if (status === 415) expect(body).toMatchObject({ error: { code: "unsupported_encoding" } });
});

test("the function gets what it gets from rayling score", async () => {
  const sample = {
    response: "told:",
    ground_truth: { answer: [4] },
    data_source: "openai/gsm8k",
    extra_info: { split: "test" },
  };
  const told = { groundTruth: { answer: [4] }, dataSource: "openai/gsm8k", split: "test" };
  const { body } = await score({ ...sample, prompt: "2+2?" });
  expect(body).toMatchObject({ extra: { ...told, question: "2+2?" } });
  const prompt = [
    { role: "system", content: "Add." },
    { role: "user", content: "1+3?" },
  ];
  expect((await score({ ...sample, prompt })).body).toMatchObject({
    extra: { ...told, question: "1+3?" },
  });
  for (const type of ["text", "input_text"]) {
    const parts = ["1+", "4?"].map((text) => ({ type, text }));
    const { body: byParts } = await score({
      ...sample,
      prompt: [{ role: "user", content: parts }],
    });
    expect(byParts).toMatchObject({ extra: { ...told, question: "1+4?" } });
  }
  expect((await score({ response: "told:" })).body).toMatchObject({
    extra: { groundTruth: null, question: "" },
  });
});

test("a whole number that a double cannot hold is what was asked with", async () => {
  const response = "9007199254740993";
  const asked = JSON.stringify({ response, ground_truth: 0 }).replace(":0}", `:${response}}`);
  const answer = await fetch(`${server.url}/score`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: asked,
  });
  expect(await answer.json()).toMatchObject({ score: 1 });
});

test.each([
  ["throw", "SCORE_THREW", "user-code", "this one cannot be scored"],
  ["null", "CANNOT_TELL", "data", expect.any(String) as string],
  ["status:503", "SCORE_THREW", "rate-limit", "the judge says 503"],
  ["status:500", "SCORE_THREW", "infrastructure", "the judge says 500"],
  ["exit", "EXECUTOR_DIED", "user-code", expect.any(String) as string],
])("a sample that fails (%s) has no score, and says why", async (response, code, kind, message) => {
  const { status, body } = await score({ response });
  expect(status).toBe(200);
  expect(body).toMatchObject({ score: null, valid: false, error: { code, class: kind, message } });
});

test("what JSON cannot carry is a text among the extras", async () => {
  expect((await score({ response: "odd" })).body).toMatchObject({
    score: 1,
    valid: true,
    extra: { when: "NaN" },
  });
});

describe("a batch", () => {
  test("has its outcomes in its order, each by itself", async () => {
    const { status, body } = await batch([
      { response: "1", ground_truth: 1, id: "one" },
      { response: "throw" },
      { response: "1", ground_truth: 2 },
    ]);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      outcomes: [
        { id: "one", score: 1, valid: true },
        { score: null, valid: false, error: { code: "SCORE_THREW" } },
        { score: 0, valid: true },
      ],
    });
  });

  test("comes as lines, each when it is there, where the client takes lines", async () => {
    judge.hold((name) => name === "late");
    const asked = batch(
      [{ response: "ask:late" }, { response: "1", ground_truth: 1, id: "early" }],
      {
        accept: "application/x-ndjson",
      },
    );
    await judge.waiting(1);
    judge.open();
    const { headers, text } = await asked;
    expect(headers["content-type"]).toBe("application/x-ndjson");
    const lines = text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);
    expect(lines).toMatchObject([
      { index: 1, id: "early", score: 1 },
      { index: 0, valid: true },
    ]);
  });

  test("has at most as many samples as the server takes", async () => {
    const many = Array.from({ length: 51 }, () => ({ response: "1", ground_truth: 1 }));
    const { status, body } = await batch(many);
    expect(status).toBe(413);
    expect(body).toMatchObject({
      error: { code: "too_many_samples", message: expect.stringContaining("at most 50") as string },
    });
    expect((await batch(many.slice(1))).status).toBe(200);
  });
});

test.each<[string, unknown, number, string]>([
  ["nothing", "", 400, "the body is empty"],
  ["no JSON", "{", 400, "no JSON in UTF-8"],
  ["bytes that are no text", "\u0000", 400, "no JSON in UTF-8"],
  ["a number that JSON does not have", '{"response": NaN}', 400, "no JSON in UTF-8"],
  ["a list", [], 422, "the body: "],
  ["null", "null", 422, "the body: "],
  ["no response", { ground_truth: 1 }, 422, "response: "],
  ["a response that is no text", { response: 4 }, 422, "response: "],
  ["a name that is not known", { response: "4", groundtruth: 4 }, 422, "groundtruth"],
  ["an empty id", { response: "4", id: "" }, 422, "id: "],
  ["extra info that is a list", { response: "4", extra_info: [] }, 422, "extra_info: "],
  [
    "a message without a role",
    { response: "4", prompt: [{ content: "" }] },
    422,
    "prompt: it must be a text, or a list of messages",
  ],
])("is told what is wrong with its body: %s", async (_, body, status, problem) => {
  const answered = await score(body);
  expect(answered.status).toBe(status);
  expect(answered.body).toMatchObject({
    error: { message: expect.stringContaining(problem) as string, type: "invalid_request_error" },
  });
});

test("a wrong sample of a batch is named by its place, and none of the batch runs", async () => {
  const { status, body } = await batch([{ response: "ask:never" }, { response: 1 }]);
  expect(status).toBe(422);
  expect(body).toMatchObject({
    error: { message: expect.stringContaining("samples[1].response") as string },
  });
  expect(judge.runs.has("never")).toBe(false);
});

test("values as deep as a reader goes do no harm", async () => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  const id = randomUUID();
  const { status, body } = await score(`{"response": "1", "ground_truth": ${deep}, "id": "${id}"}`);
  expect(status).toBe(200);
  expect(body).toMatchObject({ valid: false, score: null });
  expect((await score({ response: "1", ground_truth: 1 })).body).toMatchObject({ score: 1 });
});

test("a key of a prototype is a key", async () => {
  const sample =
    '{"response": "told:", "extra_info": {"__proto__": {"polluted": 1}, "constructor": 2}}';
  const { status, body } = await score(sample);
  expect(status).toBe(200);
  expect(body).toMatchObject({ valid: true, extra: { constructor: 2 } });
  expect(body).not.toHaveProperty("polluted");
});

test("says that it lives, that it takes samples, and what it has done", async () => {
  expect((await ask(`${server.url}/healthz`)).status).toBe(200);
  expect((await ask(`${server.url}/healthz`, undefined, { method: "HEAD" })).status).toBe(200);
  expect((await ask(`${server.url}/readyz`)).body).toEqual({ ready: true });
  const { status, headers, text } = await ask(`${server.url}/metrics`);
  expect(status).toBe(200);
  expect(headers["content-type"]).toContain("text/plain; version=0.0.4");
  expect(text).toMatch(/^ray_served_samples_total\{outcome="valid"\} \d+$/m);
  expect(text).toMatch(/^ray_reward_requests_total\{path="\/score",status="422"\} \d+$/m);
  expect(text).toMatch(/^ray_reward_request_seconds_count\{path="\/score\/batch"\} \d+$/m);
});

test("describes itself for programs and for people", async () => {
  const { body } = await ask(`${server.url}/openapi.json`);
  expect(body).toMatchObject({
    openapi: "3.1.0",
    paths: {
      "/score": {
        post: {
          requestBody: {
            content: {
              "application/json": {
                schema: { required: ["response"], additionalProperties: false },
              },
            },
          },
        },
      },
      "/score/batch": { post: {} },
      "/get_reward": {
        post: {
          parameters: [
            { name: "Idempotency-Key" },
            { name: "eos", in: "query", schema: { type: "string", minLength: 1 } },
            { name: "response", in: "query", schema: { enum: ["query"] } },
          ],
        },
      },
      "/slime": { post: {} },
      "/verify": { post: {} },
    },
  });
  const page = await ask(`${server.url}/docs`);
  expect(page.headers["content-type"]).toContain("text/html");
  expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
  expect(page.text).toContain("/score/batch");
  expect(page.text).toContain("?response=query: ");
});

test("writes a line for each request for scores", async () => {
  await batch([{ response: "1", ground_truth: 1 }, { response: "throw" }]);
  expect(server.log()).toMatch(
    /^\S+Z POST \/score\/batch 200 samples=2 valid=1 invalid=1 error=SCORE_THREW ms=[\d.]+$/m,
  );
});
