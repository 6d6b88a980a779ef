/** `rayling score` with a judge that is a server: it fails in every way, the run is killed in the middle and gone on with, and every solution has one score. */

import { existsSync } from "node:fs";
import { appendFile, copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { sampleKey } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { faults } from "../../../test/servers/judge-server.ts";
import { startJudge, type Judge } from "../../../test/servers/judge.ts";
import { fileOf, folder, inProcess, recordsOf, shown, start, workspace } from "./command.ts";
import type { RewardRecord } from "./command.ts";
import { dataFile } from "../../../test/fixtures/data-file.ts";
import { inFull, sized } from "../../../test/fixtures/suite.ts";

const gsm8k = dataFile("gsm8k/example_model_solutions.jsonl");
const judged = join(workspace, "test/fixtures/judged.ts:judged");

/** The last valid one of each index, else the last. */
function counted(records: readonly RewardRecord[]): RewardRecord[] {
  const byIndex = new Map<number, RewardRecord>();
  for (const record of records) {
    if (byIndex.get(record.index)?.valid !== true) byIndex.set(record.index, record);
  }
  return [...byIndex.values()];
}

/** The file has 1,319 questions with four solutions each. */
const questions = sized({ gate: 80, full: 1319 });

test.skipIf(gsm8k.isMissing)(
  `${questions} questions, 5 % faults of every kind, kill -9 in the middle: one outcome for each solution, all valid, all right`,
  async () => {
    const text = (await readFile(gsm8k.path, "utf8")).trimEnd().split("\n").slice(0, questions);
    const input = await fileOf(text);
    const lines = text.map((line) => JSON.parse(line) as Record<string, { is_correct: boolean }>);
    const count = lines
      .flatMap((line) => Object.values(line))
      .filter((value) => typeof value === "object").length;
    await using judge = await startJudge({
      seed: 3,
      reward: join(workspace, "examples/rewards/gsm8k-reward.ts"),
      latency: { uniform: [1, 10] },
      faults: Object.fromEntries(faults.map((fault) => [fault, 0.05])),
      limits: { concurrency: 96 },
    });
    const out = join(await folder(), "rewards.jsonl");
    const flags = [input, "--reward", judged, "--out", out, "--baseline", "0", "--workers", "2"];
    flags.push(
      "--reward-kwarg",
      `judgeUrl=${judge.baseUrl}`,
      "--reward-kwarg",
      // Only answers that never come are later, wherever this runs.
      "judgeTimeoutMs=2000",
    );
    flags.push("--retries", "12", "--resume");
    // Slowly, so that it is not done before it is ended.
    const { child, ended } = start("score", ...flags, "--max-in-flight", "16");
    const written = async (): Promise<number> =>
      existsSync(out) ? (await recordsOf(out, { torn: true })).length : 0;
    await expect.poll(written, { timeout: 100_000, interval: 20 }).toBeGreaterThan(count / 10);
    child.kill("SIGKILL");
    expect(await ended).toMatchObject({ signal: "SIGKILL" });
    expect(await written()).toBeLessThan(count);

    flags.push("--max-in-flight", "96");
    const { code, stdout, stderr } = await inProcess("score", ...flags);
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    const all = count.toLocaleString("en-US");
    expect(stdout).toContain(`is_correct: ${all} of ${all} samples have a score that agrees`);
    expect(stdout).toMatch(/^invalid \(no score\) +0$/m);
    const records = counted(await recordsOf(out, { torn: true }));
    expect(records).toHaveLength(count);
    expect(records.filter(({ valid }) => !valid)).toEqual([]);
    const wrong = records.filter(
      ({ question, solution, score }) => (score === 1) !== lines[question]?.[solution]?.is_correct,
    );
    expect(wrong).toEqual([]);
    const { violations, failed, mostPerText } = await judge.stats();
    expect(violations).toEqual({});
    expect(Object.keys(failed).toSorted()).toEqual([...faults].toSorted());
    // Those that were under way when it was killed, and those that two solutions of a question share.
    expect(mostPerText).toBeLessThanOrEqual(8);
  },
);

describe("--resume", () => {
  const solutions = Array.from({ length: 20 }, (_, question) => ({
    question: `q${question}`,
    ground_truth: "A: 1",
    a: { solution: question % 2 === 0 ? "A: 1" : "A: 2" },
  }));
  const reward = join(workspace, "examples/rewards/gsm8k-reward.ts");
  const closing: (() => Promise<void>)[] = [];
  let input = "";
  /** Logs of both functions, as a run leaves them: each case goes on with a copy. */
  let [ofReward, ofOwn] = ["", ""];
  const own = "export const computeScore = () => 1;";

  beforeAll(async () => {
    const directory = await folder((remove) => void closing.push(remove));
    input = join(directory, "solutions.jsonl");
    await writeFile(input, `${solutions.map((line) => JSON.stringify(line)).join("\n")}\n`);
    const module = join(directory, "reward.mjs");
    await writeFile(module, own);
    const scored = async (by: string, name: string): Promise<string> => {
      const out = join(directory, name);
      const flags = ["--reward", by, "--out", out, "--baseline", "0", "--workers", "1"];
      expect((await inProcess("score", input, ...flags)).code).toBe(0);
      return readFile(out, "utf8");
    };
    ofReward = await scored(reward, "of-reward.jsonl");
    ofOwn = await scored(module, "of-own.jsonl");
  });
  afterAll(async () => {
    for (const close of closing) await close();
  });

  /** Goes on with a log in a folder of its own. */
  async function going(log: string, by = reward): Promise<{ out: string; flags: string[] }> {
    const out = join(await folder(), "rewards.jsonl");
    await writeFile(out, log);
    const flags = ["--reward", by, "--out", out, "--baseline", "0", "--workers", "1", "--resume"];
    return { out, flags };
  }

  test("scores what has no score, and passes over a line that was cut off", async () => {
    const all = ofReward.trimEnd().split("\n");
    const invalid = JSON.stringify({ ...JSON.parse(all[3] ?? ""), valid: false, score: null });
    const { out, flags } = await going(
      [...all.slice(0, 3), invalid, all[4]?.slice(0, 40)].join("\n"),
    );
    const { code, stdout } = await inProcess("score", input, ...flags);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^samples +20, 3 of before$/m);
    expect(stdout).toMatch(/^mean score +0\.5000$/m);
    const records = await recordsOf(out, { torn: true });
    // The three that had a score, one that was invalid and is scored now, and all others.
    expect(records).toHaveLength(21);
    expect(counted(records).map(({ score }) => score)).toEqual(
      solutions.map(({ a }) => (a.solution === "A: 1" ? 1 : 0)),
    );
  });

  test("refuses scores of another version of the reward function, says what changed, and runs nothing", async () => {
    const directory = await folder();
    const other = join(directory, "reward.mjs");
    const { out, flags } = await going(ofOwn, other);
    // It would write this file, if anything of it were run.
    const ran = join(directory, "ran");
    await writeFile(
      other,
      `import { writeFileSync } from "node:fs";
      writeFileSync(${JSON.stringify(ran)}, "");
      export const computeScore = () => 0.25;`,
    );
    const refused = await inProcess("score", input, ...flags, "--reward-kwarg", "factor=2");
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toBe(
      `rayling: --resume: 20 of the 20 scores in ${out} are of another version of the reward functions ` +
        "(changed: the reward module, rewardKwargs.factor): --rescore-stale scores these again, " +
        "--keep-stale keeps them beside the new ones; or give another --out.\n",
    );
    expect(await readFile(out, "utf8")).toBe(ofOwn);
    await expect(readFile(ran)).rejects.toThrow("ENOENT");
    const both = await inProcess("score", input, ...flags, "--keep-stale", "--rescore-stale");
    expect(both).toMatchObject({ code: 2, stdout: "" });
  });

  test("keeps what another version of the reward function scored, or scores it again, if it is to", async () => {
    const other = join(await folder(), "reward.mjs");
    await writeFile(other, "export const computeScore = () => 0.25;");
    const { out, flags } = await going(ofOwn, other);
    const kept = await inProcess("score", input, ...flags, "--keep-stale");
    expect(kept.stdout).toMatch(/^mean score +1\.0000$/m);
    expect((await recordsOf(out)).length).toBe(20);
    const { stdout } = await inProcess("score", input, ...flags, "--rescore-stale");
    expect(stdout).toMatch(/^mean score +0\.2500$/m);
    expect((await recordsOf(out)).length).toBe(40);
    const { stdout: report } = await inProcess("rewards", "report", out);
    expect(report).toMatch(/^samples +20$/m);
    expect(report).toMatch(/^scored again +20$/m);
    expect(report).toMatch(/^mean score +0\.2500$/m);
    // All that counts is of this version now.
    expect((await inProcess("score", input, ...flags)).stdout).toMatch(
      /^samples +20, 20 of before$/m,
    );
  });

  test("goes on with a log of before whose first line does not say what its version hangs on", async () => {
    const older = ofReward
      .trimEnd()
      .split("\n")
      .map((line) => {
        const { versionParts: _, ...record } = JSON.parse(line) as Record<string, unknown>;
        return JSON.stringify(record);
      });
    const { flags } = await going(`${older.join("\n")}\n`);
    expect((await inProcess("score", input, ...flags)).stdout).toMatch(
      /^samples +20, 20 of before$/m,
    );
    const refused = await inProcess("score", input, ...flags, "--reward-kwarg", "factor=2");
    expect(refused.stderr).toContain("are of another version of the reward functions: ");
  });

  test("knows its samples in a file of another name", async () => {
    const renamed = join(await folder(), "other-name.jsonl");
    await copyFile(input, renamed);
    const { out, flags } = await going(ofReward);
    const resumed = await inProcess("score", renamed, ...flags);
    expect({ code: resumed.code, stderr: resumed.code === 0 ? "" : resumed.stderr }).toEqual({
      code: 0,
      stderr: "",
    });
    expect(resumed.stdout).toMatch(/^samples +20, 20 of before$/m);
    const replayed = join(await folder(), "replayed.jsonl");
    const replay = ["--replay", out, "--out", replayed, "--baseline", "0", "--workers", "1"];
    expect((await inProcess("score", renamed, ...replay)).stdout).toMatch(
      /^invalid \(no score\) +0$/m,
    );
    // A log of before called them by the file's name.
    const older = (await recordsOf(out)).map((record) => ({
      ...record,
      sample: sampleKey({
        dataSource: "solutions",
        response: solutions[record.index]?.a.solution ?? "",
        groundTruth: "A: 1",
        extraInfo: { question: `q${record.index}` },
      }),
    }));
    await writeFile(out, `${older.map((one) => JSON.stringify(one)).join("\n")}\n`);
    expect((await inProcess("score", input, ...flags)).stdout).toMatch(
      /^samples +20, 20 of before$/m,
    );
    expect((await inProcess("score", input, ...replay)).stdout).toMatch(
      /^invalid \(no score\) +0$/m,
    );
  });

  test("with an input that was changed says which samples are new, gone and kept, and scores the new ones alone", async () => {
    const asked = join(await folder(), "asked");
    const counting = join(await folder(), "reward.mjs");
    await writeFile(
      counting,
      `import { appendFileSync } from "node:fs";
      export function computeScore({ solutionStr }) {
        appendFileSync(${JSON.stringify(asked)}, solutionStr + "\\n");
        if (solutionStr === "fails") throw new Error("this one");
        return Number(solutionStr);
      }`,
    );
    const out = join(await folder(), "rewards.jsonl");
    const run = async (...texts: string[]): Promise<{ stderr: string; stdout: string }> => {
      await writeFile(asked, "");
      const changed = await fileOf(texts.map((response) => ({ response, ground_truth: "" })));
      const flags = [changed, "--reward", counting, "--out", out, "--workers", "1", "--resume"];
      const { code, stdout, stderr } = await inProcess("score", ...flags);
      expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
      return { stdout, stderr };
    };
    const calls = async (): Promise<string[]> =>
      (await readFile(asked, "utf8"))
        .trim()
        .split("\n")
        .toSorted((a, b) => Number(a) - Number(b));
    const byIndex = async (): Promise<unknown> =>
      counted((await recordsOf(out)).toReversed().toSorted((a, b) => a.index - b.index)).map(
        ({ index, score }) => [index, score],
      );
    await run("10", "11", "12", "13", "12");
    // One came in front, one was changed, two changed places, and the last one is gone.
    const changed = await run("20", "11", "10", "12", "23");
    expect(changed.stderr).toContain(
      "3 of its samples are known, 2 (0, 4) are new, and 2 (3, 4) of the log are no longer in it\n",
    );
    expect(await calls()).toEqual(["20", "23"]);
    expect(changed.stdout).toMatch(/^samples +5, 3 of before$/m);
    expect(changed.stdout).toMatch(/^mean score +15\.2000$/m);
    // 20 is behind all others, as its place is that of 10; 23 has the place of the one that is gone.
    expect(await byIndex()).toEqual([
      [0, 10],
      [1, 11],
      [2, 12],
      [3, 13],
      [4, 23],
      [5, 20],
    ]);
    const shorter = await run("20", "23");
    expect((await calls()).join("")).toBe("");
    expect(shorter.stdout).toMatch(/^samples +2, 2 of before$/m);
    // One that takes the place of another and fails has not its score.
    await run("20", "11", "10", "12", "fails");
    expect(await calls()).toEqual(["fails"]);
    const { stdout } = await inProcess("rewards", "report", out, "--format", "json");
    expect(JSON.parse(stdout)).toMatchObject({ samples: 6, valid: 5, invalid: 1 });
  });

  test.runIf(
    inFull(
      "score-several.test.ts refuses other samples, and packages/reward-loop/test/record/reward-log.test.ts lines that are none",
    ),
  )("refuses rewards of other samples, and lines that are none", async () => {
    const other = await fileOf(solutions.map((one) => ({ ...one, question: "another" })));
    const { out, flags } = await going(ofReward);
    const refused = await inProcess("score", other, ...flags);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("are of other samples, first at index 0");
    await appendFile(out, '{"no": "record"}\n');
    const broken = await inProcess("score", input, ...flags);
    expect(broken).toMatchObject({ code: 2, stdout: "" });
    expect(broken.stderr).toContain(`${out}:21: the line is no record of a reward`);
  });
});

