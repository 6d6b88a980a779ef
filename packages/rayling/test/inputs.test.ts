/**
 * The files that `rayling score` reads: rollouts in the shapes they are written in, and clear
 * words for all
 * else.
 */

import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { writeParquet } from "@rayling/data-proto";
import type { RowKeys } from "@rayling/reward-loop/rows";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openSolutions } from "../src/cli/inputs/solutions.ts";
import type { SolutionSample } from "../src/cli/inputs/solutions.ts";
import { inProcess } from "./command.ts";
import { sized } from "../../../test/fixtures/suite.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-inputs-"));
  onTestFinished(() => rm(folder, { recursive: true }));
});

async function samplesOf(
  path: string,
  keys: RowKeys = {},
  allowNan = false,
): Promise<SolutionSample[]> {
  const { signal } = new AbortController();
  const { total, read } = await openSolutions(path, signal, { keys, allowNan });
  const samples = await Array.fromAsync(read());
  expect(samples).toHaveLength(total);
  return samples;
}

async function samplesOfRow(row: object, keys?: RowKeys): Promise<SolutionSample[]> {
  const path = join(folder, "rows.jsonl");
  await writeFile(path, `${JSON.stringify(row)}\n`);
  return await samplesOf(path, keys);
}

const user = { role: "user", content: "1 + 1?" };
const answer = { role: "assistant", content: "2" };
const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };

describe("rollouts are read in the shapes that they are written in", () => {
  test.each<[string, object, RowKeys, object[]]>([
    [
      "verl's rows",
      { response: "2", reward_model: { ground_truth: "2" }, prompt: [user] },
      {},
      [{ response: "2", groundTruth: "2", rawPrompt: [user], extraInfo: { question: "1 + 1?" } }],
    ],
    [
      "several of one prompt",
      { responses: ["2", "3"], ground_truth: "2" },
      {},
      [
        { response: "2", place: { index: 0, questionIndex: 0, solutionKey: "responses.0" } },
        { response: "3", place: { index: 1, questionIndex: 0, solutionKey: "responses.1" } },
      ],
    ],
    [
      "a length in tokens",
      { response: "2", response_length: 7, ground_truth: "2" },
      {},
      [{ response: "2", responseLength: 7 }],
    ],
    [
      "a length of each of several",
      { responses: ["2", "3"], response_length: [7, 0], ground_truth: "2" },
      {},
      [{ responseLength: 7 }, { responseLength: 0 }],
    ],
    [
      "verl's dumps",
      { input: "1 + 1?", output: "2", gts: "2", score: 1, step: 3 },
      {},
      [{ response: "2", groundTruth: "2", extraInfo: { question: "1 + 1?" } }],
    ],
    [
      "TRL's texts",
      { prompt: "1 + 1?", completion: "2", solution: "2" },
      {},
      [{ response: "2", groundTruth: "2", extraInfo: { question: "1 + 1?" } }],
    ],
    [
      "TRL's conversations",
      { prompt: [user], completion: [answer], answer: "2" },
      {},
      [{ response: "2", groundTruth: "2", rawPrompt: [user] }],
    ],
    [
      "chat messages",
      { messages: [user, answer], ground_truth: "2" },
      {},
      [{ response: "2", rawPrompt: [user], extraInfo: { question: "1 + 1?" } }],
    ],
    [
      "samples of lm-eval",
      {
        doc_id: 0,
        doc: { question: "1 + 1?" },
        target: "2",
        arguments: { gen_args_0: { arg_0: "Q: 1 + 1?", arg_1: {} } },
        resps: [["2", "3"]],
        filtered_resps: ["2"],
      },
      {},
      [
        { response: "2", groundTruth: "2", extraInfo: { question: "Q: 1 + 1?" } },
        { response: "3", place: { index: 1, questionIndex: 0, solutionKey: "resps.0.1" } },
      ],
    ],
    [
      "lm-eval of before",
      { target: "2", arguments: [["Q", {}]], resps: [["2"]] },
      {},
      [{ response: "2", extraInfo: { question: "Q" } }],
    ],
    [
      "keys of one's own",
      { doc: { q: "1 + 1?", gold: ["2"] }, out: ["2"], response: "not this" },
      { promptKey: "doc.q", responseKey: "out", truthKey: "doc.gold" },
      [{ response: "2", groundTruth: ["2"], extraInfo: { question: "1 + 1?" } }],
    ],
    [
      "a key with a dot",
      { "a.b": "2", gold: 2 },
      { responseKey: "a.b", truthKey: "gold" },
      [{ response: "2", groundTruth: 2 }],
    ],
    [
      "parts of texts",
      {
        messages: [user, { role: "assistant", content: [{ type: "text", text: "2" }] }],
        ground_truth: "2",
      },
      {},
      [{ response: "2" }],
    ],
    [
      "images",
      { prompt: [{ role: "user", content: [image] }], response: "2", ground_truth: "2" },
      {},
      [{ rawPrompt: [{ role: "user", content: [image] }] }],
    ],
    [
      "a ground truth of null within",
      { response: "2", reward_model: { ground_truth: null } },
      {},
      [{ groundTruth: null }],
    ],
  ])("%s", async (_name, row, keys, expected) => {
    expect(await samplesOfRow(row, keys)).toMatchObject(expected);
  });
});

