/** Samples of reward logs: those that count, found, sorted and compared. */
import { appendFile, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { serveRewardLogs } from "@rayling/dashboard";
import { outcomesIn } from "@rayling/reward-loop";
import { describe, expect, onTestFinished, test } from "vitest";
import { LogIndex } from "../src/samples/log-index.ts";
import { histogramOf } from "../src/samples/histogram.ts";
import { folder, type Scored, writeLog } from "./fixtures/logs.ts";
import { type Served, servedAt } from "./fixtures/served.ts";

const answers: readonly Scored[] = [
  { index: 0, question: "What is 2 + 2?", response: "The answer is FOUR", score: 1, latencyMs: 30 },
  { index: 1, question: "What is 1 + 3?", response: "five", score: 0, reason: "it is not four" },
  { index: 2, question: "What is 3 + 1?", response: "Übung: vier", score: null },
  {
    index: 3,
    question: "What is 0 + 4?",
    response: "the four answer",
    score: 0.5,
    parts: { correct: 1, brief: 0 },
    latencyMs: 10,
  },
];

interface Samples {
  readonly total: number;
  readonly found: number;
  readonly version: number;
  readonly malformed: number;
  readonly meanScore: number | null;
  readonly compared?: object;
  readonly rows: readonly { readonly index: number; readonly score: number | null }[];
}

async function viewed(...paths: readonly string[]): Promise<Served> {
  const page = await serveRewardLogs(paths, { port: 0 });
  onTestFinished(() => page.close());
  return await servedAt(page.url);
}

const samples = ({ view }: Served, query: string): Promise<Samples> => view(`samples?${query}`);

const indexes = async (served: Served, query: string): Promise<number[]> =>
  (await samples(served, query)).rows.map(({ index }) => index);

async function logOf(...more: readonly (readonly Scored[])[]): Promise<string> {
  const path = join(await folder(), "rewards.jsonl");
  await writeLog(path, answers);
  for (const some of more) await writeLog(path, some, true);
  return path;
}

test("samples are those that count in the log, with scores, parts and the place of failure", async () => {
  const again = {
    ...answers[2],
    index: 2,
    question: "What is 3 + 1?",
    response: "Übung: vier",
    score: 1,
  };
  const path = await logOf([again]);
  const served = await viewed(path);
  const all = await samples(served, "");
  const counted = [...(await outcomesIn(path)).values()];
  expect(all.rows.map(({ index, score }) => [index, score])).toEqual(
    counted.map(({ index, score }) => [index, score]),
  );
  expect(all).toMatchObject({ total: 4, found: 4, malformed: 0, meanScore: 2.5 / 4 });
  expect(all.rows[3]).toMatchObject({
    parts: [
      { name: "correct", score: 1 },
      { name: "brief", score: 0 },
    ],
  });
  const sample = await served.view("sample?index=3");
  expect(sample).toMatchObject({
    record: {
      prompt: [{ role: "user", content: "What is 0 + 4?" }],
      response: "the four answer",
      groundTruth: "4",
      score: 0.5,
    },
    parts: [{ component: "correct" }, { component: "brief" }],
  });
});

describe("samples are found", () => {
  test.each<[string, number[]]>([
    ["show=zeros", [1]],
    ["show=invalid", [2]],
    // Its rewards do not say the same.
    ["show=disagreements", [3]],
    ["text=four", [0, 1, 3]],
    ["text=answer+four", [0, 3]],
    ['text="answer is four"', [0]],
    ["text=ÜBUNG", [2]],
    ["text=longer+than", [2]],
    ["text=nowhere", []],
    ["least=0.5", [0, 3]],
    ["least=0&most=0.5", [1, 3]],
    ["show=zeros&text=four", [1]],
    ["lane=validation", []],
    ["sort=score", [1, 3, 0, 2]],
    ["sort=score&order=descending", [0, 3, 1, 2]],
    ["sort=latencyMs&order=descending", [0, 3, 1, 2]],
    ["order=descending", [3, 2, 1, 0]],
    ["from=1&count=2", [1, 2]],
    ["from=9", []],
  ])("by %s", async (query, expected) => {
    expect(await indexes(await viewed(await logOf()), encodeURI(query))).toEqual(expected);
  });

  test("by what they say now, and not by an earlier line", async () => {
    const changed = { index: 1, question: "What is 9 + 9?", response: "eighteen", score: 1 };
    const served = await viewed(await logOf([changed]));
    expect(await indexes(served, "text=five")).toEqual([]);
    expect(await indexes(served, "text=eighteen")).toEqual([1]);
    expect(await indexes(served, "text=four")).toEqual([0, 3]);
  });
});

test("two logs stand beside each other, sample by sample", async () => {
  const directory = await folder();
  const [here, there] = [join(directory, "here.jsonl"), join(directory, "there.jsonl")];
  await writeLog(here, answers);
  // Another judge, in another order, without one of them.
  const judged = [3, 2, 0].map((at, index) => ({ ...(answers[at] as Scored), index, score: 1 }));
  await writeLog(there, judged);
  const served = await viewed(here, there);
  const both = await samples(served, "log=0&other=1&sort=other");
  expect(both.rows).toMatchObject([
    { index: 0, score: 1, other: { score: 1 } },
    { index: 2, score: null, other: { score: 1 } },
    { index: 3, score: 0.5, other: { score: 1 } },
    { index: 1, score: 0 },
  ]);
  expect(both.compared).toEqual({ pairs: 3, agreeing: 1, meanHere: 0.75, meanThere: 1 });
  expect(await indexes(served, "log=0&other=1&show=disagreements")).toEqual([2, 3]);
  expect(await served.view("sample?log=0&other=1&index=3")).toMatchObject({
    record: { score: 0.5 },
    other: { record: { score: 1, response: "the four answer" } },
  });
});

test("a log that grows is read on, a line that is on its way waits, and a new file is read anew", async () => {
  const path = await logOf();
  const served = await viewed(path);
  const { version } = await samples(served, "");
  const more = { index: 4, question: "What is 5 - 1?", response: "fourteen", score: 0 };
  await writeLog(path, [more], true);
  const grown = await samples(served, "text=fourteen");
  expect(grown).toMatchObject({ total: 5, found: 1 });
  expect(grown.version).toBeGreaterThan(version);
  const line = (await readFile(path, "utf8")).trimEnd().split("\n").at(-1) ?? "";
  const next = line.replace('"index":4', '"index":5');
  await appendFile(path, next.slice(0, 50));
  expect(await samples(served, "")).toMatchObject({ total: 5, malformed: 0 });
  await appendFile(path, `${next.slice(50)}\n`);
  expect(await samples(served, "")).toMatchObject({ total: 6, malformed: 0 });
  await writeFile(path, `${line}\n`);
  expect(await samples(served, "")).toMatchObject({ total: 1, found: 1 });
  await rm(path);
  const gone = await served.ask(`${served.path}api/samples`);
  expect(gone.status).toBe(422);
  expect(gone.body).toContain("rewards.jsonl");
});

test("a log that is written anew in place is read anew, also where it is longer, or its ends are what they were", async () => {
  const path = await logOf();
  const other = join(await folder(), "other.jsonl");
  await writeLog(other, answers);
  const served = await viewed(path, other);
  expect(await samples(served, "other=1")).toMatchObject({ total: 4, compared: { pairs: 4 } });
  const { ino } = await stat(path);
  const again = (score: number, count: number): Scored[] =>
    Array.from({ length: count }, (_, index) => ({
      index,
      question: `What is ${index} + 4?`,
      response: `run ${score}`,
      score,
    }));
  await writeLog(path, again(1, 9));
  expect(await samples(served, "other=1")).toMatchObject({
    total: 9,
    meanScore: 1,
    rows: again(1, 9).map(({ index, response }) => ({ index, response })),
    compared: { pairs: 0 },
  });
  // As long as before.
  const text = await readFile(path, "utf8");
  await writeFile(path, text.replaceAll('"score":1', '"score":0').replaceAll("run 1", "run 0"));
  expect(await samples(served, "")).toMatchObject({ total: 9, meanScore: 0 });
  // Only between its ends.
  const lines = (await readFile(path, "utf8")).split("\n");
  const changed = JSON.stringify({ ...(JSON.parse(lines[4] ?? "") as object), sample: "another" });
  await writeFile(path, lines.with(4, changed).join("\n"));
  expect(await served.view("sample?index=4")).toMatchObject({ record: { sample: "another" } });
  expect(await samples(served, "")).toMatchObject({ total: 9, meanScore: 0 });
  expect((await stat(path)).ino).toBe(ino);
});

test("a sample that another one has replaced in the log beside it has no outcome there", async () => {
  const directory = await folder();
  const [here, there] = [join(directory, "here.jsonl"), join(directory, "there.jsonl")];
  const [one, two] = answers as [Scored, Scored, ...Scored[]];
  await writeLog(here, [{ ...one, index: 5 }]);
  await writeLog(there, [one]);
  await writeLog(there, [{ ...two, index: 0, score: 1 }], true);
  const served = await viewed(here, there);
  const alone = await samples(served, "other=1");
  expect(alone).toMatchObject({ rows: [{ index: 5 }], compared: { pairs: 0 } });
  expect(alone.rows[0]).not.toHaveProperty("other");
  // At another place it is there again.
  await writeLog(there, [{ ...one, index: 7, score: 0 }], true);
  expect(await samples(served, "other=1")).toMatchObject({
    rows: [{ index: 5, score: 1, other: { score: 0 } }],
  });
});

test("a line that cannot be read counts once, however often the log is looked at", async () => {
  const path = await logOf();
  const served = await viewed(path);
  await appendFile(path, '{"index":4,"sam\n');
  expect(await samples(served, "")).toMatchObject({ total: 4, malformed: 1 });
  const more = { index: 5, question: "What is 5 - 1?", response: "four", score: 1 };
  await appendFile(path, "{");
  expect(await samples(served, "")).toMatchObject({ total: 4, malformed: 1 });
  await appendFile(path, "\n");
  expect(await samples(served, "")).toMatchObject({ total: 4, malformed: 2 });
  await writeLog(path, [more], true);
  expect(await samples(served, "")).toMatchObject({ total: 5, malformed: 2 });
});

test("a list has the beginning of a long response without its line", async () => {
  const path = await logOf();
  const response = `${"x".repeat(100_000)}end`;
  await writeLog(path, [{ index: 4, question: "Endless?", response, score: 1 }], true);
  const index = new LogIndex(path);
  await index.refresh();
  await index.close();
  expect(index.rows.map(({ longResponse }) => longResponse?.length)).toEqual([
    ...answers.map(() => undefined),
    160,
  ]);
  const served = await viewed(path);
  const shown = await samples(served, "text=endless");
  expect(shown.rows).toMatchObject([{ index: 4, response: "x".repeat(160) }]);
  expect(shown.rows[0]).not.toHaveProperty("longResponse");
  expect(await served.view("sample?index=4")).toMatchObject({ record: { response } });
});

test("a big log is looked at while it is read", async () => {
  const path = await logOf();
  const [line = ""] = (await readFile(path, "utf8")).split("\n");
  const many = Array.from({ length: 5000 }, (_, at) => line.replace('"index":0', `"index":${at}`));
  await writeFile(path, `${many.join("\n")}\n`);
  const log = new LogIndex(path, { ms: 0, rows: 100 });
  onTestFinished(() => log.close());
  await log.look();
  const [rows, share] = [log.rows.length, log.share ?? 1];
  expect(rows).toBeGreaterThanOrEqual(100);
  expect(rows).toBeLessThan(5000);
  expect(share).toBeCloseTo(rows / 5000, 1);
  await log.refresh();
  expect([log.rows.length, log.share]).toEqual([5000, 1]);
  // What is wrong with its end is told by the next look.
  await appendFile(path, '{"question": "What is 2 + 2?"}\n');
  await expect(log.look()).rejects.toThrow(`${path}:5001`);
  expect(log.rows).toHaveLength(5000);
});

test("a log that is closed while it is read is not read on", async () => {
  const path = await logOf();
  const log = new LogIndex(path);
  const reading = log.refresh();
  await Promise.all([expect(reading).rejects.toThrow("abort"), log.close()]);
});

test("lines that another program wrote have texts of any kind", async () => {
  const path = await logOf();
  const [line = ""] = (await readFile(path, "utf8")).split("\n");
  const odd = [null, 7, { content: 1 }, [null, { content: 2 }, { content: "odd words" }]];
  const lines = odd.map((prompt, index) =>
    JSON.stringify({ ...(JSON.parse(line) as object), index, prompt, response: prompt }),
  );
  await writeFile(path, `${lines.join("\n")}\n`);
  const served = await viewed(path);
  expect(await samples(served, "")).toMatchObject({ total: 4 });
  expect(await indexes(served, "text=odd")).toEqual([3]);
});

test("a packed log is a log", async () => {
  const path = await logOf();
  const packed = `${path}.gz`;
  await writeFile(packed, gzipSync(await readFile(path)));
  const served = await viewed(packed);
  expect(await indexes(served, "text=four")).toEqual([0, 1, 3]);
  expect(await served.view("sample?index=1")).toMatchObject({ record: { response: "five" } });
});

test("a file that is no reward log is refused, and so is what nobody named", async () => {
  const other = join(await folder(), "other.jsonl");
  await writeFile(other, '{"question": "What is 2 + 2?"}\n');
  await expect(serveRewardLogs([other], { port: 0 })).rejects.toThrow("other.jsonl");
  await expect(serveRewardLogs([`${other}.gone`], { port: 0 })).rejects.toThrow("gone");
  const served = await viewed(await logOf());
  for (const query of ["log=1", "log=-1", "log=/etc/passwd", "show=some", "sort=line", "least=x"]) {
    expect([query, (await served.ask(`${served.path}api/samples?${query}`)).status]).toEqual([
      query,
      400,
    ]);
  }
  expect((await served.ask(`${served.path}api/sample?index=99`)).status).toBe(400);
  // There is no session.
  expect((await served.ask(`${served.path}api/overview`)).status).toBe(404);
  expect((await served.ask(`${served.path}api/kill`, {}, { actorId: "a" })).status).toBe(404);
});

test("a histogram has a bar for each of a few scores, or equal steps that hold all", () => {
  expect(histogramOf([1, 0, 1, 0.5])).toEqual([
    { from: 0, to: 0, count: 1 },
    { from: 0.5, to: 0.5, count: 1 },
    { from: 1, to: 1, count: 2 },
  ]);
  expect(histogramOf([])).toEqual([]);
  const many = Array.from({ length: 100 }, (_, at) => at / 99);
  const bars = histogramOf(many);
  expect(bars).toHaveLength(20);
  expect(bars.reduce((sum, { count }) => sum + count, 0)).toBe(100);
  expect([bars[0]?.from, bars.at(-1)?.to]).toEqual([0, 1]);
});