test.runIf(
  inFull(
    "score.test.ts stops a run that tells what was written, and --resume above goes on with what is there",
  ),
)("Ctrl-C finishes what is in flight; what was not begun is left for --resume", async () => {
  const out = join(await folder(), "rewards.jsonl");
  const flags = [
    "--demo",
    "--latency",
    "1000,1100",
    "--out",
    out,
    "--baseline",
    "0",
    "--workers",
    "1",
  ];
  const { child, ended } = start("score", ...flags);
  await shown({ child }, / 2,560, /, "stderr");
  child.kill("SIGINT");
  const { code, stderr } = await ended;
  expect(code).toBe(130);
  expect(stderr).toContain("samples in flight have 30 s to finish");
  expect(stderr).toContain("--resume goes on");
  const before = (await recordsOf(out)).length;
  expect(before).toBeGreaterThan(0);
  const { code: second, stdout } = await inProcess("score", ...flags, "--latency", "0", "--resume");
  expect(second).toBe(0);
  expect(stdout).toContain("is_correct: 2,560 of 2,560 samples have a score that agrees");
  const records = await recordsOf(out);
  expect(records.map(({ index }) => index)).toEqual([...Array(2560).keys()]);
});

let judge: Judge;
beforeAll(async () => {
  judge = await startJudge();
});
afterAll(() => judge[Symbol.asyncDispose]());

