/**
 * Rewards in TypeScript in verl's own reward loop, in training steps of verl on a CPU, and in the
 * example with a judge. In the full suite alone, because it asks PyPI for verl, and starts clusters.
 */

import { beforeAll, expect, test, vi } from "vitest";
import { checkoutEnv, pytest, pythonFolder, runProgram } from "./python-commands.ts";
import { orSkip, type PackagedPython, pythonWith, rayEnv } from "./python-venv.ts";

vi.setConfig({ testTimeout: 2_400_000, hookTimeout: 1_800_000 });

let found: PackagedPython;

beforeAll(async () => {
  // verl imports cachetools and does not name it.
  found = await pythonWith(["verl==0.9.1", "cachetools", "pytest"]);
});

test.for([
  {
    file: "test_verl",
    what: "rewards and columns are those of a grader in Python; limits are shared",
  },
  { file: "test_verl_step", what: "a policy learns" },
  { file: "test_verl_function", what: "values of NumPy are plain, too" },
])("$file: $what", async ({ file }, { skip }) => {
  const stdout = await pytest(orSkip(found, skip), file, rayEnv);
  expect(stdout).toMatch(/^\d+ passed(?!.*skipped)/m);
});

test("the example with a judge scores its rollouts", async ({ skip }) => {
  const example = `${pythonFolder}/../examples/python/verl_judge/run.py`;
  const env = { ...checkoutEnv, ...rayEnv };
  const { stdout } = await runProgram(orSkip(found, skip), ["-B", example], env);
  const said = /^64 rollouts, (?<right>\d+) right, (?<missing>\d+) without a score/m.exec(stdout);
  const [right, missing] = [Number(said?.groups?.["right"]), Number(said?.groups?.["missing"])];
  // Every second answer is right; a judge that fails five times leaves one without a score.
  expect(right).toBeLessThanOrEqual(32);
  expect(right + missing).toBeGreaterThanOrEqual(32);
});
