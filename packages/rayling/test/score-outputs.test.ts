/** Where rewards and tables go besides files of their own kind: standard output, CSV, gzip. */

import { execFileSync } from "node:child_process";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { fileOf, folder, inProcess, rayling, startShell } from "./command.ts";

const texts = ["1", '2, or "two"', "3\r\nthree", "", "=1+1"];

async function inputs(): Promise<{ input: string; reward: string; directory: string }> {
  const directory = await folder();
  const reward = join(directory, "reward.mjs");
  await writeFile(
    reward,
    `export function computeScore({ solutionStr }) {
      console.log("a line of the reward function");
      return { score: solutionStr.length, list: [1] };
    }`,
  );
  const input = await fileOf(texts.map((response) => ({ response, ground_truth: "1" })));
  return { input, reward, directory };
}

describe("rayling score --out -", () => {
  test("stdout has the rewards and nothing else; all else is on stderr", async () => {
    const { input, reward } = await inputs();
    const run = ["score", input, "--reward", reward, "--out", "-", "--workers", "1"];
    const { code, stdout, stderr } = await rayling(...run);
    expect(code).toBe(0);
    const records = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { index: number; response: string; score: number });
    expect(
      records.toSorted((a, b) => a.index - b.index).map(({ response, score }) => [response, score]),
    ).toEqual(texts.map((text) => [text, text.length]));
    expect(stderr).toContain("a line of the reward function");
    expect(stderr).toContain("wrote 5 records to standard output");
    expect(await readdir(".")).not.toContain("-");
  });

  test("cannot be gone on with, and ends when nobody reads any more", async () => {
    const { input, reward } = await inputs();
    const resumed = await inProcess("score", input, "--reward", reward, "--out", "-", "--resume");
    expect(resumed).toMatchObject({ code: 2, stdout: "" });
    expect(resumed.stderr).toContain("--resume needs a file in --out");
    const demo = `score --demo --baseline 0 --latency 1,2 --out -`;
    const piped = startShell(`{ "$@" ${demo}; echo "code $?" >&2; } | head -n 2`);
    const { stdout, stderr } = await piped.ended;
    expect(stdout.trimEnd().split("\n")).toHaveLength(2);
    expect(stderr).toMatch(/EPIPE; [\d,]+ of 2,560 rewards are in standard output\.\ncode 1\n$/);
  });
});
