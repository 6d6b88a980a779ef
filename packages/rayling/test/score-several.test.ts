/** `rayling score` with more than one function: a rule and a judge, several rewards out of a file, a cheaper judge at the budget, a log in place of all; and with Parquet as input. */

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readParquet, writeParquet } from "@rayling/data-proto";
import { beforeEach, describe, expect, test } from "vitest";
import { startJudge } from "../../../test/servers/judge.ts";
import { fileOf, folder, inProcess, recordsOf, workspace } from "./command.ts";

const parts = join(workspace, "packages/reward-loop/test/fixtures/parts.ts");
const judged = join(workspace, "test/fixtures/judged.ts:judged");

const rollouts = (count: number, textOf: (index: number) => string): object[] =>
  Array.from({ length: count }, (_, index) => ({ response: textOf(index), ground_truth: "1" }));

const run = ["--baseline", "0", "--workers", "1"];

interface Line {
  readonly index: number;
  readonly component: string | null;
  readonly valid: boolean;
  readonly score: number | null;
  readonly answeredBy: string | null;
  readonly cost: number | null;
}

async function linesOf(path: string): Promise<Line[]> {
  return (await readFile(path, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}

const wholesOf = async (path: string): Promise<Line[]> =>
  (await linesOf(path))
    .filter(({ component }) => component === null)
    .toSorted((a, b) => a.index - b.index);

test("--judge asks a judge only what the rule cannot tell; at the budget a cheaper one takes over", async () => {
  await using judge = await startJudge();
  const input = await fileOf(rollouts(30, (n) => (n % 3 === 0 ? `known ${n}` : `open ${n % 2}`)));
  const out = join(await folder(), "rewards.jsonl");
  const flags = ["score", input, "--reward", `${parts}:rule`, "--judge", judged, "--out", out];
  flags.push(...run, "--concurrency", "1", "--max-in-flight", "1");
  flags.push("--reward-kwarg", `judgeUrl=${judge.baseUrl}`);
  flags.push("--price", "0,0,1", "--budget", "12", "--at-budget", `${parts}:judge`);
  flags.push("--cheaper-price", "0,0,0.25");
  const { code, stdout, stderr } = await inProcess(...flags);
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  expect((await judge.stats()).answered).toBe(12);
  const wholes = await wholesOf(out);
  expect(wholes.map(({ index }) => index)).toEqual([...Array(30).keys()]);
  const by = Object.groupBy(wholes, ({ answeredBy }) => answeredBy ?? "nobody");
  expect(Object.fromEntries(Object.entries(by).map(([name, own]) => [name, own?.length]))).toEqual({
    rule: 10,
    "judge/main": 12,
    "judge/cheaper": 8,
  });
  expect(by["rule"]?.map(({ index, score }) => score === index)).toEqual(Array(10).fill(true));
  expect(by["judge/cheaper"]?.map(({ score, cost }) => `${score} for ${cost}`)).toEqual(
    Array(8).fill("0.5 for 0.25"),
  );
  expect(stdout).toMatch(/^answered by judge\/main: 12$/m);
  expect(stdout).toMatch(/^spent: 14\.0000$/m);
  expect(stdout).toMatch(/^judge: 14\.0000 of 12\.0000 spent, the cap is reached$/m);
  // Of each part a line, and the report knows them.
  const report = await inProcess("rewards", "report", out);
  expect(report.stdout).toMatch(/^samples +30$/m);
  expect(report.stdout).toMatch(/^answered by rule +10$/m);
  expect(report.stdout).toMatch(/^judge +20 +20 +/m);
  expect(report.stdout).toMatch(/^rule +30 +10 +/m);
  expect(report.stdout).toMatch(/^cost +14\.0000$/m);
});

test("--rewards takes several with weights out of a file, whose paths start there; --replay takes them out of the log", async () => {
  const directory = await folder();
  const file = join(directory, "rewards.yaml");
  await writeFile(
    join(directory, "length.mjs"),
    "export const computeScore = ({ solutionStr }) => solutionStr.length;",
  );
  await writeFile(
    file,
    `rewards:\n  length: { reward: ./length.mjs, weight: 0.5 }\n  rule: { reward: "${parts}:rule", onInvalid: leaveOut }\n`,
  );
  const input = await fileOf(rollouts(5, (n) => (n === 3 ? "open" : `known ${n}`)));
  const [out, again] = [join(directory, "rewards.jsonl"), join(directory, "again.jsonl")];
  const first = await inProcess("score", input, "--rewards", file, "--out", out, ...run);
  expect({ code: first.code, stderr: first.code === 0 ? "" : first.stderr }).toEqual({
    code: 0,
    stderr: "",
  });
  expect((await wholesOf(out)).map(({ score }) => score)).toEqual([3.5, 4.5, 5.5, 2, 7.5]);
  expect(await linesOf(out)).toHaveLength(15);
  const resumed = await inProcess(
    "score",
    input,
    "--rewards",
    file,
    "--out",
    out,
    "--resume",
    ...run,
  );
  expect(resumed.code).toBe(0);
  expect(await linesOf(out)).toHaveLength(15);
  const replayed = await inProcess("score", input, "--replay", out, "--out", again, ...run);
  expect(replayed.code).toBe(0);
  // A run of functions says once what its version hangs on.
  const withoutTime = (lines: readonly Line[]): unknown[] =>
    lines
      .map((line) => ({ ...line, at: "", versionParts: undefined }))
      .toSorted((a, b) => a.index - b.index);
  expect(withoutTime(await linesOf(again))).toEqual(withoutTime(await linesOf(out)));
});

describe("paths in a file of --rewards start at its folder, those of flags at the current directory", () => {
  const budget = ["--price", "0,0,1", "--budget", "1", "--at-budget"];
  let directory = "";
  let input = "";

  beforeEach(async () => {
    directory = await folder();
    await mkdir(join(directory, "conf"));
    const scoring = (score: number): string => `export const computeScore = () => ${score};`;
    await writeFile(join(directory, "conf", "own.mjs"), scoring(1));
    await writeFile(join(directory, "cheap.mjs"), scoring(3));
    // A trap: it has the name of the flag's.
    await writeFile(join(directory, "conf", "cheap.mjs"), scoring(7));
    await writeFile(
      join(directory, "manager.mjs"),
      "export class Own { async runSingle() { return { rewardScore: 9, rewardExtraInfo: {} }; } }",
    );
    const text = "rewards: { own: { reward: ./own.mjs, cache: own.sqlite } }";
    await writeFile(join(directory, "conf", "rewards.yaml"), text);
    input = await fileOf(rollouts(2, (n) => `known ${n}`));
  });

  /** What it said of its failure. */
  async function failureOf(...flags: readonly string[]): Promise<string> {
    const given = ["score", input, "--rewards", "conf/rewards.yaml", ...run, ...flags];
    const before = process.cwd();
    process.chdir(directory);
    try {
      const { code, stderr } = await inProcess(...given);
      return code === 0 ? "" : stderr;
    } finally {
      process.chdir(before);
    }
  }

  async function scoresIn(name: string): Promise<(number | null)[]> {
    return (await wholesOf(join(directory, name))).map((line) => line.score);
  }

  test("the cache of a reward, and the log of --replay", async () => {
    expect(await failureOf("--out", "first.jsonl")).toBe("");
    expect(await readdir(join(directory, "conf"))).toContain("own.sqlite");
    expect(await readdir(directory)).not.toContain("own.sqlite");
    expect(await failureOf("--out", "again.jsonl", "--replay", "first.jsonl")).toBe("");
    expect(await scoresIn("again.jsonl")).toEqual([1, 1]);
  });

  test("the module of --at-budget", async () => {
    const one = ["--workers", "1", "--concurrency", "1", "--executors", "1"];
    expect(await failureOf("--out", "cheap.jsonl", ...budget, "./cheap.mjs", ...one)).toBe("");
    expect((await scoresIn("cheap.jsonl")).at(-1)).toBe(3);
  });

  test("the module of --manager", async () => {
    expect(await failureOf("--out", "managed.jsonl", "--manager", "./manager.mjs")).toBe("");
    expect(await scoresIn("managed.jsonl")).toEqual([9, 9]);
  });

  test.each([
    ["--replay", ["--replay", "none.jsonl"]],
    ["--manager", ["--manager", "./none.mjs"]],
    ["--at-budget", [...budget, "./none.mjs"]],
  ])("%s names the file that is not there", async (flag, flags) => {
    const stderr = await failureOf("--out", "none-written.jsonl", ...flags);
    expect(stderr).toMatch(new RegExp(`^rayling: ${flag}`));
    expect(stderr).toContain(join(directory, flags.at(-1) as string));
  });
});

describe("Parquet", () => {
  test("with verl's columns is input: prompts, ground truths, extra info, several responses of one prompt", async () => {
    const verl = join(workspace, "packages/data-proto/test/fixtures/verl.parquet");
    const plain = await inProcess("score", verl, "--reward", `${parts}:rule`, ...run);
    expect(plain).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /verl\.parquet, row 0: .*"response", "responses", .* are missing/,
      ) as string,
    });
    const directory = await folder();
    const input = join(directory, "rollouts.parquet");
    const rows = (await Array.fromAsync(readParquet(verl))).map(({ row, value }) => ({
      data_source: value["data_source"],
      prompt: value["prompt"],
      reward_model: value["reward_model"],
      extra_info: value["extra_info"],
      responses: [`#### ${2 * row}`, "#### 1"],
    }));
    await writeParquet(input, rows, {
      columns: {
        data_source: "string",
        prompt: "json",
        reward_model: "json",
        extra_info: "json",
        responses: "json",
      },
      rowsPerGroup: 3,
    });
    const out = join(directory, "rewards.jsonl");
    const reward = join(workspace, "packages/reward-loop/test/fixtures/rewards.ts:seen");
    expect((await inProcess("score", input, "--reward", reward, "--out", out, ...run)).code).toBe(
      0,
    );
    const records = await recordsOf(out);
    expect(records.map(({ question, solution }) => [question, solution])).toEqual(
      rows.flatMap((_, row) => [
        [row, "responses.0"],
        [row, "responses.1"],
      ]),
    );
    expect(records[6]?.extra).toMatchObject({
      dataSource: "openai/gsm8k",
      groundTruth: "6",
      solutionStr: "#### 6",
      extraInfo: { split: "train", question: "What is 3 + 3?", index: 3 },
    });
  });

  test("a log becomes a table, in which its lines are rows", async () => {
    const input = await fileOf(rollouts(3, (n) => (n === 1 ? "down" : `known ${n}`)));
    const log = join(await folder(), "rewards.jsonl");
    const flags = ["--reward", `${parts}:rule`, "--out", log, ...run];
    expect((await inProcess("score", input, ...flags)).code).toBe(0);
    const { code, stdout } = await inProcess("rewards", "export", log);
    const table = log.replace(".jsonl", ".parquet");
    expect({ code, stdout }).toEqual({ code: 0, stdout: `wrote 3 rows to ${table} (Parquet)\n` });
    const rows = (await Array.fromAsync(readParquet(table))).map(({ value }) => value);
    const lines = await linesOf(log);
    expect(rows.map(({ index, valid, score }) => ({ index, valid, score }))).toEqual(
      lines.map(({ index, valid, score }) => ({ index, valid, score })),
    );
    expect(rows.find(({ index }) => index === 1)).toMatchObject({
      errorCode: "SCORE_THREW",
      errorClass: "user-code",
      errorMessage: "the rule is down",
      more: { question: 1, solution: "response" },
      at: expect.any(Date) as Date,
    });
    expect(await inProcess("rewards", "export", "/no/such/log")).toMatchObject({
      code: 2,
      stdout: "",
    });
    const nowhere = await inProcess("rewards", "export", log, "--out", "/no/such/folder/x");
    expect(nowhere).toMatchObject({ code: 2, stdout: "" });
  });
});