/** Says how many the judge has answered since. */
async function calling(): Promise<() => Promise<number>> {
  const answered = async (): Promise<number> => (await judge.stats()).answered;
  const before = await answered();
  return async () => (await answered()) - before;
}

test("what is known is not paid for again, and not more is spent than may be", async () => {
  const asked = await calling();
  const input = await fileOf(
    Array.from({ length: 30 }, (_, index) => ({ response: String(index), ground_truth: "1" })),
  );
  const directory = await folder();
  const flags = [input, "--reward", judged, "--reward-kwarg", `judgeUrl=${judge.baseUrl}`];
  flags.push("--baseline", "0", "--workers", "1", "--concurrency", "1", "--price", "0,0,1");
  flags.push("--cache", join(directory, "scores.sqlite"), "--fail-above", "1");
  const score = async (name: string, ...more: string[]): Promise<string> => {
    const { code, stdout } = await inProcess(
      "score",
      ...flags,
      "--out",
      join(directory, name),
      ...more,
    );
    expect(code).toBe(0);
    return stdout;
  };
  const capped = await score("one.jsonl", "--budget", "10");
  expect(capped).toMatch(/^invalid \(no score\) +20$/m);
  expect(capped).toMatch(/^20 of \d+ could not be scored \([\d.]+ %\): .+ \(SPEND_CAP, data\), /m);
  expect(capped).toContain("spent: 10.0000");
  expect(await asked()).toBe(10);
  const all = await score("two.jsonl");
  expect(all).toMatch(/^invalid \(no score\) +0$/m);
  expect(all).toContain("spent: 20.0000");
  expect(await asked()).toBe(30);
  const records = await recordsOf(join(directory, "two.jsonl"));
  expect(records.filter(({ attempts }) => attempts === 0)).toHaveLength(10);
});

