/** Data sets of prompts: verl's rows are kept as they are, a bad one is named, and too long prompts are left out or cut. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { writeParquet } from "@rayling/data-proto";
import { describe, expect, test } from "vitest";
import { DatasetError, PromptDataset, TrainerInputError } from "../../src/index.ts";
import type { PromptDatasetOptions, PromptLengths } from "../../src/index.ts";
import { folder, jsonlFile, rowOf, rowsOf } from "./rows.ts";

/** A token is a character; the template adds two for each message. */
const promptLengths: PromptLengths = (prompts) =>
  prompts.map((prompt) =>
    prompt.reduce((sum, { content }) => sum + 2 + Array.from(content as string).length, 0),
  );

const refusal = async (run: Promise<unknown>): Promise<Error> => {
  const error: unknown = await run.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Error);
  return error as Error;
};

describe("rows", () => {
  test("come from several files in their order, as they are, with an identity over all of them", async () => {
    const extra = { ...rowOf(7), tools_kwargs: { a: [1, null] }, anything: "kept" };
    const files = [await jsonlFile(rowsOf(2)), await jsonlFile([extra])];
    const dataset = await PromptDataset.load(files);
    expect(dataset.rows.map(({ index }) => index)).toEqual([0, 1, 2]);
    expect(dataset.rows[2]).toEqual({
      index: 2,
      rawPrompt: [{ role: "user", content: "What is 7 + 1?" }],
      dataSource: "arithmetic",
      groundTruth: "8",
      extraInfo: { split: "train", index: 7 },
      ability: "math",
      columns: extra,
    });
  });

  test("come from Parquet as from JSON Lines, and are named by their number there", async () => {
    const columns = {
      data_source: "string",
      prompt: "json",
      ability: "string",
      reward_model: "json",
      extra_info: "json",
    } as const;
    const good = join(await folder(), "rows.parquet");
    await writeParquet(good, rowsOf(3), { columns });
    const { rows } = await PromptDataset.load(good);
    expect(rows).toEqual((await PromptDataset.fromRows(rowsOf(3))).rows);
    const bad = join(await folder(), "rows.parquet");
    await writeParquet(bad, [rowOf(0), { ...rowOf(1), prompt: [] }], { columns });
    const error = await refusal(PromptDataset.load([good, bad]));
    expect(error).toMatchObject({ code: "DATASET", path: bad, row: 1 });
    expect(error.message).toBe(`${bad}, row 1: prompt has no messages`);
  });

  test("come from a JSON array, and from files packed by gzip, as from JSON Lines", async () => {
    const { rows } = await PromptDataset.fromRows(rowsOf(3));
    const text = JSON.stringify(rowsOf(3), undefined, 1);
    const lines = rowsOf(3).map((row) => `${JSON.stringify(row)}\n`);
    for (const [name, content] of [
      ["rows.json", text],
      ["rows.json.gz", gzipSync(text)],
      ["rows.jsonl.gz", gzipSync(lines.join(""))],
    ] as const) {
      const path = join(await folder(), name);
      await writeFile(path, content);
      expect((await PromptDataset.load(path)).rows).toEqual(rows);
    }
    const bad = join(await folder(), "rows.json");
    await writeFile(bad, JSON.stringify([rowOf(0), 3]));
    const error = await refusal(PromptDataset.load(bad));
    expect(error).toMatchObject({ code: "DATASET", path: bad, row: 1 });
  });

  test("that are empty or packed under another name are said to be", async () => {
    const path = join(await folder(), "rows.jsonl");
    for (const [content, reason] of [
      ["", `${path}: it is empty`],
      [gzipSync("{}"), "compressed by gzip"],
      [Buffer.from("\ufeff{}", "utf16le"), "UTF-16"],
    ] as const) {
      await writeFile(path, content);
      expect((await refusal(PromptDataset.load(path))).message).toContain(reason);
    }
  });

  test("may have images in their messages, which stay as they are and are never cut", async () => {
    const content = [
      { type: "image", image: "data:image/png;base64,AA==" },
      { type: "text", text: "What is it?" },
    ];
    const prompt = [
      { role: "system", content: "0123456789" },
      { role: "user", content },
    ];
    const dataset = await PromptDataset.fromRows([{ ...rowOf(0), prompt }], {
      maxPromptLength: 5,
      promptLengths: (prompts) => prompts.map((one) => (one[0]!.content as string).length),
      truncation: "right",
    });
    expect(dataset.rows[0]?.rawPrompt).toEqual([
      { role: "system", content: "01234" },
      { role: "user", content },
    ]);
  });

  test("need no extra_info and no ability, and null is a ground truth", async () => {
    const bare = {
      q: [{ role: "user", content: "?" }],
      source: "own",
      reward_model: { ground_truth: null },
    };
    const dataset = await PromptDataset.fromRows([bare], {
      promptKey: "q",
      rewardFnKey: "source",
    });
    expect(dataset.rows[0]).toMatchObject({
      dataSource: "own",
      groundTruth: null,
      extraInfo: {},
      ability: undefined,
    });
  });

  test.each([
    [3, "a row must be an object of columns, not the number 3"],
    [{ ...rowOf(1), prompt: "" }, "prompt must be a list of { role, content } or a text"],
    [
      { ...rowOf(1), prompt: undefined, prompts: [] },
      '"prompt", "messages", "input", "arguments.0.0", "arguments.gen_args_0.arg_0" are missing; there are data_source, ability, reward_model, extra_info, prompts; is it "prompts"? (data.prompt_key names it)',
    ],
    [
      { ...rowOf(1), prompt: null },
      'there is no prompt: "prompt" is null (data.prompt_key names it)',
    ],
    [{ ...rowOf(1), prompt: [] }, "prompt has no messages"],
    [{ ...rowOf(1), prompt: ["text"] }, "prompt[0] must be { role, content }"],
    [
      { ...rowOf(1), prompt: [{ role: "user", content: [{}] }] },
      "prompt[0].content[0] must be { type, ... }, not an object",
    ],
    [
      { ...rowOf(1), prompt: [{ role: "user", content: [{ type: "text" }] }] },
      "prompt[0].content[0].text must be a text, not missing",
    ],
    [{ ...rowOf(1), prompt: [{ role: "user", content: [] }] }, "prompt[0].content has no parts"],
    [
      { ...rowOf(1), prompt: [{ role: "user", content: 3 }] },
      "prompt[0].content must be a text or a list of { type, ... }, not the number 3",
    ],
    [
      { ...rowOf(1), data_source: undefined, data_sourc: "x" },
      "data_source must be a text, not missing (there are prompt, ability, reward_model, extra_info, data_sourc; is it data_sourc?)",
    ],
    [
      { ...rowOf(1), reward_model: 3 },
      "reward_model must be { ground_truth, ... }, not the number 3",
    ],
    [{ ...rowOf(1), reward_model: null }, '"reward_model.ground_truth", "ground_truth", "gts"'],
    [{ messages: [{ role: "assistant", content: "2" }], answer: "2" }, "messages has no messages"],
    [
      { input: "user\n1 + 1?\nassistant\n", gts: "2" },
      '"input" is a conversation that a chat template has written out',
    ],
    [{ arguments: [["<|im_start|>user"]], target: "2" }, '"arguments.0.0" is a conversation that'],
    ['{"prompt": "1 + 1?", "answer": NaN}', "NaN is no JSON"],
    [{ ...rowOf(1), reward_model: {} }, "reward_model.ground_truth is missing"],
    [{ ...rowOf(1), extra_info: "x" }, "extra_info must be an object, not the string 'x'"],
    [{ ...rowOf(1), ability: 4 }, "ability must be a text, not the number 4"],
    ['{"data_source": ', "not valid JSON"],
  ])("%j is refused with file, line and reason", async (bad, reason) => {
    const path = await jsonlFile([rowOf(0), "", bad, rowOf(2)]);
    const error = await refusal(PromptDataset.load(path));
    expect(error).toBeInstanceOf(DatasetError);
    expect(error).toMatchObject({ code: "DATASET", path, line: 3 });
    expect(error.message).toContain(`${path}:3: `);
    expect(error.message).toContain(reason);
  });

  test("from memory are named by their number", async () => {
    const error = await refusal(PromptDataset.fromRows([rowOf(0), null]));
    expect(error).toMatchObject({ row: 1 });
    expect(error.message).toBe("row 1: a row must be an object of columns, not null");
  });

  test.each([
    ["/no/such/rows.jsonl", /^\/no\/such\/rows\.jsonl: ENOENT/],
    ["/no/such/rows.parquet", /^\/no\/such\/rows\.parquet: ENOENT/],
    ["rows.csv", /^rows\.csv: its format is told by its name, which must end in \.parquet/],
  ])("%s cannot be read", async (path, message) => {
    const error = await refusal(PromptDataset.load(path));
    expect(error).toBeInstanceOf(DatasetError);
    expect(error.message).toMatch(message);
  });

  test("of no file at all are refused", async () => {
    expect((await refusal(PromptDataset.load([]))).message).toBe("there are no data files");
  });
});

