/** `rayling rewards show`: what was asked, answered and scored, out of the log or out of its input. */

import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readParquet } from "@rayling/data-proto";
import { beforeAll, describe, expect, test } from "vitest";
import { fileOf, folder, inProcess, startPiped, workspace } from "./command.ts";

const reward = join(workspace, "examples/rewards/gsm8k-reward.ts");

const questions = Array.from({ length: 6 }, (_, n) => ({
  question: `What is ${n} + 1?`,
  ground_truth: `A: ${n + 1}`,
  a: { solution: n % 3 === 0 ? "A: wrong\nquite" : `A: ${n + 1}` },
}));

interface Scored {
  readonly input: string;
  readonly log: string;
}

/** A log with texts, whose input is gone. */
let ofOne = "";
beforeAll(async () => {
  const closing: (() => Promise<void>)[] = [];
  const after = (remove: () => Promise<void>): void => void closing.push(remove);
  const { log } = await scored(await folder(after));
  ofOne = await readFile(log, "utf8");
  for (const close of closing) await close();
});

/** A copy of it. */
async function logOf(): Promise<string> {
  const log = join(await folder(), "rewards.jsonl");
  await writeFile(log, ofOne);
  return log;
}

async function scored(directory: string, ...flags: readonly string[]): Promise<Scored> {
  const input = join(directory, "solutions.jsonl");
  await writeFile(input, questions.map((one) => `${JSON.stringify(one)}\n`).join(""));
  const log = join(directory, "rewards.jsonl");
  const run = ["score", input, "--reward", reward, "--out", log, "--workers", "1", ...flags];
  expect(await inProcess(...run)).toMatchObject({ code: 0 });
  return { input, log };
}

const show = (...flags: readonly string[]): ReturnType<typeof inProcess> =>
  inProcess("rewards", "show", ...flags);

/** Samples 0 and 3 are wrong. */
function expectZeros(stdout: string): void {
  const blocks = stdout.split(/^(?=sample )/m);
  expect(blocks).toHaveLength(2);
  for (const [at, n] of [0, 3].entries()) {
    expect(blocks[at]).toContain(
      `sample ${n} (${n}, a): score 0\n  prompt:\n    What is ${n} + 1?\n  response:\n    A: wrong\n    quite\n  ground truth:\n    A: ${n + 1}\n`,
    );
  }
}

test("the zeros, with prompts and responses out of the log alone", async () => {
  const log = await logOf();
  const zeros = await show(log, "--score", "0");
  expect(zeros).toMatchObject({ code: 0, stderr: "2 of 2 samples\n" });
  expectZeros(zeros.stdout);
  const json = await show(log, "--score", "0", "--limit", "1", "--format", "json");
  expect(json.stderr).toBe("1 of 2 samples, --limit 2 shows all\n");
  expect(JSON.parse(json.stdout)).toMatchObject({
    found: 2,
    samples: [{ index: 0, score: 0, prompt: "What is 0 + 1?", response: "A: wrong\nquite" }],
  });
  expect((await show(log, "--above", "0")).stderr).toBe("4 of 4 samples\n");
  expect((await show(log, "--below", "0.5")).stderr).toBe("2 of 2 samples\n");
  expect((await show(log, "--failed")).stderr).toBe("0 of 0 samples\n");
  expect((await show(log)).stderr).toBe("6 of 6 samples\n");
});

test("out of the input, where the log points there: by its own word, or by its name", async () => {
  const { input, log } = await scored(await folder(), "--no-texts");
  expect(await readFile(log, "utf8")).not.toContain("What is");
  expectZeros((await show(log, "--score", "0")).stdout);
  const moved = `${input}.moved.jsonl`;
  await rename(input, moved);
  expect(await show(log)).toMatchObject({ code: 2, stdout: "" });
  expectZeros((await show(log, moved, "--score", "0")).stdout);
});

test("of a pipe there is no input to look into, which is said", async () => {
  const log = join(await folder(), "rewards.jsonl");
  const flags = ["score", "/dev/stdin", "--reward", reward, "--out", log, "--no-texts"];
  flags.push("--workers", "1");
  expect(await startPiped(await fileOf(questions), ...flags).ended).toMatchObject({ code: 0 });
  const shown = await show(log, "--score", "0");
  expect(shown.stderr).toContain("the log has no prompts and responses: name its input behind it");
  expect(shown.stdout).toMatch(/^sample 0 \(0, a\): score 0$/m);
});

test("only what counts is shown, and nothing that a terminal obeys", async () => {
  const log = await logOf();
  const [first = "", ...others] = (await readFile(log, "utf8")).trimEnd().split("\n");
  const record = JSON.parse(first) as object;
  const again = JSON.stringify({ ...record, score: 0.5, response: "\u001b[31mred" });
  await writeFile(log, `${[first, ...others, again].join("\n")}\n`);
  expect((await show(log, "--score", "0")).stderr).toBe("1 of 1 samples\n");
  const half = await show(log, "--score", "0.5");
  expect(half.stdout).toContain("response:\n    red\n");
  expect(half.stdout).not.toContain("\u001b");
});

describe("what cannot be shown", () => {
  test.each([
    [["/no/such/log"], /\/no\/such\/log/],
    [["x", "--score", "none"], /It must be a number/],
    [["x", "--limit", "0"], /It must be a whole number of at least 1/],
  ])("%j", async (flags, message) => {
    const { code, stdout, stderr } = await show(...flags);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
  });
});

test("tables have prompts, responses and truths", async () => {
  const log = await logOf();
  const table = join(await folder(), "rewards.parquet");
  expect(await inProcess("rewards", "export", log, "--out", table)).toMatchObject({ code: 0 });
  const rows = (await Array.fromAsync(readParquet(table))).map(({ value }) => value);
  const byIndex = rows.toSorted((a, b) => Number(a["index"]) - Number(b["index"]));
  expect(
    byIndex.map(({ prompt, response, groundTruth }) => [prompt, response, groundTruth]),
  ).toEqual(questions.map(({ question, a, ground_truth: truth }) => [question, a.solution, truth]));
});
