/** A policy behind a server that takes its time and fails: every sample is there once, whatever the server does in between. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { tensor } from "@rayling/data-proto";
import { OpenAIPolicy, OpenAIPolicyActor } from "@rayling/trainer";
import type {
  GenerateRequest,
  OpenAIPolicySettings,
  PolicyHandle,
  Rollout,
} from "@rayling/trainer";
import { describe, expect, test } from "vitest";
import { readCompletion } from "../../src/policy/openai/completion.ts";
import type { CompletedSample } from "../../src/policy/openai/completion.ts";
import { labelOf } from "../../src/policy/openai/labels.ts";
import { startJudge } from "../../../../test/servers/judge.ts";
import type { Judge } from "../../../../test/servers/judge.ts";
import { chanceOf } from "../../../../test/servers/seeded.ts";
import { answersOf } from "./tiny-rows.ts";

const question = (solution: string, groundTruth: string): { role: string; content: string }[] => [
  { role: "user", content: JSON.stringify({ solution, groundTruth }) },
];
const questions = (count: number): GenerateRequest["prompts"] =>
  Array.from({ length: count }, (_, i) => question(`it is ${i}`, i % 2 ? `${i}` : `${i + 1}`));

const settingsFor = (
  judge: Judge,
  more: Partial<OpenAIPolicySettings> = {},
): OpenAIPolicySettings => ({
  baseUrl: judge.address,
  model: "judge",
  secondMs: 1,
  ...more,
});

const updater = { path: fileURLToPath(new URL("./recording-updater.ts", import.meta.url)) };
const rows = {
  prompts: tensor([[1]], "int32"),
  responses: tensor([[2, 3]], "int32"),
  attentionMask: tensor([[1, 1, 1]], "int32"),
};

describe("rollouts", () => {
  test("have texts, tokens and their log-probs, the same for the same seed", async () => {
    await using judge = await startJudge();
    const policy = new OpenAIPolicy(settingsFor(judge));
    const request = { prompts: questions(3), n: 2, maxResponseLength: 50, seed: 1 };
    const rollouts = await answersOf(policy, request);
    expect(rollouts.map(({ prompt, sample }) => [prompt, sample])).toEqual(
      [0, 1, 2].flatMap((prompt) => [0, 1].map((sample) => [prompt, sample])),
    );
    for (const { prompt, response, responseIds, rolloutLogProbs, ...rest } of rollouts) {
      // {" sco re" :0}
      expect(response).toBe(`{"score":${prompt % 2}}`);
      expect(responseIds).toHaveLength(4);
      expect(rolloutLogProbs).toHaveLength(4);
      expect(Math.max(...rolloutLogProbs!)).toBeLessThan(0);
      expect(rest).toMatchObject({ finishReason: "stop", version: 0 });
    }
    const [first, second, third] = rollouts as [Rollout, Rollout, Rollout];
    expect(first.responseIds).toEqual(second.responseIds);
    expect(first.responseIds).not.toEqual(third.responseIds);
    expect(first.rolloutLogProbs).not.toEqual(second.rolloutLogProbs);
    expect(await answersOf(policy, request)).toEqual(rollouts);
    expect(await answersOf(policy, { ...request, seed: 2 })).not.toEqual(rollouts);
    expect((await policy.promptLengths(request.prompts))[0]).toBe(first.promptIds.length);
  });

  test("are cut where they get too long, and say so", async () => {
    await using judge = await startJudge();
    const policy = new OpenAIPolicy(settingsFor(judge));
    const [rollout] = await answersOf(policy, { prompts: questions(1), maxResponseLength: 2 });
    expect(rollout).toMatchObject({ response: '{"scor', finishReason: "length" });
    expect(rollout!.responseIds).toHaveLength(2);
    expect(rollout!.rolloutLogProbs).toHaveLength(2);
  });

  test("have the server's own ids where it gives them, and none of its log-probs where it has none", async () => {
    await using judge = await startJudge();
    const request = { prompts: questions(1), maxResponseLength: 9 };
    const asking = new OpenAIPolicy(settingsFor(judge, { body: { return_token_ids: true } }));
    const [own] = await answersOf(asking, request);
    expect([...own!.promptIds]).toEqual([7, 8, 9]);
    expect([...own!.responseIds]).toEqual(['{"s', "cor", 'e":', "0}"].map((s) => s.charCodeAt(0)));
    const silent = new OpenAIPolicy(settingsFor(judge, { body: { logprobs: false } }));
    const [text] = await answersOf(silent, request);
    expect(text).not.toHaveProperty("rolloutLogProbs");
    // Eleven bytes, in fours.
    expect(text!.responseIds).toHaveLength(3);
    expect(text!.response).toBe('{"score":0}');
  });

  test("of a prompt come by several in a request, if that is wished", async () => {
    await using judge = await startJudge();
    const policy = new OpenAIPolicy(settingsFor(judge, { samplesPerRequest: 3 }));
    const rollouts = await answersOf(policy, { prompts: questions(2), n: 5, maxResponseLength: 9 });
    expect(rollouts.map(({ sample }) => sample)).toEqual([0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    expect((await judge.stats()).answered).toBe(4);
  });

  test("are all there once when the server fails in every way, and no more are asked for at once than may be", async () => {
    const share = 0.08;
    await using judge = await startJudge({
      latency: { uniform: [1, 5] },
      faults: {
        refuse: share,
        error: share,
        overload: share,
        cut: share,
        "cut-body": share,
        malformed: share,
        empty: share,
        hang: share / 4,
      },
      timesPerText: 2,
      limits: { concurrency: 8 },
    });
    const policy = new OpenAIPolicy(settingsFor(judge, { maxConcurrency: 8, timeoutMs: 2000 }));
    const rollouts = await answersOf(policy, {
      prompts: questions(120),
      n: 2,
      maxResponseLength: 9,
    });
    expect(rollouts.map(({ prompt, sample }) => 2 * prompt + sample)).toEqual([
      ...Array(240).keys(),
    ]);
    const { failed, mostInFlight, violations } = await judge.stats();
    expect(Object.keys(failed).length).toBeGreaterThan(5);
    expect(violations).toEqual({});
    expect(mostInFlight).toBeGreaterThan(1);
  });

  test("are asked for again when the server says, not after a pause of ours", async () => {
    await using judge = await startJudge({ faults: { refuse: 0.5, overload: 0.5 } });
    // Our own first pause would be an hour.
    const policy = new OpenAIPolicy(settingsFor(judge, { secondMs: 3_600_000 }));
    expect(await answersOf(policy, { prompts: questions(6), maxResponseLength: 9 })).toHaveLength(
      6,
    );
    expect(Object.keys((await judge.stats()).failed).length).toBeGreaterThan(0);
  });

  test("come as they are finished: those that never are hold up none of the others", async () => {
    const hang = 0.3;
    await using judge = await startJudge({ seed: 1, faults: { hang } });
    const policy = new OpenAIPolicy(settingsFor(judge));
    const prompts = questions(30);
    const hanging = prompts.filter(
      ([message]) => chanceOf(1, message!.content as string, "fault") < hang,
    );
    expect(hanging.length).toBeGreaterThan(3);
    let finished = 0;
    for await (const some of policy.generate({ prompts, maxResponseLength: 9 })) {
      finished += some.length;
      if (finished === prompts.length - hanging.length) break;
    }
    await expect.poll(async () => (await judge.stats()).failed).toEqual({ hang: hanging.length });
  });

  test("end with the error of a request that fails for good, which says what it was", async () => {
    await using judge = await startJudge({ faults: { error: 0.2 }, timesPerText: 100 });
    const policy = new OpenAIPolicy(settingsFor(judge, { maxRetries: 2 }));
    const request = { prompts: questions(20), maxResponseLength: 9 };
    await expect(answersOf(policy, request)).rejects.toMatchObject({
      name: "EndpointError",
      status: 500,
    });
    const wrong = new OpenAIPolicy(settingsFor(judge, { baseUrl: `http://${judge.address}/v2` }));
    await expect(answersOf(wrong, request)).rejects.toMatchObject({ status: 404 });
  });

  test("that nobody takes any more are asked for no longer", async () => {
    await using judge = await startJudge({ latency: { uniform: [5, 10] } });
    const policy = new OpenAIPolicy(settingsFor(judge, { maxConcurrency: 2 }));
    for await (const _ of policy.generate({ prompts: questions(200), maxResponseLength: 9 })) break;
    const { requests } = await judge.stats();
    expect(requests).toBeLessThan(20);
    // What comes next finds all places free.
    expect(await answersOf(policy, { prompts: questions(2), maxResponseLength: 9 })).toHaveLength(
      2,
    );
    expect((await judge.stats()).requests).toBeLessThan(requests + 5);
  });
});

describe("an answer that says nothing", () => {
  const read = (choice: object): CompletedSample => {
    const { samples } = readCompletion("a", { choices: [choice] }, { n: 1, maxResponseLength: 4 });
    return samples[0]!;
  };
  const nothing = { ids: new Int32Array(), logProbs: new Float32Array() };
  const tokens = [{ token: "No", logprob: -1 }];
  const counted = { ids: Int32Array.of(labelOf(Buffer.from("No"))), logProbs: Float32Array.of(-1) };

  test.for<[string, object, CompletedSample]>([
    [
      "whose tokens were over",
      { message: { content: null }, finish_reason: "length" },
      { text: "", finishReason: "length", ...nothing },
    ],
    [
      "that ended with its thoughts",
      { message: { content: null, reasoning_content: "hm" }, finish_reason: "stop" },
      { text: "", finishReason: "stop", ...nothing },
    ],
    [
      "that was filtered",
      { message: { content: null }, finish_reason: "content_filter", logprobs: null },
      { text: "", finishReason: "length", ...nothing },
    ],
    [
      "of no character",
      { message: { content: "" }, finish_reason: "stop", logprobs: null },
      { text: "", finishReason: "stop", ...nothing },
    ],
    [
      "whose thoughts have tokens",
      { message: { content: null }, finish_reason: "stop", logprobs: { content: tokens } },
      { text: "", finishReason: "stop", ...counted },
    ],
    [
      "that is a refusal",
      { message: { content: null, refusal: "No" }, finish_reason: "stop" },
      { text: "No", finishReason: "stop", ...nothing },
    ],
    [
      "that is a refusal of known tokens",
      {
        message: { content: null, refusal: "No" },
        finish_reason: "stop",
        logprobs: { content: null, refusal: tokens },
      },
      { text: "No", finishReason: "stop", ...counted },
    ],
  ])("is an answer: one %s", ([, choice, sample]) => {
    expect(read(choice)).toEqual(sample);
  });

  test("is none where it has no end, or was broken off", () => {
    const without = "answered without a choice's message.content";
    expect(() => read({ message: { content: null } })).toThrow(without);
    expect(() => read({ message: {}, finish_reason: "stop" })).toThrow(without);
    for (const reason of ["abort", "error"]) {
      const choice = { message: { content: "It i" }, finish_reason: reason };
      expect(() => read(choice)).toThrow(`answered with a choice whose finish_reason is ${reason}`);
    }
  });

  test("ends no generation, nor does a prompt that a filter keeps from the model", async () => {
    const prompts = ["filtered", "refused", "kept", "wrong"].map((content) => [
      { role: "user", content },
    ]);
    const filtered = { error: { code: "content_filter", message: "the prompt was filtered" } };
    const choice = (content: string | null, refusal?: string): object => ({
      choices: [{ message: { content, refusal }, finish_reason: "stop", logprobs: null }],
    });
    const answers: Readonly<Record<string, [status: number, answer: object]>> = {
      filtered: [
        200,
        { choices: [{ message: { content: null }, finish_reason: "content_filter" }] },
      ],
      refused: [200, choice(null, "I cannot")],
      kept: [400, filtered],
      wrong: [400, { error: { code: "context_length_exceeded" } }],
    };
    let requests = 0;
    const server = createServer(async (request, response) => {
      requests += 1;
      const { messages } = (await json(request)) as { messages: { content: string }[] };
      const [status, answer] = answers[messages[0]!.content]!;
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(answer));
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const { port } = server.address() as AddressInfo;
      const policy = new OpenAIPolicy({ baseUrl: `127.0.0.1:${port}`, model: "m" });
      const request = { prompts: prompts.slice(0, 3), n: 2, maxResponseLength: 9 };
      const rollouts = await answersOf(policy, request);
      expect(rollouts.map(({ response, finishReason }) => [response, finishReason])).toEqual([
        ["", "length"],
        ["", "length"],
        ["I cannot", "stop"],
        ["I cannot", "stop"],
        ["", "length"],
        ["", "length"],
      ]);
      for (const { rolloutLogProbs } of rollouts) expect(rolloutLogProbs).toHaveLength(0);
      expect(requests).toBe(6);
      const wrong = { prompts: prompts.slice(3), maxResponseLength: 9 };
      await expect(answersOf(policy, wrong)).rejects.toMatchObject({ status: 400 });
    } finally {
      server.close();
    }
  });
});

test("an answer in parts is their texts", () => {
  const content = [
    { type: "thinking", thinking: [] },
    { type: "text", text: "No" },
  ];
  const choice = { message: { content }, finish_reason: "stop" };
  const { samples } = readCompletion("a", { choices: [choice] }, { n: 1, maxResponseLength: 4 });
  expect(samples).toMatchObject([{ text: "No", finishReason: "stop" }]);
  expect(samples[0]!.ids).toHaveLength(1);
});

describe("updates", () => {
  const update = { ...rows, gradLogProbs: tensor([[0.5, 0.25]], "float32") };

  test("go to the module that is named, in the policy's own thread, and count", async () => {
    await using judge = await startJudge();
    await ray.init();
    try {
      const settings = settingsFor(judge, { updater: { ...updater, options: { lr: 3 } } });
      const policy: PolicyHandle = OpenAIPolicyActor.remote(settings);
      expect(await ray.get(policy.describe.remote())).toMatchObject({
        trains: true,
        scoresTokens: true,
      });
      expect(await ray.get(policy.update.remote(update))).toEqual({ gradNorm: 0.75, lr: 3 });
      expect((await ray.get(policy.logProbs.remote(rows))).logProbs.data).toHaveLength(2);
      const state = await ray.get(policy.state.remote());
      expect(state).toEqual({ version: 1, weights: { sum: Float32Array.of(0.75) }, optimizer: {} });
      const other: PolicyHandle = OpenAIPolicyActor.remote(settings);
      await ray.get(other.setState.remote(state));
      expect((await ray.get(other.update.remote(update))).gradNorm).toBe(1.5);
      const request = { prompts: questions(2), maxResponseLength: 9 };
      const versions: number[] = [];
      for await (const ref of other.generate.remote(request)) {
        for (const { version } of await ray.get(ref)) versions.push(version);
      }
      expect(versions).toEqual([2, 2]);
    } finally {
      await ray.shutdown();
    }
  });

  test("are refused where nobody takes them: such a policy only evaluates", async () => {
    const policy = new OpenAIPolicy({ baseUrl: "127.0.0.1:1", model: "m" });
    expect(await policy.describe()).toMatchObject({ trains: false, scoresTokens: false });
    await expect(policy.update(update)).rejects.toMatchObject({ input: "updater" });
    await expect(policy.logProbs(rows)).rejects.toMatchObject({ input: "policy" });
    expect(await policy.state()).toEqual({ version: 0, weights: {}, optimizer: {} });
    await policy.setState({ version: 4, weights: {}, optimizer: {} });
    expect((await policy.state()).version).toBe(4);
    const weights = { a: Float32Array.of(1) };
    await expect(policy.setState({ version: 1, weights, optimizer: {} })).rejects.toMatchObject({
      input: "weights",
    });
  });

  test("need a module that makes an updater", async () => {
    const asked = (name: string): Promise<unknown> =>
      new OpenAIPolicy({ baseUrl: "a:1", model: "m", updater: { ...updater, name } }).describe();
    await expect(asked("absent")).rejects.toMatchObject({ input: "updater" });
    await expect(asked("notAFunction")).rejects.toMatchObject({ input: "updater" });
    await expect(asked("createNothing")).rejects.toMatchObject({ input: "updater" });
    const nowhere = { baseUrl: "a:1", model: "m", updater: { path: "./nowhere.ts" } };
    await expect(new OpenAIPolicy(nowhere).describe()).rejects.toThrow("nowhere.ts");
  });
});

test("prompts are counted by a model's tokenizer and chat template, if they are given", async () => {
  const tokenizer = fileURLToPath(new URL("../../../../test/fixtures/tiny-model", import.meta.url));
  const policy = new OpenAIPolicy({ baseUrl: "a:1", model: "m", tokenizer });
  const [short, long] = await policy.promptLengths([
    [{ role: "user", content: "hello" }],
    [{ role: "user", content: "hello hello hello" }],
  ]);
  expect(short).toBeGreaterThan(0);
  expect(long).toBeGreaterThan(short!);
});

test("requests are checked", async () => {
  const policy = new OpenAIPolicy({ baseUrl: "a:1", model: "m" });
  const request = { prompts: questions(1), maxResponseLength: 9 };
  for (const [input, changes] of Object.entries({
    n: { n: 0 },
    maxResponseLength: { maxResponseLength: 0.5 },
  })) {
    await expect(answersOf(policy, { ...request, ...changes })).rejects.toMatchObject({ input });
  }
});

test("settings are checked", () => {
  const good = { baseUrl: "a:1", model: "m" };
  const bad: [string, OpenAIPolicySettings][] = [
    ["model", { ...good, model: "" }],
    ["baseUrl", { ...good, baseUrl: "" }],
    ["maxConcurrency", { ...good, maxConcurrency: 0 }],
    ["samplesPerRequest", { ...good, samplesPerRequest: 0.5 }],
    ["maxRetries", { ...good, maxRetries: 0 }],
  ];
  for (const [input, settings] of bad) {
    expect(() => new OpenAIPolicy(settings)).toThrow(expect.objectContaining({ input }));
  }
});