describe("what is not understood is told with its line, the keys that there are, and the nearest", () => {
  test.each<[object | string, RowKeys, string]>([
    [
      { respnse: "2", ground_truth: "2" },
      {},
      'there are respnse, ground_truth; is it "respnse"? (--response-key names it)',
    ],
    [{ response: null, ground_truth: "2" }, {}, 'no response: "response" is null (--response-key'],
    [{ response: "2", ground_thruth: "2" }, {}, 'is it "ground_thruth"? (--truth-key names it)'],
    [
      { response: "2", gold: "2" },
      { truthKey: "golt" },
      '"golt" is missing; there are response, gold; is it "gold"?',
    ],
    [{ response: "2", ground_truth: "2" }, { promptKey: "doc.q" }, '"doc.q" is missing'],
    [{ response: "2", ground_truth: null }, {}, "there is no ground truth"],
    [{ output: "2", input: "q" }, {}, '"gts"'],
    [
      { messages: [user], ground_truth: "2" },
      {},
      '"messages" does not end with a text of the assistant, but with what user says',
    ],
    [
      { completion: [{ role: "assistant", content: [image] }], ground_truth: "2" },
      {},
      '"completion" does not end with a text',
    ],
    [{ responses: ["2", 3], ground_truth: "2" }, {}, '"responses.1" is not a text'],
    [{ resps: [[["-1.5", "False"]]], target: "2" }, {}, '"resps.0.0" is not a text'],
    [
      { response: "2", ground_truth: "2", prompt: 3 },
      {},
      '"prompt" is neither a text nor a list of { role, content }',
    ],
    [
      { response: "2", ground_truth: "2", response_length: 1.5 },
      {},
      '"response_length" is not a whole number of tokens, 0 or more, but 1.5',
    ],
    [
      { responses: ["2", "3"], ground_truth: "2", response_length: [1] },
      {},
      '"response_length" is not one number for each response, but 1 of them for 2 responses',
    ],
    [{}, {}, "there are no keys"],
    ['"text"', {}, "not an object"],
    ['{"response": "2", "ground_truth": NaN}', {}, "NaN is no JSON"],
  ])("%j", async (row, keys, reason) => {
    const path = join(folder, "rows.jsonl");
    await writeFile(path, `\n${typeof row === "string" ? row : JSON.stringify(row)}\n`);
    const reading = samplesOf(path, keys);
    await expect(reading).rejects.toMatchObject({ code: "CLI", exitCode: 2 });
    await expect(reading).rejects.toThrow(reason);
    await expect(reading).rejects.toThrow(`${path}:2: `);
  });
});

test("null in JSON means what it means in Parquet: nothing is said there", async () => {
  const row = {
    response: "2",
    ground_truth: "2",
    data_source: null,
    extra_info: null,
    prompt: null,
  };
  const path = join(folder, "rows.parquet");
  const columns = {
    response: "string",
    ground_truth: "string",
    data_source: "string",
    extra_info: "json",
    prompt: "json",
  } as const;
  await writeParquet(path, [row], { columns });
  expect(await samplesOf(path)).toEqual(await samplesOfRow(row));
});

test("a JSON array, packed or not, is its items; NaN is a number where it is asked for", async () => {
  const items =
    '[{"response": "2", "ground_truth": NaN},\n {"response": "3", "ground_truth": "3"}]';
  for (const [name, content] of [
    ["rows.json", items],
    ["rows.json.gz", gzipSync(items)],
  ] as const) {
    const path = join(folder, name);
    await writeFile(path, content);
    const samples = await samplesOf(path, {}, true);
    expect(samples.map(({ groundTruth }) => groundTruth)).toEqual([Number.NaN, "3"]);
    expect(samples.map(({ dataSource }) => dataSource)).toEqual(["rows", "rows"]);
    await expect(samplesOf(path)).rejects.toThrow("NaN is no JSON");
  }
  const path = join(folder, "short.json");
  await writeFile(path, '[{"response": "2", "ground_truth": "2"}, {"response": "3"}]');
  await expect(samplesOf(path)).rejects.toThrow(`${path}, row 1: there is no ground truth`);
});

