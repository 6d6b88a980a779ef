/**
 * The wire forms of other trainers, with the bodies that their clients send (OpenRLHF 3c3be623, openrlhf/utils/agent.py; slime 624b824a, slime/rollout/rm_hub;
 * NeMo-Gym 07d6b0d0, responses_api_agents/simple_agent and nemo_gym/server_utils.py), and what these read of the answer.
 */

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Answered, ask, type Running, serve } from "./served.ts";

const closing: (() => Promise<void>)[] = [];
const after = (close: () => Promise<void>): void => void closing.push(close);
const servers: Record<"fail" | "null" | "-1.5", Running> = {} as never;

beforeAll(async () => {
  for (const kind of ["fail", "null", "-1.5"] as const) {
    const flags = kind === "fail" ? [] : ["--on-invalid", kind];
    servers[kind] = await serve(flags, { after });
  }
});
afterAll(async () => {
  for (const close of closing.toReversed()) await close();
});

const post = (
  path: string,
  body: unknown,
  kind: keyof typeof servers = "fail",
): Promise<Answered> => ask(`${servers[kind].url}${path}`, body);

/** Each was a score of zero, or the whole query, without a word. */
test.each([
  ["/get_reward?eos_token=%3C/s%3E", "?eos_token: /get_reward has no such parameter"],
  ["/get_reward?EOS=%3C/s%3E", "it has eos and response"],
  ["/get_reward?eos=", "?eos: it is empty"],
  ["/get_reward?eos=%3C/s%3E&eos=%3Cpad%3E", "?eos: the URL has it more than once"],
  ["/get_reward?response=Query", '?response: it is "Query" in the URL, and must be query'],
  ["/slime?reward=Dict", '?reward: it is "Dict" in the URL, and must be dict'],
  ["/verify?groundTruth=answer", "?groundTruth: /verify has no such parameter"],
  ["/ng-rollout/3-1/verify?truth=a", "?truth: /ng-rollout/3-1/verify has no such parameter"],
  ["/score?eos=a", "?eos: /score has no such parameter in its URL; it has none"],
  ["/score/batch?eos=a", "?eos: /score/batch has no such parameter"],
])("%s is refused by name, before the body is read", async (path, problem) => {
  const { status, body } = await post(path, "no JSON");
  expect(status).toBe(422);
  expect(body).toMatchObject({
    error: { code: "invalid_request", message: expect.stringContaining(problem) },
  });
});

describe("OpenRLHF", () => {
  /** As `_fetch_rewards_via_http` makes it. */
  const payload = (...responses: readonly string[]): unknown => ({
    query: responses.map((text) => `<s>[INST] 2+2? [/INST]${text}</s>`),
    prompts: responses.map(() => "[INST] 2+2? [/INST]"),
    labels: responses.map(() => "4"),
  });

  test("gets a reward for each query, by what stands behind its prompt", async () => {
    const { status, body, text } = await post("/get_reward?eos=%3C/s%3E", payload("4", "5"));
    expect(status).toBe(200);
    // Floats for Python: torch makes tensors of int64 of the others, which have no mean.
    expect(text).toContain('"rewards":[1.0,0.0]');
    expect(body).toEqual({ rewards: [1, 0], scores: [1, 0], extra_logs: { acc: [1, 0] } });
  });

  test("without the text that ends a response the function sees it", async () => {
    expect((await post("/get_reward", payload("4"))).body).toMatchObject({ rewards: [0] });
  });

  test("gets the numbers that all samples have, for its log", async () => {
    const { body } = await post("/get_reward?eos=%3C/s%3E", payload("numbers", "numbers"));
    expect(body).toEqual({
      rewards: [0.25, 0.25],
      scores: [0.25, 0.25],
      extra_logs: { acc: [1, 1], length: [7, 7] },
    });
    const mixed = await post("/get_reward?eos=%3C/s%3E", payload("numbers", "4"));
    expect(mixed.body).toMatchObject({ extra_logs: { acc: [1, 1] } });
    expect(mixed.body).not.toHaveProperty("extra_logs.length");
  });

  test("is told where a response cannot be found, and may send whole queries", async () => {
    const body = { query: ["4"], prompts: ["another"], labels: ["4"] };
    const { status, body: refused } = await post("/get_reward", body);
    expect(status).toBe(422);
    expect(refused).toMatchObject({ error: { code: "prompt_not_in_query" } });
    expect((await post("/get_reward?response=query", body)).body).toMatchObject({ rewards: [1] });
  });

  test("gets no zero for a sample that failed", async () => {
    const { status, body } = await post("/get_reward?eos=%3C/s%3E", payload("4", "throw"));
    expect(status).toBe(500);
    expect(body).toMatchObject({ error: { code: "SCORE_THREW" } });
    // Its executor asks for one sample, and takes a null for what it makes of an error.
    const one = await post("/get_reward?eos=%3C/s%3E", payload("throw"), "null");
    expect(one.body).toEqual({ rewards: null, scores: null, extra_logs: {} });
    const two = await post("/get_reward?eos=%3C/s%3E", payload("4", "throw"), "null");
    expect(two.body).toMatchObject({ rewards: [1, null] });
    const value = await post("/get_reward?eos=%3C/s%3E", payload("4", "throw"), "-1.5");
    expect(value.body).toMatchObject({ rewards: [1, -1.5], scores: [1, -1.5] });
  });

  test("older versions send queries alone", async () => {
    const { status, body } = await post("/get_reward", { query: ["4"], prompts: [null] });
    expect([status, body]).toMatchObject([200, { rewards: [0] }]);
    const none = await post("/get_reward", { query: ["4"], prompts: [null], labels: null });
    expect([none.status, none.body]).toMatchObject([200, { rewards: [0] }]);
    const uneven = await post("/get_reward", { query: ["4", "5"], prompts: ["4"], labels: [] });
    expect(uneven.status).toBe(422);
  });
});