test("--resume goes on with what is left of --budget", async () => {
  const asked = await calling();
  const lines = Array.from({ length: 20 }, (_, index) => ({
    response: String(index),
    ground_truth: "1",
  }));
  const out = join(await folder(), "rewards.jsonl");
  const flags = [await fileOf(lines), "--reward", judged, "--out", out, "--baseline", "0"];
  flags.push("--reward-kwarg", `judgeUrl=${judge.baseUrl}`, "--price", "0,0,1");
  flags.push("--workers", "1", "--concurrency", "1", "--resume", "--fail-above", "1");
  const score = async (budget: string): Promise<{ stdout: string; answered: number }> => {
    const { code, stdout, stderr } = await inProcess("score", ...flags, "--budget", budget);
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    return { stdout, answered: await asked() };
  };
  const first = await score("4");
  expect(first.answered).toBe(4);
  expect(first.stdout).toMatch(/^spent: 4\.0000$/m);
  const second = await score("10");
  expect(second.answered).toBe(10);
  expect(second.stdout).toMatch(/^spent: 10\.0000, 4\.0000 of it before$/m);
  expect(second.stdout).toMatch(/^invalid \(no score\) +10$/m);
  const third = await score("10");
  expect(third.answered).toBe(10);
  expect(third.stdout).toContain("10.0000 of 10.0000 spent, the cap is reached");
  // What is scored again on purpose has a budget of its own.
  const { code } = await inProcess(
    "rewards",
    "rescore",
    out,
    ...flags.slice(0, 3),
    ...flags.slice(7, 15),
    "--budget",
    "3",
  );
  expect(code).toBe(0);
  expect(await asked()).toBe(13);
});

