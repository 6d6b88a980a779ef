/** `rayling score` on good input: every solution scored once, the table, the records, trouble told and survived. */

import { readdir, readFile, readlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  fileOf,
  folder,
  inProcess,
  rayling,
  recordsOf,
  shown,
  start,
  startPiped,
  startShell,
} from "./command.ts";
import { dataFile } from "../../../test/fixtures/data-file.ts";
import { inFull, sized } from "../../../test/fixtures/suite.ts";

const gsm8k = dataFile("gsm8k/example_model_solutions.jsonl");
const troublemaker = "packages/reward-loop/test/fixtures/troublemaker.ts";

test("the demo scores all its solutions, agrees with them, and compares with one at a time", async () => {
  const out = join(await folder(), "rewards.jsonl");
  const { code, stdout, stderr } = await rayling(
    "score",
    "--demo",
    "--latency",
    "1,3",
    "--baseline",
    "8",
    "--out",
    out,
  );
  expect(code).toBe(0);
  for (const row of [
    "samples",
    "wall time",
    "throughput",
    "speed-up",
    "mean score",
    "invalid \\(no score\\)",
    "latency p50",
    "latency p95",
    "latency p99",
  ]) {
    expect(stdout).toMatch(new RegExp(`^${row} .*\\d`, "m"));
  }
  expect(stdout).toContain("8 of 2,560");
  expect(stdout).toMatch(/^\* estimated for all 2,560: 8 valid ones /m);
  // The mean of eight samples is no other figure of the mean of all.
  expect(stdout).toMatch(/^mean score +[\d.]+$/m);
  expect(stdout).toContain("is_correct: 2,560 of 2,560 samples have a score that agrees");
  expect(stdout).toContain(`wrote 2,560 records to ${out}`);
  // No terminal here: lines, no control characters.
  expect(stderr).toMatch(/2,560 \/ 2,560, mean score [\d.]+, 0 in flight/);
  expect(`${stdout}${stderr}`).not.toContain("\u001b");

  const records = await recordsOf(out);
  expect(records.map(({ index }) => index)).toEqual([...Array(2560).keys()]);
  expect(new Set(records.map(({ question, solution }) => `${question} ${solution}`)).size).toBe(
    2560,
  );
  expect(records[0]).toMatchObject({
    question: 0,
    solution: "solver_a",
    valid: true,
    score: 1,
    error: null,
    attempts: 1,
  });
  expect(records[0]?.extra).toEqual({ score: 1, answered: true });
});

test.skipIf(
  gsm8k.isMissing || !inFull("score-judge.test.ts scores a part of the same file through a judge"),
)("5,276 real model solutions: 5,276 scores agree with is_correct", async () => {
  const out = join(await folder(), "rewards.jsonl");
  const reward = "examples/rewards/gsm8k-reward.ts";
  const { code, stdout } = await rayling(
    "score",
    "--demo",
    "--solutions",
    gsm8k.path,
    "--reward",
    reward,
    "--latency",
    "0",
    "--out",
    out,
  );
  expect(code).toBe(0);
  expect(stdout).toContain("is_correct: 5,276 of 5,276 samples have a score that agrees");
  expect(stdout).toMatch(/^invalid \(no score\) +0$/m);
  const records = await recordsOf(out);
  expect(records.length).toBe(5276);
  const lines = (await readFile(gsm8k.path, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, { is_correct: boolean }>);
  expect(
    records.filter(
      ({ question, solution, score }) => (score === 1) !== lines[question]?.[solution]?.is_correct,
    ),
  ).toEqual([]);
});

const latencies: readonly [string, string][] = [
  ["after a simulated judge", "1,5"],
  ["at once", "0"],
];
describe.each(sized({ gate: latencies.slice(0, 1), full: latencies }))(
  "trouble %s",
  (_, latency) => {
    test("is told by code and count; everything else is scored", async () => {
      const trouble = new Map([
        [5, "throw"],
        [11, "hang"],
        [17, "exit"],
        [23, "garbage"],
        [29, "exit"],
      ]);
      const solutions = await fileOf(
        Array.from({ length: 20 }, (__, question) => ({
          question: `q${question}`,
          ground_truth: "g",
          first: { solution: trouble.get(2 * question) ?? String(2 * question) },
          note: "not a solution",
          second: { solution: trouble.get(2 * question + 1) ?? String(2 * question + 1) },
        })),
      );
      const out = join(await folder(), "rewards.jsonl");
      const { code, stdout, stderr } = await inProcess(
        "score",
        "--solutions",
        solutions,
        "--reward",
        `${troublemaker}:sync`,
        "--workers",
        "1",
        "--timeout",
        "400",
        "--latency",
        latency,
        "--out",
        out,
      );
      expect(code).toBe(0);
      expect(stdout).toMatch(/^invalid \(no score\) +5$/m);
      expect(stdout).toContain(
        "1 of 40 could not be scored (2.5 %): the reward function threw (SCORE_THREW, user-code), for example: this sample is out of range",
      );
      expect(stdout).toContain("was not done in time (SCORE_TIMEOUT, ");
      expect(stdout).toMatch(
        /^2 of 40 could not be scored \(5\.0 %\): .+ \(EXECUTOR_DIED, user-code\), /m,
      );
      expect(stdout).toContain("returned no score (INVALID_SCORE, user-code), for example: ");
      // Nothing is called once more where nobody asked for it.
      expect(stderr).not.toContain("baseline:");
      expect(stdout).not.toContain("one at a time");
      expect(stdout).not.toContain("is_correct");
      const records = await recordsOf(out);
      expect(records.map(({ index, score }) => [index, score])).toEqual(
        Array.from({ length: 40 }, (__, index) => [index, trouble.has(index) ? null : index]),
      );
    });
  },
);

test("--manager remote: what aborts its process costs its own sample, and neither the run nor the baseline", async () => {
  const solutions = await fileOf(
    Array.from({ length: 20 }, (_, question) => ({
      question: `q${question}`,
      ground_truth: "g",
      only: { solution: question === 7 ? "abort" : String(question) },
    })),
  );
  const out = join(await folder(), "rewards.jsonl");
  const { code, stdout, stderr } = await inProcess(
    "score",
    "--solutions",
    solutions,
    "--reward",
    `${troublemaker}:sync`,
    "--workers",
    "1",
    "--manager",
    "remote",
    "--baseline",
    "20",
    "--out",
    out,
  );
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^1 of 20 could not be scored \(5\.0 %\): .+ \(EXECUTOR_DIED, user-code\), /m,
  );
  expect(stderr).not.toContain("baseline: given up");
  expect((await recordsOf(out)).map(({ score }) => score)).toEqual(
    Array.from({ length: 20 }, (_, index) => (index === 7 ? null : index)),
  );
});

