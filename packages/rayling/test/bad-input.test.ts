/** Wrong input: one clear line on stderr, exit code 2, nothing on stdout, and results of earlier runs stay. */

import { readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { fileOf, folder, inProcess, rayling, shown, start, workspace } from "./command.ts";

const good = { question: "q", ground_truth: "A: 1", a: { solution: "A: 1" } };

describe("flags", () => {
  test.each([
    [["--nope"], /unknown option '--nope'/],
    [["--workers", "0"], /--workers.*'0'.*at least 1/],
    [["--workers", "two"], /--workers.*'two'/],
    [["--concurrency", "1.5"], /--concurrency/],
    [["--executors", "-1"], /--executors/],
    [["--latency", "5,1"], /--latency.*MIN,MAX/],
    [["--latency", "a"], /--latency/],
    [["--timeout", "soon"], /--timeout/],
    [["--seed", "x"], /--seed/],
    [["--baseline", "-3"], /--baseline/],
    [["--workers"], /--workers.*argument missing/],
    [["one.jsonl", "more"], /too many arguments/],
    [["one.jsonl", "--solutions", "two.jsonl"], /one\.jsonl and --solutions two\.jsonl/],
    [["--reward-kwarg", "novalue"], /--reward-kwarg.*KEY=VALUE/],
    [["--manager", "nobody"], /--manager nobody.*Known: naive, remote, rate_limited, .*gdpo, dapo/],
    [["--manager-option", "nope=1"], /rayling: --manager-option nope: .*managerOptions\.nope must/],
    [
      ["--manager", "rate_limited", "--manager-option", "maxRpm=-1"],
      /rayling: --manager-option maxRpm: .*above 0/,
    ],
    [["--rpm", "0"], /--rpm.*a number above 0/],
    [["--rpm", "many"], /--rpm.*a number above 0/],
    [["--total-timeout", "-1"], /--total-timeout.*or 0 for no limit/],
    [["--max-in-flight", "many"], /--max-in-flight.*"auto"/],
    [["--retries", "-1"], /--retries/],
    [["--price", "1"], /--price.*IN,OUT/],
    [["--budget", "-1"], /--budget.*at least 0/],
    [["--budget", "5"], /--budget needs --price/],
    [["--cache", "/no/such/folder/cache"], /--cache: .*score cache \/no\/such\/folder\/cache/],
    [["--cache", "-"], /--cache -: it must be a file, or :memory:/],
    [["--replay", "-"], /--replay.*'-' is invalid.*not standard input or output/],
    [["--keep-stale"], /--keep-stale needs --resume/],
    [["--rescore-stale"], /--rescore-stale needs --resume/],
    [["--solutions", "/no/such/file.jsonl"], /\/no\/such\/file\.jsonl/],
    [["--solutions", "/tmp"], /\/tmp: .*EISDIR/],
    [["--reward", "/no/such/reward.ts"], /reward\.ts.*not found/],
    [["--reward", "examples/rewards/gsm8k-reward.ts:nothing"], /no export nothing.*computeScore/],
    [["--reward", "examples/rewards/gsm8k-reward.ts:"], /--reward/],
    [["--reward", "packages/reward-loop/test/fixtures/throws-on-load.ts"], /broken on purpose/],
    [
      ["--reward", "packages/reward-loop/test/fixtures/exits-on-load.ts"],
      /exits-on-load\.ts.*exited with code 3/,
    ],
    [["--out", "/no/such/folder/rewards.jsonl"], /--out.*\/no\/such\/folder/],
  ])("%j", async (flags, message) => {
    const { code, stdout, stderr } = await inProcess("score", "--demo", ...flags);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(stderr).toMatch(message);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
  });

  test("without --demo, what is missing is named", async () => {
    expect(await inProcess("score")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--solutions") as string,
    });
    const solutions = await fileOf([good]);
    expect(await inProcess("score", "--solutions", solutions)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--reward") as string,
    });
  });

  test("an unknown command", async () => {
    expect(await rayling("xylophone")).toMatchObject({
      code: 2,
      stdout: "",
      stderr: "rayling: unknown command 'xylophone'\n",
    });
  });
});

describe("a bad line is told with its number and reason, and an earlier rewards.jsonl stays", () => {
  test.each([
    ["{oops", "not valid JSON"],
    [[1, 2], "not an object"],
    [{ ground_truth: "g", a: { solution: "s" } }, '"question"'],
    [{ question: "q", a: { solution: "s" } }, '"ground_truth"'],
    [{ question: "q", ground_truth: "g", a: "s" }, "there is no response"],
    [{ responses: { a: 1 }, ground_truth: "g" }, '"responses" is neither a text nor a list'],
    [
      { reponse: "x", ground_truth: "g" },
      'there are reponse, ground_truth; is it "reponse"? (--response-key',
    ],
    [{ question: "q", ground_truth: "g", a: { solution: 5 } }, '"a.solution"'],
  ])("%j", async (line, reason) => {
    const solutions = await fileOf([good, "", line, good]);
    const out = join(await folder(), "rewards.jsonl");
    await writeFile(out, "from before\n");
    const { code, stdout, stderr } = await inProcess(
      "score",
      "--demo",
      "--solutions",
      solutions,
      "--out",
      out,
    );
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(`${solutions}:3: `);
    expect(stderr).toContain(reason);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    expect(await readFile(out, "utf8")).toBe("from before\n");
  });

  test("a file without solutions", async () => {
    const solutions = await fileOf([]);
    expect(await inProcess("score", "--demo", "--solutions", solutions)).toMatchObject({
      code: 2,
      stderr: `rayling: ${solutions}: it is empty\n`,
    });
  });
});