const asked = { role: "user", content: "1 + 1?" };
const answer = { role: "assistant", content: "2" };

describe("rows that are not verl's", () => {
  test.each<[string, object, PromptDatasetOptions, string, string]>([
    ["TRL's texts", { prompt: "1 + 1?", completion: "3", solution: "2" }, {}, "prompt", "solution"],
    ["TRL's conversations", { prompt: [asked], answer: "2" }, {}, "prompt", "answer"],
    ["chats with an answer", { messages: [asked, answer], answer: "2" }, {}, "messages", "answer"],
    ["chats without", { messages: [asked], ground_truth: "2" }, {}, "messages", "ground_truth"],
    ["dumps", { input: "1 + 1?", output: "3", gts: "2", score: 0 }, {}, "input", "gts"],
    [
      "samples of lm-eval",
      { arguments: { gen_args_0: { arg_0: "1 + 1?" } }, resps: [["3"]], target: "2" },
      {},
      "arguments.gen_args_0.arg_0",
      "target",
    ],
    [
      "keys of one's own",
      { prompt: "not this", doc: { q: "1 + 1?", gold: "2" }, answer: "3" },
      { promptKey: "doc.q", truthKey: "doc.gold" },
      "doc.q",
      "doc.gold",
    ],
  ])("%s are read, without answers", async (_name, row, options, prompt, groundTruth) => {
    const path = await jsonlFile([row, row]);
    const { rows, shapes } = await PromptDataset.load(path, options);
    expect(rows[1]).toEqual({
      index: 1,
      rawPrompt: [asked],
      dataSource: "rows",
      isSourceAssumed: true,
      groundTruth: "2",
      extraInfo: {},
      ability: undefined,
      columns: row,
    });
    expect(shapes).toEqual([{ prompt, groundTruth, assumedSource: "rows", rows: 2 }]);
  });

  test("may stand among verl's, and are counted by where they have what they say", async () => {
    const chat = { messages: [asked], data_source: "own", answer: "2" };
    const { shapes } = await PromptDataset.fromRows([rowOf(0), chat, rowOf(1)]);
    expect(shapes).toEqual([
      {
        prompt: "prompt",
        groundTruth: "reward_model.ground_truth",
        assumedSource: undefined,
        rows: 2,
      },
      { prompt: "messages", groundTruth: "answer", assumedSource: undefined, rows: 1 },
    ]);
  });

  test("name their source in memory, where there is no file, and under a key that was given", async () => {
    const row = { prompt: "1 + 1?", answer: "2" };
    expect((await refusal(PromptDataset.fromRows([row]))).message).toContain("data_source must be");
    const load = PromptDataset.load(await jsonlFile([row]), { rewardFnKey: "source" });
    expect((await refusal(load)).message).toContain("source must be a text, not missing");
  });

  test("have another fingerprint with another ground truth; verl's have theirs from before", async () => {
    const row = { prompt: "1 + 1?", data_source: "own", answer: "2", gold: "3" };
    const print = async (one: object, options: PromptDatasetOptions = {}): Promise<string> =>
      (await PromptDataset.fromRows([one], options)).fingerprint;
    expect(await print(row)).not.toBe(await print(row, { truthKey: "gold" }));
    const named = { truthKey: "reward_model.ground_truth" };
    expect(await print(rowOf(0), named)).toBe(await print(rowOf(0)));
    expect(await print(rowOf(0))).toBe(
      "d54910804b486c156265d7eb88f9d94e5cd9acfbc3f58af5f17e83e6b43cb071",
    );
    const nan = { ...row, n: Number.NaN };
    expect(await print(nan)).not.toBe(await print({ ...row, n: null }));
  });

  test("may have NaN where it is asked for, also in a packed array", async () => {
    const path = join(await folder(), "rows.json.gz");
    await writeFile(path, gzipSync('[{"prompt": "1 + 1?", "answer": NaN}]'));
    expect((await PromptDataset.load(path, { allowNan: true })).rows[0]?.groundTruth).toBe(NaN);
    expect(await refusal(PromptDataset.load(path))).toMatchObject({ code: "DATASET", path });
  });
});