test("extras that JSON cannot carry are texts and cost no score", async () => {
  const solutions = await fileOf([{ question: "q", ground_truth: "g", a: { solution: "s" } }]);
  const out = join(await folder(), "rewards.jsonl");
  const { code } = await inProcess(
    "score",
    "--solutions",
    solutions,
    "--reward",
    "packages/rayling/test/fixtures/big-extra.ts",
    "--workers",
    "1",
    "--out",
    out,
  );
  expect(code).toBe(0);
  const [record] = await recordsOf(out);
  expect(record).toMatchObject({
    valid: true,
    score: 1,
    extra: { count: expect.stringMatching(/^\d+$/) as string },
    asText: ["$.extra.count"],
  });
});

test("solutions come from a pipe as well", async () => {
  const solutions = await fileOf([
    { question: "1 + 1?", ground_truth: "A: 2", a: { solution: "A: 2" }, b: { solution: "A: 3" } },
  ]);
  const out = join(await folder(), "rewards.jsonl");
  const flags = ["--demo", "--solutions", "/dev/stdin", "--latency", "0", "--baseline", "0"];
  flags.push("--workers", "1");
  const { ended } = startPiped(solutions, "score", ...flags, "--out", out);
  expect(await ended).toMatchObject({ code: 0 });
  expect((await recordsOf(out)).map(({ score }) => score)).toEqual([1, 0]);
});

const signals = [
  ["Ctrl-C", "SIGINT", 130, "stopped"],
  ["the end of its terminal", "SIGHUP", 129, "hung up"],
] as const;
// Signals have their words and codes in a table.
test.each(sized({ gate: signals.slice(0, 1), full: [...signals] }))(
  "%s stops the run, tells what was written, and that stays",
  async (...row) => {
    const [, signal, exitCode, word] = row;
    const out = join(await folder(), "rewards.jsonl");
    const flags = ["--demo", "--latency", "1000,1100", "--workers", "1", "--out", out];
    const { child, ended } = start("score", ...flags);
    await shown({ child }, / 2,560, /, "stderr");
    child.kill(signal);
    const { code, stdout, stderr } = await ended;
    expect(code).toBe(exitCode);
    expect(stdout).toBe("");
    const told =
      /^rayling: ([a-z ]+); ([\d,]+) of 2,560 rewards are in (\S+) \(--resume goes on\)\.$/m.exec(
        stderr,
      );
    expect([told?.[1], told?.[3]]).toEqual([word, out]);
    const records = await recordsOf(out);
    expect(records.length).toBe(Number(told?.[2]?.replaceAll(",", "")));
    expect(records.length).toBeGreaterThan(0);
  },
);

const isLinux = process.platform === "linux";

test.runIf(isLinux)("Ctrl-C ends a run that waits for a pipe that stays open", async () => {
  const out = join(await folder(), "rewards.jsonl");
  // The shell keeps the other end for as long as the test runs.
  const pipe = join(dirname(out), "pipe");
  const { child, ended } = startShell(
    `mkfifo ${pipe}; exec 3<>${pipe}; "$@" score - --demo --out ${out} <${pipe} & echo pid $!; wait $!; echo code $?`,
  );
  const [, pid] = await shown({ child }, /pid (\d+)/);
  await expect.poll(() => isReading(Number(pid))).toBe(true);
  process.kill(Number(pid), "SIGINT");
  const { stdout, stderr } = await ended;
  expect(stdout).toContain("code 130");
  expect(stderr).toBe("rayling: stopped\n");
});

/** It has opened its standard input once more, beside that and the shell's end. */
async function isReading(pid: number): Promise<boolean> {
  const folderOfFiles = `/proc/${pid}/fd`;
  const files = await readdir(folderOfFiles);
  const opened = await Promise.all(
    files.map((file) => readlink(join(folderOfFiles, file)).catch(() => "")),
  );
  return opened.filter((path) => path.endsWith("/pipe")).length > 2;
}