test("prompts that differ in a number that no double can hold are two groups", async () => {
  const path = join(folder, "bigints.jsonl");
  const row = (id: string) =>
    `{"prompt": [{"role": "user", "content": "1 + 1?", "id": ${id}}], "response": "2", "ground_truth": "2"}`;
  const ids = ["12345678901234567891", "12345678901234567892", "12345678901234567891"];
  const texts = ['"12345678901234567891"', "1"];
  await writeFile(path, `${[...ids, ...texts].map(row).join("\n")}\n`);
  const samples = await samplesOf(path);
  const [first, second, third, text, small] = samples.map(({ context }) => context?.group);
  expect(third).toBe(first);
  expect(new Set([first, second, text, small]).size).toBe(4);
  // The name of a prompt without such numbers is the one that earlier runs were recorded with.
  const message = { role: "user", content: "1 + 1?", id: 1 };
  const digest = createHash("sha256")
    .update(JSON.stringify([message]))
    .digest("base64url");
  expect(small).toBe(digest.slice(0, 16));
  expect(samples[0]?.rawPrompt).toEqual([{ ...message, id: 12345678901234567891n }]);
});

describe("labels", () => {
  const of = (is_correct: unknown): object => ({ response: "2", ground_truth: "2", is_correct });

  test.each<[unknown, boolean | undefined]>([
    [true, true],
    [false, false],
    [1, true],
    [0, false],
    [null, undefined],
    [0.5, undefined],
    [-1, undefined],
    [2, undefined],
    ["yes", undefined],
    ["1", undefined],
    [{ by: "me" }, undefined],
  ])("of a column that nobody asked for: %j is %s", async (value, label) => {
    expect(await samplesOfRow(of(value))).toMatchObject([{ label }]);
    const answers = { question: "q", ground_truth: "g", a: { solution: "s", is_correct: value } };
    expect(await samplesOfRow(answers)).toMatchObject([{ label }]);
  });

  test("of several responses are read one by one", async () => {
    const row = {
      ...of([1, false, "no", 0]),
      responses: ["a", "b", "c", "d", "e"],
      response: undefined,
    };
    const labels = (await samplesOfRow(row)).map(({ label }) => label);
    expect(labels).toEqual([true, false, undefined, false, undefined]);
  });

  test("that are no number, or one that no number can hold", async () => {
    const path = join(folder, "rows.jsonl");
    for (const value of ["NaN", "12345678901234567890"]) {
      await writeFile(path, `{"response": "2", "ground_truth": "2", "is_correct": ${value}}\n`);
      expect(await samplesOf(path, {}, true)).toMatchObject([{ label: undefined }]);
    }
  });

  test.each(
    sized<readonly ("int32" | "double" | "boolean")[]>({
      gate: ["double"],
      full: ["int32", "double", "boolean"],
    }),
  )(
    "of a column of %s in Parquet, as pandas writes them, with a flag and without",
    async (type) => {
      const values = type === "boolean" ? [true, false] : [1, 0];
      const path = join(folder, "rows.parquet");
      const columns = { response: "string", ground_truth: "string", is_correct: type } as const;
      await writeParquet(path, values.map(of) as Record<string, unknown>[], { columns });
      expect((await samplesOf(path)).map(({ label }) => label)).toEqual([true, false]);
      const reward = join(folder, "reward.mjs");
      await writeFile(reward, "export const computeScore = () => 1;");
      const out = join(folder, "rewards.jsonl");
      const flags = [path, "--reward", reward, "--workers", "1", "--out", out];
      for (const named of [[], ["--label-key", "is_correct"]]) {
        expect(await inProcess("score", ...flags, ...named)).toMatchObject({ code: 0 });
        expect(await readFile(out, "utf8")).toMatch(/"label":(?:true|1),[^]*"label":(?:false|0),/);
      }
    },
  );
});

test("the command takes the keys, and scores a packed file with NaN", async () => {
  const [input, out] = [join(folder, "mine.jsonl.gz"), join(folder, "rewards.jsonl")];
  const line =
    '{"q": "1 + 1?", "said": "A: 2", "gold": {"n": "A: 2"}, "extra_info": {"logprob": NaN}}\n';
  await writeFile(input, gzipSync(line));
  const reward = join(folder, "reward.mjs");
  await writeFile(
    reward,
    "export const computeScore = ({ solutionStr, groundTruth, extraInfo }) => Number(solutionStr === groundTruth && extraInfo.question === '1 + 1?' && Number.isNaN(extraInfo.logprob));",
  );
  const keys = [
    "--prompt-key",
    "q",
    "--response-key",
    "said",
    "--truth-key",
    "gold.n",
    "--allow-nan",
  ];
  const flags = ["--reward", reward, "--out", out, "--workers", "1"];
  const { code, stderr } = await inProcess("score", input, ...flags, ...keys);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const record = JSON.parse(
    (await readFile(out, "utf8")).trim().split("\n").at(-1) ?? "",
  ) as unknown;
  expect(record).toMatchObject({ valid: true, score: 1 });
});