test("rewards rescore scores again what failed, or what an older version scored, and nothing else", async () => {
  const directory = await folder();
  const [out, own] = [join(directory, "rewards.jsonl"), join(directory, "reward.mjs")];
  const version = (value: number, bad: string): Promise<void> =>
    writeFile(
      own,
      `export const computeScore = ({ solutionStr }) => {
        if (${JSON.stringify(bad)}.includes(solutionStr)) throw new Error("not this one");
        return ${value};
      };`,
    );
  const input = await fileOf(rollouts(6, (n) => String(n)));
  await version(1, "2 4");
  expect((await inProcess("score", input, "--reward", own, "--out", out, ...run)).code).toBe(0);
  // Somebody has cut the last one off: it was never scored, as far as the log knows.
  const lines = (await readFile(out, "utf8")).trimEnd().split("\n");
  await writeFile(out, `${lines.filter((line) => !line.startsWith('{"question":5')).join("\n")}\n`);
  const rescore = (...flags: string[]): ReturnType<typeof inProcess> =>
    inProcess("rewards", "rescore", out, input, "--reward", own, "--workers", "1", ...flags);

  await version(2, "4");
  const failed = await rescore();
  expect({ code: failed.code, stderr: failed.code === 0 ? "" : failed.stderr }).toEqual({
    code: 0,
    stderr: "",
  });
  const counted = async (): Promise<unknown[]> => {
    const { stdout } = await inProcess("rewards", "report", out, "--format", "json");
    const { samples, valid, superseded, meanScore } = JSON.parse(stdout) as Record<string, number>;
    return [samples, valid, superseded, meanScore];
  };
  // 2 is scored by the new one, 4 has failed again; 0, 1 and 3 are as they were, and that is said.
  expect(failed.stderr).toContain("3 of the 3 scores in");
  expect(failed.stderr).toContain("(--only stale scores them again)");
  expect(await counted()).toEqual([5, 4, 2, (1 + 1 + 2 + 1) / 4]);
  await version(3, "");
  expect((await rescore("--only", "stale")).code).toBe(0);
  expect(await counted()).toEqual([5, 5, 7, 3]);
  expect((await rescore("--only", "stale")).code).toBe(0);
  expect(await counted()).toEqual([5, 5, 7, 3]);

  const other = await fileOf(rollouts(6, (n) => `other ${n}`));
  const refused = await inProcess("rewards", "rescore", out, other, "--reward", own);
  expect(refused).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("of other samples") as string,
  });
  const missing = await inProcess("rewards", "rescore", "/no/such/log", input, "--reward", own);
  expect(missing).toMatchObject({ code: 2, stdout: "" });
});