describe("maxSamples", () => {
  const indices = async (options: PromptDatasetOptions): Promise<readonly number[]> =>
    (await PromptDataset.fromRows(rowsOf(100), options)).rows.map(({ index }) => index);

  test("takes the first without shuffle, and all with -1 or more than there are", async () => {
    expect(await indices({ maxSamples: 3, shuffle: false })).toEqual([0, 1, 2]);
    expect(await indices({ maxSamples: -1 })).toHaveLength(100);
    expect(await indices({ maxSamples: 101 })).toHaveLength(100);
  });

  test("takes those that the seed chooses, in the order of the file, under their own numbers", async () => {
    const chosen = await indices({ maxSamples: 10, seed: 3 });
    expect(chosen).toEqual([...new Set(chosen)].toSorted((a, b) => a - b));
    expect(chosen).toHaveLength(10);
    expect(await indices({ maxSamples: 10, seed: 3 })).toEqual(chosen);
    expect(await indices({ maxSamples: 10, seed: 4 })).not.toEqual(chosen);
  });

  test.each([0, -2, 1.5])("%d is refused", async (maxSamples) => {
    expect(await refusal(indices({ maxSamples }))).toMatchObject({ input: "maxSamples" });
  });
});

describe("long prompts", () => {
  const rows = [rowOf(0, "short"), rowOf(1, "0123456789"), rowOf(2, "fits___8")];
  const load = async (options: PromptDatasetOptions): Promise<PromptDataset> =>
    await PromptDataset.fromRows(rows, { promptLengths, maxPromptLength: 10, ...options });
  const contents = (dataset: PromptDataset): unknown[] =>
    dataset.rows.map(({ rawPrompt }) => rawPrompt[0]?.content);

  test("are left out, counted, and the others keep their numbers", async () => {
    const dataset = await load({ filterOverlongPrompts: true });
    expect(dataset.rows.map(({ index }) => index)).toEqual([0, 2]);
    expect(dataset.overlong).toBe(1);
  });

  test("are an error that names the first", async () => {
    const error = await refusal(load({}));
    expect(error).toBeInstanceOf(DatasetError);
    expect(error.message).toMatch(/row 1 has more than 10 tokens, as 1 of 3 have/);
  });

  test.each([
    ["left", "23456789"],
    ["right", "01234567"],
    ["middle", "01236789"],
  ] as const)("are cut on the %s, by as little as it takes", async (truncation, content) => {
    const dataset = await load({ truncation });
    expect(contents(dataset)).toEqual(["short", content, "fits___8"]);
    // What was read is still there.
    expect(dataset.rows[1]?.columns).toEqual(rows[1]);
  });

  test("are cut in their longest message, and no character in two", async () => {
    const prompt = [
      { role: "system", content: "be brief" },
      { role: "user", content: "😀😀😀😀😀😀😀😀😀" },
      { role: "assistant", content: "ok" },
    ];
    const dataset = await PromptDataset.fromRows([{ ...rowOf(0), prompt }], {
      promptLengths,
      maxPromptLength: 20,
      truncation: "right",
    });
    expect(dataset.rows[0]?.rawPrompt.map(({ content }) => content)).toEqual([
      "be brief",
      "😀😀😀😀",
      "ok",
    ]);
  });

  test("that do not fit even with a character of it are refused", async () => {
    const error = await refusal(load({ maxPromptLength: 1, truncation: "left" }));
    expect(error.message).toMatch(
      /row 0 has more than 1 tokens even with a single character of its longest message/,
    );
  });

  test("are cut where the policy refuses an empty prompt", async () => {
    const dataset = await load({
      maxPromptLength: 3,
      truncation: "right",
      promptLengths: (prompts) =>
        prompts.map(([message]) => {
          const length = JSON.stringify(message?.content).length - 2;
          if (length === 0) throw new RangeError("a prompt must have at least one character");
          return length + 2;
        }),
    });
    expect(contents(dataset)).toEqual(["s", "0", "f"]);
  });

  test("cannot be found without a function that counts, or without a limit", async () => {
    const bare = PromptDataset.fromRows(rows, { maxPromptLength: 3 });
    expect(await refusal(bare)).toBeInstanceOf(TrainerInputError);
    const endless = PromptDataset.fromRows(rows, { filterOverlongPrompts: true });
    expect(await refusal(endless)).toMatchObject({ input: "maxPromptLength" });
    const wrong = PromptDataset.fromRows(rows, { maxPromptLength: 3, promptLengths: () => [1] });
    expect((await refusal(wrong)).message).toBe("promptLengths gave 1 lengths for 3 prompts");
  });
});