describe("slime", () => {
  /** As `remote_rm` makes it; a prompt is a text, or messages. */
  const payload = (response: string, prompt: unknown = "2+2?"): unknown => ({
    prompt,
    response,
    label: "4",
  });

  test("gets the reward itself", async () => {
    expect((await post("/slime", payload("4"))).text).toBe("1.0");
    const messages = [{ role: "user", content: "2+2?" }];
    expect((await post("/slime", payload("5", messages))).body).toBe(0);
    expect((await post("/slime?reward=dict", payload("numbers"))).body).toEqual({
      score: 0.25,
      valid: true,
      acc: 1,
      length: 7,
      note: "text",
    });
  });

  test.each([
    ["throw", 500, undefined],
    ["null", 422, undefined],
    ["status:500", 502, "7"],
    ["status:503", 503, "7"],
    ["status:504", 504, "7"],
  ])("gets an error for a sample that failed (%s): %i", async (response, status, wait) => {
    const answered = await post("/slime", payload(response));
    expect(answered.status).toBe(status);
    expect(answered.headers["retry-after"]).toBe(wait);
  });

  test("gets null or a value where that is wished for, and a dictionary says so", async () => {
    expect((await post("/slime", payload("throw"), "null")).text).toBe("null");
    expect((await post("/slime", payload("throw"), "-1.5")).body).toBe(-1.5);
    expect((await post("/slime?reward=dict", payload("throw"), "-1.5")).body).toEqual({
      score: -1.5,
      valid: false,
    });
  });
});

