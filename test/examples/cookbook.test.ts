/** Programs of the cookbook that somebody stops, or that need a judge; test/examples/examples.test.ts runs the others. */
import { execFile, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { outcomesIn } from "@rayling/reward-loop";
import { expect, onTestFinished, test } from "vitest";
import { startJudge } from "../servers/judge.ts";
import { isFull } from "../fixtures/suite.ts";
import { root } from "../workspace/source.ts";

const run = promisify(execFile);

/** Ends it by that signal as soon as a line says so; returns its lines and how it ended. */
async function stopped(
  args: readonly string[],
  { at, by }: { readonly at: RegExp; readonly by: NodeJS.Signals },
): Promise<{ readonly lines: readonly string[]; readonly end: readonly unknown[] }> {
  const program: ChildProcess = spawn(process.execPath, args, {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(program, "exit");
  const lines: string[] = [];
  for await (const line of createInterface({ input: program.stdout! })) {
    lines.push(line);
    if (at.test(line) && !program.killed) program.kill(by);
  }
  return { lines, end: await ended };
}

test("the pool ends in order on Ctrl-C, with what it has", async () => {
  const { lines, end } = await stopped(["examples/cookbook/pool-with-progress.ts", "400", "5000"], {
    at: /^1 %/,
    by: "SIGINT",
  });
  expect(lines.at(-1)).toMatch(/^stopped after \d+ of 400 pieces: \d+ found so far$/);
  expect(end).toEqual([130, null]);
});

test("the judge pipeline goes on after a kill, and asks for nothing twice", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-cookbook-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const log = join(folder, "rewards.jsonl");
  await using judge = await startJudge({
    seed: 7,
    reward: join(root, "examples/rewards/arithmetic-reward.ts"),
    faults: { refuse: 0.1, error: 0.1 },
  });
  const command = ["examples/cookbook/judge-pipeline.ts", judge.baseUrl, log];
  const { end } = await stopped(command, { at: /^100 samples/, by: "SIGKILL" });
  expect(end).toEqual([null, "SIGKILL"]);

  const { stdout } = await run(process.execPath, command, { cwd: root });
  expect(stdout).toMatch(/^400 scores with a mean of 0\.\d+, 0 without one$/m);
  expect(stdout).toMatch(/^\d+ by rule$/m);
  const outcomes = await outcomesIn(log);
  expect(outcomes.size).toBe(400);

  // And once more; packages/rayling/test/score-killed.test.ts counts what a run asks again.
  if (!isFull) return;
  const { answered } = await judge.stats();
  await run(process.execPath, command, { cwd: root });
  expect((await judge.stats()).answered).toBe(answered);
});
