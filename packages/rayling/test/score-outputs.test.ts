/** Where rewards and tables go besides files of their own kind: standard output, CSV, gzip. */

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { folder, inProcess, rayling, start, startShell } from "./command.ts";
import { inFull } from "../../../test/fixtures/suite.ts";

const texts = ["1", '2, or "two"', "3\r\nthree", "", "=1+1"];

async function inputs(
  after?: (remove: () => Promise<void>) => void,
): Promise<{ input: string; reward: string; directory: string }> {
  const directory = await folder(after);
  const reward = join(directory, "reward.mjs");
  await writeFile(
    reward,
    `export function computeScore({ solutionStr }) {
      console.log("a line of the reward function");
      return { score: solutionStr.length, list: [1] };
    }`,
  );
  const input = join(directory, "solutions.jsonl");
  const lines = texts.map((response) => JSON.stringify({ response, ground_truth: "1" }));
  await writeFile(input, `${lines.join("\n")}\n`);
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
    const demo = `score --demo --baseline 0 --workers 1 --latency 1,2 --out -`;
    const piped = startShell(`{ "$@" ${demo}; echo "code $?" >&2; } | head -n 2`);
    const { stdout, stderr } = await piped.ended;
    expect(stdout.trimEnd().split("\n")).toHaveLength(2);
    expect(stderr).toMatch(/EPIPE; [\d,]+ of 2,560 rewards are in standard output\.\ncode 1\n$/);
  });
});

describe.runIf(existsSync("/dev/full"))("a full disk under its own output", () => {
  test("of stdout is a failure of one line, and the rewards are there", async () => {
    const { input, reward, directory } = await inputs();
    const out = join(directory, "rewards.jsonl");
    const scoring = `score ${input} --reward ${reward} --workers 1 --out`;
    const full = `rayling: standard output: ENOSPC: no space left on device, write`;
    for (const [command, told] of [
      [`${scoring} ${out}`, full],
      ["--help", full],
      [`${scoring} -`, `${full}; 0 of 5 rewards are in standard output.`],
    ]) {
      const { stdout, stderr } = await startShell(`"$@" ${command} >/dev/full; echo $? >&2`).ended;
      expect([command, stdout, stderr.trimEnd().split("\n").slice(-2)]).toEqual([
        command,
        "",
        [told, "1"],
      ]);
      expect(stderr).not.toContain("    at ");
    }
    expect((await readFile(out, "utf8")).trimEnd().split("\n")).toHaveLength(texts.length);
  });

  test("of stderr ends no run", async () => {
    const { input, reward, directory } = await inputs();
    const out = join(directory, "rewards.jsonl");
    const command = `"$@" score ${input} --reward ${reward} --workers 1 --out ${out} 2>/dev/full`;
    const { stdout } = await startShell(`${command}; echo code $?`).ended;
    expect(stdout).toMatch(/wrote 5 records to [^]*code 0\n$/);
  });
});

describe("rayling score --out rewards.jsonl.gz", () => {
  test("is written under gzip, reported, shown and exported", async () => {
    const { input, reward, directory } = await inputs();
    const out = join(directory, "rewards.jsonl.gz");
    const run = ["score", input, "--reward", reward, "--out", out, "--workers", "1"];
    expect(await inProcess(...run)).toMatchObject({ code: 0 });
    const lines = gunzipSync(await readFile(out))
      .toString()
      .trimEnd()
      .split("\n");
    expect(lines).toHaveLength(5);
    expect((await inProcess("rewards", "report", out)).stdout).toMatch(/^samples +5$/m);
    expect((await inProcess("rewards", "show", out)).stderr).toBe("5 of 5 samples\n");
    const beside = await inProcess("rewards", "export", out);
    expect(beside.stdout).toBe(`wrote 5 rows to ${join(directory, "rewards.parquet")} (Parquet)\n`);
    const again = await inProcess(...run, "--resume");
    expect(again.stdout).toMatch(/^samples +5, 5 of before$/m);
    const anew = await inProcess(...run);
    expect(anew.stderr).toMatch(/is now in \S+\/rewards\.\S+Z\.jsonl\.gz\n/);
  });

  test.runIf(
    inFull(
      "score-killed.test.ts is killed and goes on, and packages/reward-loop/test/record/reward-log.test.ts cuts off gzip",
    ),
  )("kill -9: what was written is gone on with", async () => {
    const out = join(await folder(), "rewards.jsonl.gz");
    const demo = ["score", "--demo", "--baseline", "0", "--workers", "1", "--out", out, "--resume"];
    const { child, ended } = start(...demo, "--latency", "40,80");
    const bytes = async (): Promise<number> => (await stat(out).catch(() => ({ size: 0 }))).size;
    await expect.poll(bytes, { timeout: 60_000, interval: 5 }).toBeGreaterThan(20_000);
    child.kill("SIGKILL");
    await ended;
    // And its end is cut off.
    await truncate(out, (await bytes()) - 9);
    const { code, stdout } = await inProcess(...demo, "--latency", "0");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^samples +2,560, [\d,]+ of before$/m);
    const { stdout: report } = await inProcess("rewards", "report", out, "--format", "json");
    expect(JSON.parse(report)).toMatchObject({ samples: 2560, valid: 2560, superseded: 0 });
  });
});