test("--fallback is the score of what has none, --fail-above ends with what has failed, and --resume scores both again", async () => {
  const input = await fileOf(rollouts(4, (n) => (n < 2 ? "down" : `known ${n}`)));
  const out = join(await folder(), "rewards.jsonl");
  const score = (...flags: string[]): ReturnType<typeof inProcess> =>
    inProcess("score", input, "--reward", `${parts}:rule`, "--out", out, ...run, ...flags);
  const failed = await score("--fail-above", "0.25");
  expect(failed).toMatchObject({
    code: 3,
    stdout: expect.stringMatching(
      /^mean score +2\.5000, mean of 2 valid of 4\ninvalid \(no score\) +2$/m,
    ) as string,
    stderr: expect.stringContaining(
      "rayling: --fail-above 0.25: 2 of 4 samples have no score: 2 x SCORE_THREW.\n",
    ) as string,
  });
  expect(failed.stdout).toContain("2 x user-code: when the reward function is fixed,");
  const fallen = await score("--fallback", "-1", "--fail-above", "0");
  expect({ code: fallen.code, stderr: fallen.code === 0 ? "" : fallen.stderr }).toEqual({
    code: 0,
    stderr: "",
  });
  expect((await wholesOf(out)).map((one) => one.score)).toEqual([-1, -1, 2, 3]);
  expect((await recordsOf(out))[0]?.extra).toMatchObject({ fallback: true, error: "SCORE_THREW" });
  expect((await score("--resume")).stdout).toMatch(/^samples +4, 2 of before$/m);
});