test("an option that there is not is refused before a file is read, with the one it may be", async () => {
  const dataset = await PromptDataset.fromRows(rowsOf(1));
  const loads = [
    ["load", "maxSample", PromptDataset.load("no-such.jsonl", { maxSample: 1 } as never)],
    ["fromRows", "promptkey", PromptDataset.fromRows([], { promptkey: "q" } as never)],
    ["limited", "truncaton", dataset.limited({ truncaton: "left" } as never)],
  ] as const;
  for (const [where, input, load] of loads) {
    const error = await refusal(load);
    expect(error).toBeInstanceOf(TrainerInputError);
    expect(error).toMatchObject({ input });
    expect(error.message).toMatch(
      new RegExp(
        `${where} has no option "${input}"; did you mean (maxSamples|promptKey|truncation)`,
      ),
    );
  }
});

test("the fingerprint is that of the rows", async () => {
  const of = async (rows: object[], options: PromptDatasetOptions = {}): Promise<string> =>
    (await PromptDataset.fromRows(rows, options)).fingerprint;
  expect(await of(rowsOf(5))).toBe(await of(rowsOf(5)));
  expect(await of(rowsOf(5))).not.toBe(await of(rowsOf(6)));
  expect(await of(rowsOf(5))).not.toBe(await of(rowsOf(5).toReversed()));
  expect(await of(rowsOf(5))).not.toBe(await of(rowsOf(5), { maxSamples: 4 }));
  expect(await of([{ ...rowOf(0), big: 2n ** 60n }])).not.toBe(await of([rowOf(0)]));
});