describe("NeMo-Gym", () => {
  /** A row of resources_servers/mcqa with the answer of a model, as simple_agent sends it. */
  const row = (
    text: string,
    more: Readonly<Record<string, unknown>> = {},
  ): Record<string, unknown> => ({
    responses_create_params: {
      input: [{ role: "user", content: "2+2?" }],
      parallel_tool_calls: false,
      temperature: 0,
    },
    expected_answer: "4",
    uuid: "3c26f339",
    _ng_task_index: 3,
    _ng_rollout_index: 1,
    response: {
      id: "resp_1",
      created_at: 0,
      model: "policy",
      object: "response",
      output: [
        { id: "rs_1", type: "reasoning", summary: [] },
        {
          id: "msg_1",
          type: "message",
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text, annotations: [] }],
        },
      ],
      parallel_tool_calls: true,
      tool_choice: "auto",
      tools: [],
    },
    ...more,
  });

  test("gets its row back with a reward", async () => {
    const sent = row("4");
    const { status, body } = await post("/verify", sent);
    expect(status).toBe(200);
    expect(body).toMatchObject({ ...sent, reward: 1, valid: true });
    expect((await post("/verify", row("5"))).body).toMatchObject({ reward: 0 });
  });

  test("the function gets the row's fields, the question and the items of the response", async () => {
    const { body } = await post("/verify", row("told:"));
    expect(body).toMatchObject({ groundTruth: "4", question: "2+2?", uuid: "3c26f339", reward: 1 });
  });

  test.each([
    ["ground_truth", { expected_answer: undefined, ground_truth: 9 }, "", 9],
    ["verifier_metadata", { expected_answer: undefined, verifier_metadata: { label: 8 } }, "", 8],
    ["a field that the URL names", { solution: 7 }, "?ground_truth=solution", 7],
  ])("the ground truth stands in %s", async (_, more, query, expected) => {
    const { body } = await post(`/verify${query}`, row("told:", more));
    expect(body).toMatchObject({ groundTruth: expected });
  });

  test("a field that the URL names and no row has is refused by name", async () => {
    const { status, body } = await post("/verify?ground_truth=answr", row("4"));
    expect(status).toBe(422);
    expect(body).toHaveProperty("error.message", expect.stringContaining("has a field answr"));
  });

  test("integers of the row beyond 2^53 come back as they were", async () => {
    const text = JSON.stringify(row("4", { seed: 0 })).replace(
      '"seed":0',
      '"seed":18446744073709551615',
    );
    const answered = await post("/verify", text);
    expect(answered.status).toBe(200);
    expect(answered.text).toContain('"seed":18446744073709551615,');
  });

  test("what the row has stays what it is, whatever the function says", async () => {
    const { body } = await post("/verify", row("numbers", { length: "of the row" }));
    expect(body).toMatchObject({ length: "of the row", acc: 1, reward: 0.25 });
  });

  test("gets no zero for a sample that failed, but in a row that it marks as failed itself", async () => {
    expect((await post("/verify", row("throw"))).status).toBe(500);
    const { body } = await post("/verify", row("throw"), "null");
    expect(body).toMatchObject({
      reward: 0,
      _ng_failure_class: "judge_failed",
      _ng_failure_judge_error: "SCORE_THREW: this one cannot be scored",
    });
    const value = await post("/verify", row("throw"), "-1.5");
    expect(value.body).toMatchObject({ reward: -1.5, valid: false });
    expect(value.body).not.toHaveProperty("_ng_failure_class");
  });

  test("has the other paths of a resources server, also behind the prefix of a rollout", async () => {
    expect((await post("/seed_session", row("4"))).body).toEqual({});
    expect((await ask(`${servers.fail.url}/reverify_mode`)).body).toBe("stateless");
    expect((await post("/ng-rollout/3-1/verify", row("4"))).body).toMatchObject({ reward: 1 });
    expect((await post("/ng-rollout/3-1/seed_session", {})).body).toEqual({});
    expect((await post("/ng-rollout/3-1/nowhere", {})).status).toBe(404);
  });

  test("gets the figures of its rollouts", async () => {
    const { body } = await post("/aggregate_metrics", {
      verify_responses: [
        { _ng_task_index: 1, _ng_rollout_index: 0, reward: 1, right: true },
        { _ng_task_index: 1, _ng_rollout_index: 1, reward: 0, right: false },
        { _ng_task_index: 0, _ng_rollout_index: 0, reward: 0.5 },
      ],
    });
    expect(body).toMatchObject({
      agent_metrics: { "mean/reward": 0.5, "max/reward": 1, "min/reward": 0, "std/reward": 0.5 },
      key_metrics: { "mean/reward": 0.5, "mean/right": 0.5 },
      group_level_metrics: [
        { _ng_task_index: 0, "mean/reward": 0.5, "std/reward": 0 },
        { _ng_task_index: 1, "mean/reward": 0.5, "median/reward": 0.5 },
      ],
    });
    expect((await post("/aggregate_metrics", { verify_responses: [] })).body).toEqual({
      group_level_metrics: [],
      agent_metrics: {},
      key_metrics: {},
    });
  });
});
