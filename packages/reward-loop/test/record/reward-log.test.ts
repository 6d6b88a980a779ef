/** The reward log: what is written, what counts of it, and what a kill leaves. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { appendFile, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  olderSampleKeys,
  outcomeOf,
  outcomesIn,
  readRewardLog,
  RecordedPlaces,
  RewardLog,
  rewardReport,
  sampleKey,
  usageOf,
} from "@rayling/reward-loop";
import type { RewardRecord, SampleOutcome } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { setImmediate as turn } from "node:timers/promises";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { OutcomeRecorder } from "../../src/record/outcome-recorder.ts";
import { countedRecords } from "../../src/record/records-with-parts.ts";
import { RecordedOutcomes } from "../../src/record/replayed-outcomes.ts";
import { recordsOf } from "../../src/record/reward-record.ts";
import { WriterMark } from "../../src/record/writer-mark.ts";
import { groupKeys } from "../../src/sample/sample-key.ts";
import { withPlainHandles } from "../../../../test/fixtures/plain-handles.ts";

let path = "";
beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-log-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  path = join(folder, "rewards.jsonl");
});

function fail(): never {
  throw new Error("it cannot be read");
}

const sample: RewardSample = {
  dataSource: "d",
  response: "r",
  groundTruth: "g",
  extraInfo: { uid: "group-1" },
};
const valid = (score: number): SampleOutcome => ({
  valid: true,
  rewardScore: score,
  rewardExtraInfo: { score, usage: { prompt_tokens: 7, completion_tokens: 3 } },
  latencyMs: 1.23456,
  attempts: 2,
  waitedMs: 10,
});
const refused: SampleOutcome = {
  valid: false,
  error: { code: "SCORE_THREW", name: "EndpointError", message: "busy", status: 429 },
  latencyMs: 5,
  attempts: 3,
  waitedMs: 0,
};
const place = { index: 4, lane: "training", version: "v1" };

test("a line says all that is to know of an outcome, and gives it back", async () => {
  await using log = await RewardLog.open(path);
  const written = await log.write(sample, valid(1), place, { question: 9 });
  await log.write(sample, refused, { ...place, index: 5 });
  expect(log.records).toBe(2);
  await log.close();
  const records = await Array.fromAsync(readRewardLog(path));
  expect(records[0]).toEqual(written);
  expect(records[0]).toMatchObject({
    question: 9,
    index: 4,
    sample: sampleKey(sample),
    group: "group-1",
    version: "v1",
    lane: "training",
    valid: true,
    score: 1,
    error: null,
    errorClass: null,
    latencyMs: 1.235,
    cost: null,
    cached: false,
    usage: { inputTokens: 7, outputTokens: 3, totalTokens: 10 },
  });
  expect(records[1]).toMatchObject({ valid: false, score: null, errorClass: "rate-limit" });
  expect(records.map(outcomeOf)).toEqual([
    { ...valid(1), latencyMs: 1.235, version: "v1" },
    { ...refused, version: "v1" },
  ]);
});

describe("a line keeps of its sample", () => {
  const textsOfLine = async (more: object, options = {}): Promise<unknown> => {
    await using log = await RewardLog.open(path, options);
    await log.write({ ...sample, ...more }, valid(1), place);
    await log.close();
    const [record] = await Array.fromAsync(readRewardLog(path));
    const { prompt, response, groundTruth, textsDropped } = record as RewardRecord;
    return { prompt, response, groundTruth, textsDropped };
  };
  const long = "x".repeat(2000);

  test.each<[string, object, object]>([
    ["a text", {}, { prompt: null, response: "r", groundTruth: "g" }],
    ["the question", { extraInfo: { question: "why?" } }, { prompt: "why?" }],
    ["the prompt that a data set names", { extraInfo: { prompt: "why?" } }, { prompt: "why?" }],
    [
      "the conversation, without its pictures",
      {
        rawPrompt: [
          { role: "system", content: "be short" },
          {
            role: "user",
            content: [
              { type: "image", image: new Uint8Array(9) },
              { type: "text", text: "what is it?" },
              7,
            ],
          },
          { role: "tool", content: null },
        ],
      },
      {
        prompt: [
          { role: "system", content: "be short" },
          { role: "user", content: "[image]\nwhat is it?\n[?]" },
          { role: "tool", content: "" },
        ],
      },
    ],
    ["token ids", { response: Int32Array.of(1, 2) }, { response: [1, 2] }],
    ["what is no response", { response: undefined }, { response: null }],
    ["a conversation that is none", { rawPrompt: 7 }, { prompt: null }],
    ["a truth that is an object", { groundTruth: { a: [1] } }, { groundTruth: { a: [1] } }],
    ["a truth that is long", { groundTruth: long }, { groundTruth: null, response: "r" }],
    ["a truth that JSON has no number for", { groundTruth: 1n }, { groundTruth: "1" }],
  ])("%s", async (_, more, kept) => {
    expect(await textsOfLine(more)).toMatchObject(kept);
  });

  test("nothing, where that is asked for", async () => {
    const nothing = { prompt: undefined, response: undefined, groundTruth: undefined };
    expect(await textsOfLine({}, { texts: false })).toMatchObject(nothing);
  });

  test("its score, where a line would be longer than readers take", async () => {
    const { textsDropped, response } = (await textsOfLine({
      response: "x".repeat(64 * 1024 * 1024),
    })) as RewardRecord;
    expect(response).toBeUndefined();
    expect(textsDropped).toMatch(/is longer than 67108864 bytes/);
  });
});

test("of several lines for one index the last valid one counts, and a line that was cut off does not", async () => {
  {
    await using log = await RewardLog.open(path);
    await log.write(sample, refused, place);
    await log.write(sample, valid(1), place);
    await log.write(sample, refused, place);
    await log.write(sample, refused, { ...place, index: 7 });
    await log.write(sample, valid(0), { ...place, index: 8 });
  }
  const text = await readFile(path, "utf8");
  await writeFile(path, text.slice(0, -20));
  {
    await using log = await RewardLog.open(path, { append: true });
    await log.write(sample, valid(0.5), { ...place, index: 9 });
  }
  const counted = [...(await outcomesIn(path)).values()];
  expect(counted.map(({ index, valid: isValid, score }) => [index, isValid, score])).toEqual([
    [4, true, 1],
    [7, false, null],
    [9, true, 0.5],
  ]);
});

test("what JSON cannot carry is a text, and costs nothing but itself; it is told once", async () => {
  const told: string[] = [];
  const onWarning = ({ message }: Error): void => void told.push(message);
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  await using log = await RewardLog.open(path);
  const circle: Record<string, unknown> = { a: 1 };
  circle["self"] = circle;
  const unreadable = Object.defineProperty({}, "x", {
    enumerable: true,
    get: () => {
      throw new Error("mine");
    },
  });
  const rewardExtraInfo = {
    score: 1,
    reason: "it is right",
    logprob: -Infinity,
    deep: [{ nan: Number.NaN, fine: [1, null, "x"] }],
    count: 12345678901234567890n,
    floats: Float32Array.from([1, Infinity]),
    at: new Date(0),
    when: new Date(Number.NaN),
    map: new Map([["a", 1]]),
    error: new RangeError("out"),
    circle,
    unreadable,
    nothing: undefined,
  };
  await log.write(sample, { ...valid(1), rewardExtraInfo } as SampleOutcome, place);
  await log.write(sample, { ...valid(1), rewardExtraInfo } as SampleOutcome, place);
  await log.close();
  const [record] = await Array.fromAsync(readRewardLog(path));
  expect(record).toMatchObject({
    score: 1,
    extra: {
      score: 1,
      reason: "it is right",
      logprob: "-Infinity",
      deep: [{ nan: "NaN", fine: [1, null, "x"] }],
      count: "12345678901234567890",
      floats: [1, "Infinity"],
      at: "1970-01-01T00:00:00.000Z",
      when: "Invalid Date",
      map: "Map(1) { 'a' => 1 }",
      error: expect.stringContaining("RangeError: out") as string,
      circle: { a: 1, self: expect.stringContaining("Circular") as string },
      unreadable: expect.any(String) as string,
    },
  });
  const names = ["logprob", "deep.0.nan", "count", "floats.1", "when", "map", "error"];
  const places = [...names, "circle.self", "unreadable"].map((name) => `$.extra.${name}`);
  expect(record?.asText).toEqual(places);
  expect(outcomeOf(record as NonNullable<typeof record>)).toMatchObject({
    valid: true,
    rewardScore: 1,
    rewardExtraInfo: { reason: "it is right", logprob: "-Infinity" },
  });
  await turn();
  expect(told).toEqual([expect.stringContaining("$.extra.logprob is -Infinity") as string]);
});

test.each([
  [2n ** 60n, "1152921504606846976", ["$.groundTruth"]],
  [
    { a: [1n, 2], b: -Infinity },
    { a: ["1", 2], b: "-Infinity" },
    ["$.groundTruth.a.0", "$.groundTruth.b"],
  ],
  [new Map([["a", 1]]), "Map(1) { 'a' => 1 }", ["$.groundTruth"]],
  [Uint8Array.of(1, 2), [1, 2], undefined],
  [undefined, null, undefined],
  ["x".repeat(2000), null, undefined],
])("a ground truth that JSON cannot carry is kept as text (%#)", async (truth, kept, asText) => {
  await using log = await RewardLog.open(path);
  await log.write({ ...sample, groundTruth: truth }, valid(1), place);
  await log.close();
  const [record] = await Array.fromAsync(readRewardLog(path));
  expect([record?.groundTruth, record?.asText, record?.response]).toEqual([kept, asText, "r"]);
});

test("a line that is no record is named", async () => {
  await using log = await RewardLog.open(path);
  const told = { code: "CANNOT_TELL", name: "CannotTellError", message: "it cannot tell" } as const;
  const unsure: SampleOutcome = {
    ...refused,
    error: { ...told, rewardExtraInfo: { count: 10n } },
  };
  await log.write(sample, valid(1), place);
  expect(await log.write(sample, unsure, { ...place, index: 5 })).toMatchObject({
    score: null,
    extra: { count: "10" },
    error: { rewardExtraInfo: { count: "10" } },
  });
  await log.close();
  const [, kept] = await Array.fromAsync(readRewardLog(path));
  expect(kept).toMatchObject({ valid: false, extra: { count: "10" }, error: told });
  const before = await readFile(path, "utf8");
  const whole = { ...kept, index: 1 };
  for (const wrong of [
    { index: 1 },
    { ...whole, at: "yesterday" },
    { ...whole, version: undefined },
    { ...whole, latencyMs: null },
    { ...whole, extra: null },
    { ...whole, error: "boo" },
    { ...whole, valid: true },
  ]) {
    await writeFile(path, `${before}${JSON.stringify(wrong)}\n`);
    await expect(outcomesIn(path)).rejects.toThrow(`${path}:3: the line is no record of a reward.`);
  }
});

test("a log under gzip that was cut off in its first line is a log without records", async () => {
  const packed = `${path}.gz`;
  {
    await using log = await RewardLog.open(packed);
    await log.write(sample, valid(1), place);
  }
  const whole = await readFile(packed);
  for (const bytes of [0, 12, 60, whole.length - 40]) {
    await writeFile(packed, whole.subarray(0, bytes));
    const read = () => Array.fromAsync(readRewardLog(packed));
    expect(await withPlainHandles(read)).toEqual([]);
  }
});

test("a file of something else is no empty log, and nothing is written behind it", async () => {
  for (const text of [
    "export const one = 1;\nexport const two = 2;\n",
    "PAR1",
    '{\n  "a": 1\n}\n',
  ]) {
    await writeFile(path, text);
    await expect(outcomesIn(path)).rejects.toMatchObject({ code: "REWARD_LOG", path, line: 1 });
    await expect(OutcomeRecorder.open(path)).rejects.toMatchObject({ code: "REWARD_LOG" });
    expect(await readFile(path, "utf8")).toBe(text);
  }
  // Killed while it wrote its first line, in the middle of a character.
  await writeFile(path, Buffer.from('{"question": "é').subarray(0, -1));
  expect(await outcomesIn(path)).toEqual(new Map());
});

describe("a log has one writer", () => {
  test("in this process; another one is refused until it is closed", async () => {
    const log = await RewardLog.open(path);
    await log.write(sample, valid(1), place);
    const busy = { code: "REWARD_LOG_BUSY", path, pid: process.pid };
    await expect(OutcomeRecorder.open(path)).rejects.toMatchObject(busy);
    await expect(RewardLog.open(path)).rejects.toMatchObject(busy);
    // By another name.
    const link = `${path}.link`;
    await symlink(path, link);
    await expect(RewardLog.open(link)).rejects.toMatchObject({ code: "REWARD_LOG_BUSY" });
    // One whose name begins with its name is another one.
    const other = await RewardLog.open(`${path}.bak`);
    await log.close();
    expect((await outcomesIn(path)).size).toBe(1);
    const recorder = await OutcomeRecorder.open(path);
    expect(recorder.take(sample).index).toBe(place.index + 1);
    await expect(RewardLog.open(`${path}.bak`)).rejects.toMatchObject({ code: "REWARD_LOG_BUSY" });
    await recorder.close();
    await other.close();
    await writeFile(path, "no log\n");
    await expect(OutcomeRecorder.open(path)).rejects.toMatchObject({ code: "REWARD_LOG" });
    const files = ["rewards.jsonl", "rewards.jsonl.bak", "rewards.jsonl.link"];
    expect((await readdir(dirname(path))).toSorted()).toEqual(files);
  });

  test.each([
    ["by a link to a file that is not there yet", "link.jsonl", "elsewhere.jsonl"],
    ["with the longest name of a file", `${"é".repeat(124)}.jsonl`, undefined],
  ])("%s", async (_, name, target) => {
    const log = join(dirname(path), name);
    const other = target === undefined ? log : join(dirname(path), target);
    if (target !== undefined) await symlink(target, log);
    const first = await RewardLog.open(log, { append: true });
    for (const one of [log, other]) {
      await expect(RewardLog.open(one, { append: true })).rejects.toMatchObject({
        code: "REWARD_LOG_BUSY",
      });
    }
    await first.close();
    await (await RewardLog.open(other, { append: true })).close();
    expect((await readdir(dirname(path))).filter((one) => one.startsWith("."))).toEqual([]);
  });

  // No user can create a file there.
  test.runIf(existsSync("/proc/version"))("in a folder that takes no files", async () => {
    const mark = await WriterMark.put("/proc/version");
    await expect(WriterMark.put("/proc/version")).rejects.toMatchObject({
      code: "REWARD_LOG_BUSY",
      pid: process.pid,
    });
    await mark.remove();
    await (await WriterMark.put("/proc/version")).remove();
  });

  test("in another process, and no longer than that lives", async () => {
    const source = `
      import { RewardLog } from "@rayling/reward-loop";
      await RewardLog.open(process.argv[1]);
      process.send("open");
      setInterval(() => undefined, 1000);`;
    const flags = ["--input-type=module", "--eval", source, path];
    const child = spawn(process.execPath, flags, {
      cwd: import.meta.dirname,
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const ended = once(child, "exit");
    await once(child, "message");
    await expect(RewardLog.open(path)).rejects.toMatchObject({
      code: "REWARD_LOG_BUSY",
      pid: child.pid,
    });
    child.kill("SIGKILL");
    await ended;
    const log = await RewardLog.open(path, { append: true });
    await log.close();
  });
});

test("the report's times are those of calls, also over time", async () => {
  {
    await using log = await RewardLog.open(path);
    await log.write(sample, { ...valid(1), latencyMs: 30 }, place);
    const unpaid = { code: "SPEND_CAP", name: "SpendCapError", message: "all is spent" } as const;
    const nothing = { latencyMs: 0, attempts: 0, waitedMs: 0 };
    for (let index = 5; index < 9; index++) {
      await log.write(sample, { valid: false, error: unpaid, ...nothing }, { ...place, index });
    }
  }
  const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
  const aSecondEach = lines.map((line, second) =>
    JSON.stringify({ ...JSON.parse(line), at: new Date(1000 * second).toISOString() }),
  );
  await writeFile(path, `${aSecondEach.join("\n")}\n`);
  const { latencyMs, timeline } = await rewardReport(path);
  expect(latencyMs.p50).toBe(30);
  const told = timeline.map(({ latencyP50Ms }) => latencyP50Ms);
  expect(new Set(told.filter((one) => one !== null))).toEqual(new Set([30]));
});

test("a part whose whole was not written is a cost of the report, and no sample", async () => {
  const parts = (b: SampleOutcome): SampleOutcome => ({
    ...valid(3),
    components: { a: { ...valid(1), cost: 1 }, b },
  });
  const log = await RewardLog.open(path);
  await log.write(sample, parts(valid(5)), place);
  await log.close();
  const [a = "", b = ""] = (await readFile(path, "utf8")).split("\n");
  // Killed before the whole: the sample is scored again in its place, and another in one of its own.
  await writeFile(path, `${a}\n${b}\n${a.replace('"index":4', '"index":9')}\n`);
  await using again = await RewardLog.open(path, { append: true });
  await again.write(sample, parts(valid(2)), place);
  await again.close();
  const { samples, components } = await rewardReport(path);
  expect(samples).toBe(1);
  expect(components).toMatchObject([
    { name: "a", samples: 1, meanScore: 1, cost: 3 },
    { name: "b", samples: 1, meanScore: 2 },
  ]);
  const counted = await Array.fromAsync(countedRecords(path, "counted"));
  expect(counted.map(({ component, score }) => [component, score])).toEqual([
    ["a", 1],
    ["b", 2],
    [null, 3],
  ]);
});

test("the report counts no tokens of samples that an earlier release has written as cached", async () => {
  await using log = await RewardLog.open(path);
  await log.write(sample, valid(1), place);
  const line = await log.write(
    sample,
    { ...valid(1), attempts: 0, cached: true },
    { ...place, index: 5 },
  );
  await log.close();
  expect(line.usage).toBeNull();
  const before = { ...line, index: 6, usage: { inputTokens: 7, outputTokens: 3, totalTokens: 10 } };
  await appendFile(path, `${JSON.stringify(before)}\n`);
  expect((await rewardReport(path)).tokens).toEqual({ input: 7, output: 3 });
});

describe("which sample it is", () => {
  test("hangs on what is scored, and not on the order of keys or the kind of list", () => {
    const ids = { ...sample, response: [1, 2, 300] };
    expect(sampleKey({ ...ids, response: Int32Array.of(1, 2, 300) })).toBe(sampleKey(ids));
    const [one, other] = [
      { ...sample, extraInfo: { a: { x: 1, y: [2] }, b: 10n } },
      { ...sample, extraInfo: { b: 10n, a: { y: [2], x: 1 } } },
    ];
    expect(sampleKey(one)).toBe(sampleKey(other));
    const keys = [
      sample,
      ids,
      one,
      { ...sample, groundTruth: null },
      { ...sample, dataSource: "e" },
      { ...sample, numTurns: 2 },
      { ...sample, responseLength: 2 },
      { ...sample, responseLength: 3 },
      { ...sample, rawPrompt: [{ role: "user", content: "1 + 1?" }] },
      { ...sample, rawPrompt: [{ role: "user", content: "1 + 2?" }] },
      { ...sample, toolExtraFields: { a: 1 } },
      { ...sample, rolloutRewardScores: { a: 1 } },
      { ...ids, response: [1, 2, 301] },
      { ...sample, extraInfo: { uid: "p1" } },
      { ...sample, extraInfo: { uid: "p2" } },
      { ...sample, extraInfo: { group_uid: "p1" } },
      { ...sample, extraInfo: { group_uid: "p2" }, context: { group: "p2" } },
    ].map(sampleKey);
    expect(new Set(keys).size).toBe(keys.length);
  });

  test("does not hang on the name of a group that a request has added", () => {
    const added = (name: string): RewardSample => ({
      ...sample,
      extraInfo: { group_uid: name, more: 1 },
      isGroupAdded: true,
      context: { group: name },
    });
    expect(sampleKey(added("a"))).toBe(sampleKey(added("b")));
    expect(sampleKey(added("a"))).toBe(sampleKey({ ...sample, extraInfo: { more: 1 } }));
    expect(olderSampleKeys(added("a"))).toEqual([]);
    // Before the length of a text was read from masks and rows.
    const counted = { ...added("a"), responseLength: 7 };
    expect(sampleKey(counted)).not.toBe(sampleKey(added("a")));
    expect(olderSampleKeys(counted)).toEqual([sampleKey(added("a"))]);
  });

  describe("in a log of an earlier release, whose keys left out uid and group_uid,", () => {
    const bare = { ...sample, extraInfo: { more: 1 } };
    const of = (name: "uid" | "group_uid", value: unknown, own = {}): RewardSample => ({
      ...sample,
      extraInfo: { more: 1, [name]: value },
      ...own,
    });
    /** A line as that release wrote it. */
    const line = (index: number, group: string | null): RewardRecord => {
      const at = new Date(0);
      const [record] = recordsOf(bare, valid(index), { ...place, index, at });
      if (record === undefined) throw new Error("no line");
      return { ...record, group };
    };
    const lines = [line(1, "p1"), line(2, "p2"), line(3, null)];

    test.each<[string, RewardSample, number | undefined]>([
      ["by its uid", of("uid", "p1"), 1],
      ["by another uid", of("uid", "p2"), 2],
      ["of no line", of("uid", "p3"), undefined],
      ["with a uid that is no text", of("uid", 5), undefined],
      ["by its group_uid", of("group_uid", "p2"), 2],
      // Its line had the name of its context's group, and may be another one's.
      ["in another group", of("uid", "p1", { context: { group: "drawn" } }), undefined],
      ["in its group", of("uid", "row 7", { context: { group: "p2" } }), 2],
      ["of an assumed source", of("uid", "p1", { isSourceAssumed: true }), 1],
      ["without names", bare, 1],
    ])("one %s is found where its group is the same", async (_, asked, index) => {
      const places = new RecordedPlaces(new Map(lines.map((one) => [one.index, one])));
      expect(places.take(asked)?.index).toBe(index);
      expect(places.take(asked, 1)?.index).not.toBe(index ?? 1);
      await writeFile(path, lines.map((one) => `${JSON.stringify(one)}\n`).join(""));
      const outcomes = await RecordedOutcomes.read(path);
      expect(outcomes.next(asked)).toEqual(
        index === undefined ? undefined : expect.objectContaining({ rewardScore: index }),
      );
    });
  });

  test("is told from others by what JSON takes for nothing", () => {
    const truths = [
      null,
      {},
      /a/,
      /b/,
      /a/i,
      new Set([1]),
      new Set([2]),
      new Map([[1, 2]]),
      new Map(),
      Number.NaN,
      Infinity,
      -Infinity,
      Uint8Array.of(1).buffer,
      Uint8Array.of(2).buffer,
      { a: new Set([1]) },
      { a: /a/ },
    ];
    const keysOf = (): string[] =>
      truths.map((groundTruth) => sampleKey({ ...sample, groundTruth }));
    expect(new Set(keysOf()).size).toBe(truths.length);
    expect(keysOf()).toEqual(keysOf());
    // What logs and caches of earlier versions know it by.
    const groundTruth = { b: [1, { d: "x", c: null }], a: true };
    expect(sampleKey({ ...sample, groundTruth, extraInfo: {} })).toBe("JY3hZ7qqbT9GILPh");
    expect(olderSampleKeys({ ...sample, groundTruth })).toEqual(["JY3hZ7qqbT9GILPh group-1"]);
  });

  test("is told from what JSON writes alike, and known by the key that both had before", () => {
    const bytes = Uint8Array.of(1);
    const pairs: (readonly [unknown, unknown])[] = [
      [5n, "5n"],
      [bytes, { 0: 1 }],
      [
        [undefined, 1],
        [null, 1],
      ],
      [{ a: new Date(0) }, { a: "1970-01-01T00:00:00.000Z" }],
      [-0, 0],
      [new Error("a"), {}],
    ];
    const keyOf = (groundTruth: unknown): string => sampleKey({ ...sample, groundTruth });
    for (const [odd, plain] of pairs) {
      expect(keyOf(odd)).not.toBe(keyOf(plain));
      expect(keyOf(odd)).toBe(keyOf(structuredClone(odd)));
      expect(olderSampleKeys({ ...sample, groundTruth: odd })).toContain(keyOf(plain));
      expect(olderSampleKeys({ ...sample, groundTruth: plain })).not.toContain(keyOf(plain));
    }
    const ofGroup = (groundTruth: unknown): string[] => groupKeys([{ ...sample, groundTruth }]);
    expect(ofGroup(bytes)[1]).toBe(ofGroup({ 0: 1 })[0]);
    expect(ofGroup({ 0: 1 })).toHaveLength(1);
    expect(keyOf({ a: undefined })).toBe(keyOf({}));
  });

  test("is known of one that lies in itself, and of none that cannot be read", () => {
    const around = (name: string): Record<string, unknown> => {
      const circle: Record<string, unknown> = { name };
      circle["inside"] = [circle];
      return circle;
    };
    const keyOf = (extraInfo: Record<string, unknown>): string =>
      sampleKey({ ...sample, extraInfo });
    expect(keyOf(around("a"))).toBe(keyOf(around("a")));
    expect(keyOf(around("a"))).not.toBe(keyOf(around("b")));
    const locked = { nested: Object.defineProperty({}, "x", { enumerable: true, get: fail }) };
    expect(keyOf(locked)).not.toBe(keyOf(locked));
    for (const response of [null, undefined, 5]) {
      expect(sampleKey({ ...sample, response: response as never })).toMatch(/^[\w-]{16}$/);
    }
  });
});

test.each([
  [{ prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }, [5, 2, 7]],
  [{ inputTokens: 5, outputTokens: 2 }, [5, 2, 7]],
  [{ input_tokens: 5, output_tokens: 0 }, [5, 0, 5]],
  [{ totalTokens: 9 }, [9, 0, 9]],
  [{ total_tokens: 9, completion_tokens: 4 }, [5, 4, 9]],
  [{ prompt_tokens: -1 }, undefined],
  [{}, undefined],
  ["many", undefined],
  [null, undefined],
])("usage %j", (usage, wanted) => {
  const counted = usageOf({ usage });
  const { inputTokens, outputTokens, totalTokens } = counted ?? {};
  expect(counted && [inputTokens, outputTokens, totalTokens]).toEqual(wanted);
});
