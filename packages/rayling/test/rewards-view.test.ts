/** Pages of the command line: `rayling rewards view` until Ctrl-C, and `--dashboard` while a run lasts. */

import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { fileOf, folder, inProcess, start, workspace } from "./command.ts";

const reward = join(workspace, "examples/rewards/gsm8k-reward.ts");

const sums = [
  { question: "What is 1 + 1?", ground_truth: "A: 2", a: { solution: "A: 2" } },
  { question: "What is 2 + 2?", ground_truth: "A: 4", a: { solution: "A: 5" } },
];

/** Scores with a page. Returns the log. */
async function served(flag: string): Promise<string> {
  const log = join(await folder(), "rewards.jsonl");
  const scored = ["score", await fileOf(sums), "--reward", reward, "--out", log, "--workers", "1"];
  const run = await inProcess(...scored, flag);
  expect(run).toMatchObject({ code: 0 });
  expect(run.stderr).toMatch(/^dashboard, .*:\nhttp:\/\/127\.0\.0\.1:\d+\/\?token=\S{32,}\n/);
  const longest = Math.max(...run.stderr.split("\n").map(({ length }) => length));
  expect(longest).toBeLessThanOrEqual(80);
  return log;
}

test("--watch serves a page while a run lasts", async () => {
  await served("--watch");
});

test("so does --dashboard; the link of rewards view leads to the samples of the log, and Ctrl-C ends it", async () => {
  const log = await served("--dashboard");
  const { child, ended } = start("rewards", "view", log, "--port", "0");
  const input = child.stdout ?? expect.unreachable();
  const [url] = (await once(createInterface({ input }), "line")) as [string];
  const link = await fetch(url, { redirect: "manual" });
  const token = new URL(url).searchParams.get("token");
  const base = new URL(link.headers.get("location") ?? "", url);
  const answer = await fetch(new URL("api/samples?show=zeros", base), {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(await answer.json()).toMatchObject({
    total: 2,
    found: 1,
    rows: [{ index: 1, score: 0, response: "A: 5" }],
  });
  child.kill("SIGINT");
  expect(await ended).toMatchObject({ code: 0, stderr: "" });
});

test.each<[string[], string]>([
  [["nowhere.jsonl"], "nowhere.jsonl"],
  [[join(workspace, "package.json")], "package.json"],
  [["log.jsonl", "--port", "70000"], "port"],
])("what cannot be shown is named: %j", async (args, named) => {
  const { code, stderr } = await inProcess("rewards", "view", ...args);
  expect(code).toBe(2);
  expect(stderr).toContain(named);
});