test("a run in which no sample, or less than half of them, has a score does not end as if all were well", async () => {
  const score = async (downs: number, ...flags: string[]): Promise<string> => {
    const input = await fileOf(rollouts(4, (n) => (n < downs ? "down" : `known ${n}`)));
    const out = join(await folder(), "rewards.jsonl");
    const rule = ["--reward", `${parts}:rule`, "--out", out, ...run];
    const { code, stdout, stderr } = await inProcess("score", input, ...rule, ...flags);
    // What there is is written, and counted.
    expect((await wholesOf(out)).length).toBe(4);
    expect(stdout).toContain(`wrote 4 records to ${out}`);
    return `${code} ${/^rayling: .*$/m.exec(stderr)?.[0] ?? ""}`;
  };
  // Half of them is what may be invalid where nothing is said.
  expect(await score(2)).toBe("0 ");
  expect(await score(3)).toBe(
    "3 rayling: --fail-above 0.5: 3 of 4 samples have no score: 3 x SCORE_THREW.",
  );
  expect(await score(3, "--fail-above", "0.8")).toBe("0 ");
  const none = "3 rayling: no sample has a score: 4 of 4 samples have no score: 4 x SCORE_THREW.";
  // Not even where all may fail.
  expect(await score(4, "--fail-above", "1")).toBe(none);
});