describe("rewards export", () => {
  let scored = "";
  const closing: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    const { input, reward, directory } = await inputs((remove) => void closing.push(remove));
    const log = join(directory, "rewards.jsonl");
    const run = ["score", input, "--reward", reward, "--out", log, "--workers", "1"];
    expect(await inProcess(...run)).toMatchObject({ code: 0 });
    scored = await readFile(log, "utf8");
    // The first one is scored again.
    const [first = ""] = scored.split("\n");
    scored += `${first.replace('"score":', '"score":9')}\n`;
  });
  afterAll(async () => {
    for (const close of closing) await close();
  });

  async function logOf(): Promise<string> {
    const log = join(await folder(), "rewards.jsonl");
    await writeFile(log, scored);
    return log;
  }
  const exported = (log: string, ...flags: readonly string[]): ReturnType<typeof inProcess> =>
    inProcess("rewards", "export", log, ...flags);

  const hasPython = ((): boolean => {
    try {
      execFileSync("python3", ["-c", ""]);
      return true;
    } catch {
      return false;
    }
  })();

  test.skipIf(!hasPython)("CSV is what Python reads, with or without gzip", async () => {
    const log = await logOf();
    const read = (path: string): Record<string, string>[] => {
      const program =
        "import csv, gzip, json, sys; o = gzip.open if sys.argv[1].endswith('.gz') else open; print(json.dumps(list(csv.DictReader(o(sys.argv[1], 'rt', newline='')))))";
      const text = execFileSync("python3", ["-c", program, path], { encoding: "utf8" });
      return JSON.parse(text) as Record<string, string>[];
    };
    for (const ending of ["csv", "csv.gz"]) {
      const table = log.replace("jsonl", ending);
      const { code, stdout } = await exported(log, "--out", table);
      expect({ code, stdout }).toEqual({ code: 0, stdout: `wrote 5 rows to ${table} (CSV)\n` });
      const rows = read(table).toSorted((a, b) => Number(a["index"]) - Number(b["index"]));
      expect(rows.map(({ response }) => response)).toEqual(texts);
      expect(rows[1]).toMatchObject({ valid: "true", errorCode: "", prompt: "", groundTruth: "1" });
      expect(JSON.parse(rows[1]?.["extra"] ?? "")).toMatchObject({ list: [1] });
    }
    const all = log.replace("jsonl", "all.csv");
    expect((await exported(log, "--out", all, "--all-lines")).stdout).toContain("wrote 6 rows");
  });

  test("JSON Lines are the records that count", async () => {
    const log = await logOf();
    const lines = log.replace("jsonl", "jsonl.gz");
    expect(await exported(log, "--out", lines)).toMatchObject({ code: 0 });
    const records = gunzipSync(await readFile(lines))
      .toString()
      .trimEnd()
      .split("\n");
    expect(records).toHaveLength(5);
    const beside = await exported(log, "--as", "jsonl");
    expect(beside.stdout).toBe(
      `wrote 5 rows to ${log.replace(".jsonl", ".counted.jsonl")} (JSON Lines)\n`,
    );
  });

  test("a name says which it is, unless a flag does; Parquet is not compressed twice", async () => {
    const log = await logOf();
    const odd = join(await folder(), "table.csv");
    expect(await exported(log, "--out", odd, "--as", "parquet")).toMatchObject({ code: 0 });
    expect((await readFile(odd)).subarray(0, 4).toString()).toBe("PAR1");
    const twice = await exported(log, "--out", `${odd}.parquet.gz`);
    expect(twice).toMatchObject({ code: 2, stdout: "" });
    expect(twice.stderr).toContain("Parquet is compressed by itself");
    for (const ending of ["json", "ndjson", "tsv", "txt", "jsonl.bz2", "json.gz"]) {
      const { code, stdout, stderr } = await exported(log, "--out", log.replace("jsonl", ending));
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain("names no form of a table");
    }
    expect(await readdir(dirname(log))).toEqual(["rewards.jsonl"]);
    const named = log.replace("jsonl", "ndjson");
    expect(await exported(log, "--out", named, "--as", "jsonl")).toMatchObject({ code: 0 });
    const nowhere = await exported(log, "--out", "/no/such/folder/table.csv");
    expect(nowhere).toMatchObject({ code: 2, stdout: "" });
    expect(nowhere.stderr).toContain("/no/such/folder/table.csv");
  });
});
