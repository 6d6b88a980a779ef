/** `rayling score` with several judges, and `rayling rewards compare`: a log for each, how they agree, and how they stand to labels. */

import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { JudgesReport } from "@rayling/reward-loop";
import { beforeEach, describe, expect, test } from "vitest";
import { dataFile } from "../../../test/fixtures/data-file.ts";
import { fileOf, folder, inProcess, recordsOf, shown, start, workspace } from "./command.ts";
import { inFull } from "../../../test/fixtures/suite.ts";

const gsm8k = dataFile("gsm8k/example_model_solutions.jsonl");
const rule = join(workspace, "examples/rewards/gsm8k-reward.ts");
const noisy = join(workspace, "examples/rewards/noisy-judge.ts");
const small = ["--workers", "1", "--concurrency", "8"];

describe("several judges of a small file", () => {
  let directory = "";
  let input = "";
  let out = "";
  const judges = (): string[] => [
    "--reward",
    join(directory, "strict.mjs"),
    "--reward",
    join(directory, "mild.mjs:byLength"),
  ];

  beforeEach(async () => {
    directory = await folder();
    input = join(directory, "rollouts.jsonl");
    out = join(directory, "rewards.jsonl");
    await writeFile(
      join(directory, "strict.mjs"),
      "export const computeScore = ({ solutionStr, groundTruth }) => solutionStr === groundTruth ? 1 : 0;",
    );
    await writeFile(
      join(directory, "mild.mjs"),
      `export const byLength = ({ solutionStr }) => {
        if (solutionStr === "broken") throw new Error("not this one");
        return solutionStr.length / 10;
      };`,
    );
    const rows = [
      { response: "right", ground_truth: "right", data_source: "a", quality: { good: true } },
      { response: "no", ground_truth: "right", data_source: "a", quality: { good: false } },
      {
        response: "almost right",
        ground_truth: "right",
        data_source: "b",
        quality: { good: true },
      },
      { response: "broken", ground_truth: "right", data_source: "b", quality: { good: false } },
    ];
    await writeFile(input, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  });

  test("each sample has one outcome of each judge, in a log of its own, and tables say how they agree", async () => {
    const flags = ["--out", out, "--label-key", "quality.good", ...small];
    const { code, stdout, stderr } = await inProcess("score", input, ...judges(), ...flags);
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    const logs = ["strict", "mild-byLength"].map((name) => out.replace("jsonl", `${name}.jsonl`));
    expect(
      (await readdir(directory)).filter((name) => name.startsWith("rewards")).toSorted(),
    ).toEqual(["rewards.mild-byLength.jsonl", "rewards.strict.jsonl"]);
    const scores = await Promise.all(
      logs.map(async (log) => (await recordsOf(log)).map(({ score }) => score)),
    );
    expect(scores).toEqual([
      [1, 0, 0, 0],
      [0.5, 0.2, 1.2, null],
    ]);
    expect(stdout).toMatch(/^strict +4 +0 +0\.2500$/m);
    expect(stdout).toMatch(/^mild-byLength +4 +1 +0\.6333$/m);
    expect(stdout).toMatch(/^strict, mild-byLength +3 +0\.0000 /m);
    expect(stdout).toMatch(/^strict +4 +0 +0\.5 +0\.7500 +1\.0000 +0\.5000 /m);
    expect(stdout).toMatch(/^b +mild-byLength +2 +1 +1\.0000 /m);
    expect(stdout).toContain(
      "mild-byLength: 1 of 4 could not be scored (25.0 %): the reward function threw (SCORE_THREW, user-code), for example: not this one",
    );
    expect(stdout).toContain(` rayling rewards view ${logs.join(" ")}`);
    expect(stderr).toMatch(/strict: 4 \/ 4, mean score [\d.]+, 0 in flight/);

    const compared = await inProcess("rewards", "compare", ...logs, "--format", "json");
    expect(compared.code).toBe(0);
    const report = JSON.parse(compared.stdout) as JudgesReport;
    expect(report).toMatchObject({ samples: 4, labelled: 4, by: "dataSource", tolerance: 0.1 });
    expect(report.judges.map(({ name, invalid }) => [name, invalid])).toEqual([
      ["strict", 0],
      ["mild-byLength", 1],
    ]);
    expect(report.disagreements.total).toBe(3);
    const first = await inProcess("rewards", "compare", logs[0] ?? "", "--threshold", "2");
    expect(first.stdout).toMatch(/^rewards\.strict +4 +0 +2 +0\.5000 +- +0\.0000 /m);
    expect(first.stdout).not.toContain("disagreements");
  });

  test("--resume keeps what each judge has scored, and asks again what it has not", async () => {
    const run = (...flags: string[]): ReturnType<typeof inProcess> =>
      inProcess("score", input, ...judges(), "--out", out, ...small, ...flags);
    expect((await run()).code).toBe(0);
    const log = out.replace("jsonl", "strict.jsonl");
    const lines = (await readFile(log, "utf8")).trimEnd().split("\n");
    await writeFile(log, `${lines.slice(0, 1).join("\n")}\n`);
    const resumed = await run("--resume");
    expect({ code: resumed.code, stderr: resumed.code === 0 ? "" : resumed.stderr }).toEqual({
      code: 0,
      stderr: "",
    });
    // The lines have no labels: they are those of the data.
    const data = await run("--resume", "--format", "json", "--label-key", "quality.good");
    expect(JSON.parse(data.stdout)).toMatchObject({
      runs: [
        { name: "strict", kept: 4, scored: 0, invalid: 0, log },
        { name: "mild-byLength", kept: 3, scored: 1, invalid: 1 },
      ],
      comparison: {
        samples: 4,
        labelled: 4,
        agreements: [{ first: "strict", second: "mild-byLength" }, {}, {}],
      },
    });
    expect(resumed.stdout).toMatch(/^strict +3 +1 +/m);
    expect(resumed.stdout).toMatch(/^mild-byLength +1 +3 +/m);
    expect((await recordsOf(log)).map(({ index }) => index)).toEqual([0, 1, 2, 3]);
  });

  test("a judge that cannot be loaded is refused before anything is written", async () => {
    const none = join(directory, "none.mjs");
    const { code, stderr } = await inProcess(
      "score",
      input,
      ...judges(),
      "--reward",
      none,
      "--out",
      out,
    );
    expect(code).toBe(2);
    expect(stderr).toContain(`rayling: --reward ${none}`);
    expect((await readdir(directory)).filter((name) => name.startsWith("rewards"))).toEqual([]);
  });

  test.runIf(
    inFull("score-several.test.ts ends a run of too few scores, and the tables are above"),
  )(
    "a judge of which too few samples have a score is named, and the tables are there",
    async () => {
      const broken = join(directory, "broken.mjs");
      await writeFile(broken, `export const computeScore = () => { throw new Error("down"); };`);
      const flags = ["--reward", broken, "--out", out, ...small];
      const { code, stdout, stderr } = await inProcess("score", input, ...judges(), ...flags);
      expect(code).toBe(3);
      expect(stdout).toMatch(/^broken +4 +4 +-$/m);
      expect(stderr).toContain("rayling: broken: no sample has a score");
    },
  );

  test.each<[string, string[], string]>([
    ["--judge", ["--judge", "j.ts"], "--judge is for one --reward"],
    ["--replay", ["--replay", "log.jsonl"], "--replay is for one --reward"],
    ["--baseline", ["--baseline", "4"], "--baseline is for one --reward"],
    ["--out -", ["--out", "-"], "--out - is for one --reward"],
    ["--label-key", ["--label-key", "quality.goood"], 'no row has a label at "quality.goood"'],
    [
      "a label of another kind",
      ["--label-key", "response"],
      '"response" is neither true nor false',
    ],
    ["--tolerance", ["--tolerance", "-1"], "at least 0"],
    ["--threshold", ["--threshold", "0.2"], "--threshold is for labels: no sample has one"],
    ["--by", ["--by", "dataSource"], "--by is for labels: no sample has one"],
  ])("%s is refused where it means nothing", async (_, flags, said) => {
    const { code, stderr } = await inProcess("score", input, ...judges(), "--out", out, ...flags);
    expect(code).toBe(2);
    expect(stderr).toContain(said);
  });

  test.runIf(
    inFull("score.test.ts stops a run, and --resume above goes on with the logs of several judges"),
  )("Ctrl-C stops all judges, and each log can be continued", async () => {
    await writeFile(
      join(directory, "slow.mjs"),
      `import { setTimeout } from "node:timers/promises";
       export const computeScore = async ({ solutionStr }) => {
         console.log("at work on", solutionStr);
         await setTimeout(200);
         return 1;
       };`,
    );
    const slow = [
      "--reward",
      join(directory, "slow.mjs"),
      "--reward",
      join(directory, "strict.mjs"),
    ];
    const one = ["--workers", "1", "--concurrency", "1", "--executors", "1"];
    const running = start("score", input, ...slow, "--out", out, ...one);
    await shown(running, /at work on no/);
    running.child.kill("SIGINT");
    const { code, stderr } = await running.ended;
    expect(code).toBe(130);
    expect(stderr.match(/stopping: samples in flight have \d+ s to finish/g)).toHaveLength(1);
    expect(stderr).toContain("of 4 rewards are in");
    const done = await inProcess("score", input, ...slow, "--out", out, "--resume", ...one);
    expect(done.code).toBe(0);
    for (const name of ["slow", "strict"]) {
      const records = await recordsOf(out.replace("jsonl", `${name}.jsonl`));
      expect(records.map(({ index }) => index)).toEqual([0, 1, 2, 3]);
    }
  });
});

describe("what would change nothing is refused:", () => {
  const labelled = { response: "0.2", ground_truth: "", is_correct: true };
  const unlabelled = { response: "0.2", ground_truth: "" };
  test.each<[string[], object, string]>([
    [["--by", "dataSource"], labelled, "--by needs --label-key, or several --reward"],
    [["--tolerance", "1"], labelled, "--tolerance needs --label-key, or several --reward"],
    [["--label-threshold", "1"], labelled, "--label-threshold needs --label-key"],
    [["--disagreements", "1"], labelled, "--disagreements is for several judges: there is one."],
    [["--threshold", "1"], unlabelled, "--threshold is for labels: no sample has one."],
  ])("score %j", async (flags, row, said) => {
    const input = await fileOf([row]);
    const refused = await inProcess("score", input, "--reward", rule, ...flags);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain(said);
  });

  const logOf = (more: object): Promise<string> => {
    const sample = { index: 0, sample: "s", version: "v", at: "2026-11-30T00:00:00Z" };
    const times = { attempts: 1, waitedMs: 0, latencyMs: 0 };
    return fileOf([{ ...sample, ...times, valid: true, score: 0.2, extra: {}, ...more }]);
  };
  test.each<[string[], object, string]>([
    [["--prompt-key", "nope"], { label: true }, "--prompt-key is of --labels"],
    [["--group-key", "nope"], { label: true }, "--group-key is of --labels"],
    [["--allow-nan"], { label: true }, "--allow-nan is of --labels"],
    [["--disagreements", "3"], { label: true }, "--disagreements is for several judges"],
    [["--threshold", "1"], {}, "--threshold is for labels: no sample of the logs has one."],
    [["--tolerance", "1"], {}, "--tolerance is for labels: no sample of the logs has one."],
  ])("rewards compare %j", async (flags, more, said) => {
    const refused = await inProcess("rewards", "compare", await logOf(more), ...flags);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain(said);
  });

  test("rewards rescore --baseline", async () => {
    const args = ["rescore", await logOf({}), "--reward", rule, "--baseline", "5"];
    const refused = await inProcess("rewards", ...args);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("unknown option '--baseline'");
  });
});

test("one judge is calibrated where --label-key says what to compare with; grades need a threshold", async () => {
  const directory = await folder();
  const input = join(directory, "rollouts.jsonl");
  const rows = [1, 3, 4, 5].map((grade) => ({
    response: String(grade),
    ground_truth: "",
    human: grade < 4 ? grade + 1 : grade,
  }));
  await writeFile(input, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const judge = join(directory, "judge.mjs");
  await writeFile(judge, "export const computeScore = ({ solutionStr }) => Number(solutionStr);");
  const out = join(directory, "rewards.jsonl");
  const flags = ["--reward", judge, "--label-key", "human", "--out", out, ...small];
  const graded = await inProcess("score", input, ...flags);
  expect({ code: graded.code, stderr: graded.code === 0 ? "" : graded.stderr }).toEqual({
    code: 0,
    stderr: "",
  });
  expect(graded.stdout).toMatch(/^score, label +4 +0\.5000 +0\.5000 /m);
  expect(graded.stdout).not.toContain("against labels");
  const again = await inProcess("score", input, ...flags, "--resume", "--format", "json");
  expect(JSON.parse(again.stdout)).toMatchObject({
    samples: 4,
    kept: 4,
    invalid: 0,
    meanScore: 3.25,
    labels: null,
    log: out,
    comparison: { labelled: 4, agreements: [{ first: "score", second: "label", exact: 0.5 }] },
  });
  const compared = await inProcess(
    "rewards",
    "compare",
    out,
    "--threshold",
    "4",
    "--label-threshold",
    "4",
    "--labels",
    input,
    "--label-key",
    "human",
  );
  expect(compared.stdout).toMatch(/^rewards +4 +0 +4 +0\.7500 +1\.0000 +0\.6667 /m);
});

test("a run that continues compares with the labels that it is given now, row by row", async () => {
  const directory = await folder();
  const input = join(directory, "rollouts.jsonl");
  // Two rows are the same sample, and have labels of their own.
  const rows = [
    { response: "1", ground_truth: "", before: false, now: true },
    { response: "1", ground_truth: "", before: false, now: false },
    { response: "0", ground_truth: "", before: true, now: false },
  ];
  await writeFile(input, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const judge = join(directory, "judge.mjs");
  await writeFile(judge, "export const computeScore = ({ solutionStr }) => Number(solutionStr);");
  const out = join(directory, "rewards.jsonl");
  const flags = ["--reward", judge, "--out", out, ...small, "--resume", "--label-key"];
  const first = await inProcess("score", input, ...flags, "before");
  expect(first.stdout).toMatch(/^score +3 +0 +0\.5 +0\.0000 /m);
  const more = ["--threshold", "0", "--format", "json"];
  const second = await inProcess("score", input, ...flags, "now", ...more);
  const agrees = { truePositives: 1, falsePositives: 2, trueNegatives: 0 };
  expect(JSON.parse(second.stdout)).toMatchObject({
    kept: 3,
    labels: { key: "now", compared: 3, equal: 1 },
    comparison: { labelled: 3, calibrations: [agrees] },
  });
});

test.skipIf(gsm8k.isMissing)(
  "two judges of GSM8K's 5,276 real solutions: the rule is always right, the noisy one mostly",
  async () => {
    const out = join(await folder(), "rewards.jsonl");
    const judges = ["--reward", rule, "--reward", noisy];
    const run = await inProcess("score", gsm8k.path, ...judges, "--out", out, "--workers", "1");
    expect({ code: run.code, stderr: run.code === 0 ? "" : run.stderr }).toEqual({
      code: 0,
      stderr: "",
    });
    const logs = ["gsm8k-reward", "noisy-judge"].map((name) =>
      out.replace("jsonl", `${name}.jsonl`),
    );
    const { stdout } = await inProcess("rewards", "compare", ...logs, "--format", "json");
    const report = JSON.parse(stdout) as JudgesReport;
    expect(report).toMatchObject({ samples: 5276, labelled: 5276, by: "solution" });
    expect(report.agreements.find(({ second }) => second === "noisy-judge")).toMatchObject({
      samples: 5276,
      exact: expect.closeTo(0.358, 4) as number,
      kappa: expect.closeTo(0.2093, 4) as number,
      weightedKappa: expect.closeTo(0.7995, 4) as number,
    });
    expect(report.calibrations).toMatchObject([
      { name: "gsm8k-reward", accuracy: 1, truePositives: 2001, trueNegatives: 3275 },
      {
        name: "noisy-judge",
        truePositives: 1900,
        falsePositives: 409,
        falseNegatives: 101,
        trueNegatives: 2866,
        separation: { rocAuc: expect.closeTo(0.9785, 4) as number, bestThreshold: 0.5 },
        sources: [
          { source: "6b_finetuning", labelled: 1319, truePositives: 277, falsePositives: 132 },
          { source: "6b_verification", labelled: 1319 },
          { source: "175b_finetuning", labelled: 1319 },
          { source: "175b_verification", labelled: 1319 },
        ],
      },
    ]);
  },
);