describe("flags that do not go together", () => {
  test.each([
    [["--rewards", "/no/x", "--reward", "y"], "--rewards /no/x: ENOENT"],
    [["--rewards", "x", "--reward", "y", "--judge", "z"], "--judge is for one --reward"],
    [["--rewards", "x", "--judge", "y"], "--judge and --rewards: give one of them"],
    [["--rewards", "x", "--reward-kwarg", "a=1"], "--reward-kwarg is for --reward"],
    [["--rewards", "/no/such/file"], "--rewards /no/such/file: ENOENT"],
    [["--reward", "x", "--judge", "y", "--latency", "1,2"], "--latency is for a --reward alone"],
    [["--reward", "x", "--judge", "y", "--baseline", "2"], "--baseline is for a --reward alone"],
    [["--replay", "x", "--baseline", "2"], "--baseline is for a --reward alone"],
    [["--replay", "x", "--reward-kwarg", "a=1"], "--reward-kwarg is for --reward"],
    [["--reward", "y", "--at-budget", "x"], "--at-budget needs --budget"],
    [["--reward", "y", "--cheaper-price", "1,1"], "--cheaper-price needs --at-budget"],
    [["--reward", "y", "--max-retry-after", "9"], "--max-retry-after needs --retries"],
    [["--reward", "y", "--fail-above", "2"], "It must be a number of at least 0 and of at most 1."],
    [["--reward", "y", "--fallback", "none"], 'It must be a number or "groupMean".'],
    [["--reward", `${parts}:rule`, "--judge", "/no/such/judge.ts"], "judge.ts"],
    [["--replay", "/no/such/log"], "/no/such/log"],
  ])("%j", async (flags, message) => {
    const input = await fileOf(rollouts(1, () => "known 1"));
    const out = join(await folder(), "rewards.jsonl");
    const { code, stdout, stderr } = await inProcess("score", input, "--out", out, ...flags);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toContain(message);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });

  test.each([
    ["reward: x", '"reward" is not one of rewards, combine, cascade'],
    ["combine: mean", "it has neither rewards nor cascade"],
    ["- 1", "it must hold rewards or cascade"],
    ["rewards: { a: { reward: ./no-such.mjs } }", "no-such.mjs"],
    ["rewards: { a: { wieght: 1 } }", "rewards.a.wieght must be one of"],
    ["cascade: { a: { passOn: invalid } }", "cascade.a.passOn must be left out of the last stage"],
    [
      "rewards: { a: { spend: { prices: { perCall: 1 }, warnAt: 0.5 } } }",
      "rewards.a.spend.warnAt must be left out without cap",
    ],
    [
      "rewards: { a: { managerOptions: { penalty: 1 } } }",
      "rewards.a.managerOptions.penalty must be left out",
    ],
  ])("a file of --rewards with %s", async (text, message) => {
    const file = join(await folder(), "rewards.yaml");
    await writeFile(file, text);
    const input = await fileOf(rollouts(1, () => "known 1"));
    const { code, stderr } = await inProcess(
      "score",
      input,
      "--rewards",
      file,
      "--out",
      `${file}.out`,
    );
    expect(stderr).toContain(message);
    expect(code).toBe(2);
  });
});