test("what is known of a sample is known wherever it stands, and whichever of its prompt's answers it is", async () => {
  const asked = await calling();
  const directory = await folder();
  const answered = async (name: string, lines: readonly unknown[]): Promise<number> => {
    const flags = ["--reward", judged, "--reward-kwarg", `judgeUrl=${judge.baseUrl}`];
    flags.push("--cache", join(directory, "scores.sqlite"), "--baseline", "0", "--workers", "1");
    const out = join(directory, name);
    const { code, stderr } = await inProcess("score", await fileOf(lines), ...flags, "--out", out);
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    return asked();
  };
  const of = (...responses: string[]): unknown => ({ prompt: "1?", responses, ground_truth: "1" });
  expect(await answered("one.jsonl", [of("1", "2", "1"), of("3", "2")])).toBe(3);
  const numbered = { response: "1", ground_truth: "1", extra_info: { index: 7, question: "1?" } };
  expect(await answered("two.jsonl", [of("3"), of("2", "1", "2"), numbered])).toBe(4);
  const records = await recordsOf(join(directory, "two.jsonl"));
  expect(records.map(({ score }) => score)).toEqual([0, 0, 1, 0, 1]);
  // Only the one with a number of its own was asked for.
  expect(records.map(({ attempts }) => attempts)).toEqual([0, 0, 0, 0, 1]);
});

test("rollouts by verl's names are input, too, and rewards get what they are given", async () => {
  const input = await fileOf([
    { response: "4", ground_truth: "", data_source: "own", extra_info: { question: "2 + 2?" } },
    { response: "5", reward_model: { ground_truth: "" }, is_correct: true },
  ]);
  const out = join(await folder(), "rewards.jsonl");
  const reward = join(workspace, "packages/reward-loop/test/fixtures/rewards.ts:scaled");
  const flags = ["--reward", reward, "--reward-kwarg", "factor=10", "--reward-kwarg", "offset=1"];
  flags.push("--baseline", "0", "--workers", "1");
  const { code } = await inProcess("score", input, ...flags, "--out", out);
  expect(code).toBe(0);
  expect((await recordsOf(out)).map(({ score }) => score)).toEqual([41, 51]);
});

test("Ctrl-C waits for one time limit at most where a function blocks its thread", async () => {
  const from = await folder();
  const [input, reward, out] = ["in.jsonl", "block.ts", "rewards.jsonl"].map((name) =>
    join(from, name),
  ) as [string, string, string];
  const line = (response: string): string =>
    JSON.stringify({ data_source: "x", prompt: "p", response, ground_truth: "1" });
  await writeFile(input, ["", ...Array<string>(40).fill("block")].map(line).join("\n"));
  const source = `
    import { writeSync } from "node:fs";
    export const computeScore = ({ solutionStr }) => {
      if (solutionStr !== "block") return 1;
      writeSync(2, "it blocks");
      // It burns nothing while it does.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    };`;
  await writeFile(reward, source);
  const flags = [input, "--reward", reward, "--out", out, "--workers", "1", "--timeout", "5000"];
  const { child, ended } = start("score", ...flags, "--retries", "5");
  await shown({ child }, /it blocks/, "stderr");
  child.kill("SIGINT");
  const { code, stderr } = await ended;
  expect(code).toBe(130);
  expect(stderr).toContain("samples in flight have 5 s to finish");
  // All that stood ready behind it would have had a time limit each.
  const blocked = (await recordsOf(out)).filter(({ valid }) => !valid);
  expect(blocked.length).toBeLessThanOrEqual(2);
});
