/** The JavaScript runtime that the wheel has inside: made of this checkout, and run without it. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { pythonFolder, runProgram } from "./python-commands.ts";

test("the runtime of the wheel scores, through its judge that waits", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-runtime-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const runtime = join(folder, "js");
  await runProgram(process.execPath, [join(pythonFolder, "bundle.ts"), runtime]);
  const [reward, solutions] = [join(folder, "reward.mjs"), join(folder, "solutions.jsonl")];
  await writeFile(reward, "export const computeScore = () => 0.25;\n");
  await writeFile(solutions, JSON.stringify({ response: "4", ground_truth: "4" }));
  const dist = join(runtime, "node_modules/rayling/dist");
  // As python/src/rayling/runtime.py starts it.
  const command = [`--import=${pathToFileURL(join(dist, "python/imports.js")).href}`];
  command.push(join(dist, "cli/main.js"), "score");
  const flags = ["--reward", reward, "--solutions", solutions, "--latency", "1"];
  const out = join(folder, "rewards.jsonl");
  const args = [...command, ...flags, "--out", out];
  const { stdout } = await runProgram(process.execPath, args, { NODE_OPTIONS: "" });
  expect(stdout).toContain("0.25");
  // Where the wheel is installed there is no npm.
  expect(stdout).toContain(`\n  rayling rewards view ${out}\n`);
});