test("--help names every flag, and --version the version", async () => {
  const { code, stdout, stderr } = await inProcess("score", "--help");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  for (const flag of [
    "solutions",
    "reward",
    "demo",
    "workers",
    "concurrency",
    "executors",
    "latency",
    "timeout",
    "out",
    "seed",
    "baseline",
    "resume",
    "rpm",
    "retries",
  ]) {
    expect(stdout).toContain(`--${flag}`);
  }
  expect(stdout).toContain("Exit codes");
  expect(await inProcess("--help")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("score") as string,
  });
  expect((await inProcess("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test.each<[string, number, RegExp]>([
  ["help nope", 2, /^rayling: unknown command 'nope' \(Did you mean node\?\)$/m],
  ["help score more", 2, /^rayling: score has no command 'more'$/m],
  ["help rewards nope", 2, /^rayling: unknown command 'nope'/m],
  ["rewards help nope", 2, /^rayling: unknown command 'nope'/m],
  ["help score --help", 0, /^Usage: rayling score/m],
  ["help rewards show", 0, /^Usage: rayling rewards show/m],
  ["rewards help show", 0, /^Usage: rayling rewards show/m],
  ["help", 0, /^Usage: rayling \[options\]/m],
])("%s", async (words, wanted, text) => {
  const { code, stdout, stderr } = await inProcess(...words.split(" "));
  expect(code).toBe(wanted);
  expect(code === 0 ? stdout : stderr).toMatch(text);
});

test.each(["1:2:3", "::1:80", "a]:80", "[::1]:70000", ":80"])(
  "serve --listen %s is no host and port",
  async (place) => {
    const { code, stderr } = await inProcess("serve", "--listen", place);
    expect([code, stderr]).toEqual([2, expect.stringContaining("It must be host:port.")]);
  },
);

describe("--out", () => {
  test("is never the file of the solutions or of the reward function", async () => {
    const solutions = await fileOf([good]);
    const before = await readFile(solutions, "utf8");
    const overSolutions = await inProcess(
      "score",
      "--demo",
      "--solutions",
      solutions,
      "--out",
      solutions,
    );
    expect(overSolutions).toMatchObject({ code: 2 });
    expect(overSolutions.stderr).toContain("is the file of --solutions");
    expect(await readFile(solutions, "utf8")).toBe(before);
    const reward = join(await folder(), "reward.mjs");
    await writeFile(reward, "export const computeScore = () => 1;");
    const overReward = await inProcess(
      "score",
      "--demo",
      "--solutions",
      solutions,
      "--reward",
      reward,
      "--out",
      reward,
    );
    expect(overReward.stderr).toContain("is the file of --reward");
    expect(await readFile(reward, "utf8")).toContain("computeScore");
  });

  test("is never the cache, there already or not", async () => {
    const solutions = await fileOf([good]);
    const both = join(await folder(), "both");
    const flags = ["score", "--demo", "--solutions", solutions, "--out", both];
    for (const _ of ["new", "written"]) {
      const refused = await inProcess(...flags, "--cache", both);
      expect(refused).toMatchObject({ code: 2, stdout: "" });
      expect(refused.stderr).toContain("is the file of --cache");
      await writeFile(both, "scores");
    }
    expect(await readFile(both, "utf8")).toBe("scores");
    const rewards = join(await folder(), "rewards.json");
    const reward = {
      reward: join(workspace, "examples/rewards/arithmetic-reward.ts"),
      cache: both,
    };
    await writeFile(rewards, JSON.stringify({ rewards: { one: reward } }));
    const several = await inProcess("score", solutions, "--rewards", rewards, "--out", both);
    expect(several.stderr).toContain("is a cache of --rewards");
    expect(await readFile(both, "utf8")).toBe("scores");
  });

  test("is never written by two runs at once", async () => {
    const out = join(await folder(), "rewards.jsonl");
    const own = ["--solutions", await fileOf([good, good]), "--workers", "1"];
    const run = ["score", "--demo", ...own, "--baseline", "0", "--out", out];
    const first = start(...run, "--latency", "60000");
    await shown(first, /in flight/, "stderr");
    for (const flags of [[], ["--resume"]]) {
      const second = await inProcess(...run, ...flags);
      expect(second).toMatchObject({ code: 2, stdout: "" });
      const who = `process ${first.child.pid}`;
      expect(second.stderr).toContain(`--out: ${out} is being written by ${who}`);
    }
    first.child.kill("SIGKILL");
    await first.ended;
    const after = await inProcess(...run, "--latency", "0", "--resume");
    expect(after).toMatchObject({ code: 0 });
    expect(await readdir(dirname(out))).toEqual(["rewards.jsonl"]);
  });

  test("that cannot be written to its end says how far it is", async () => {
    const demo = ["--demo", "--baseline", "0", "--workers", "1"];
    const full = await inProcess("score", ...demo, "--out", "/dev/full");
    expect(full).toMatchObject({ code: 1, stdout: "" });
    expect(full.stderr).toMatch(/ENOSPC.*of 2,560 rewards are in \/dev\/full/);
  });
});
