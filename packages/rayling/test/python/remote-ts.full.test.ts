/**
 * TypeScript classes on a real Ray, by the tests and examples in Python. In the full suite alone,
 * because it asks PyPI for Ray, and starts clusters.
 */

import { beforeAll, expect, test, vi } from "vitest";
import { pythonFolder, runProgram } from "./python-commands.ts";
import { type Venv, venvWith } from "./python-venv.ts";

vi.setConfig({ testTimeout: 1_200_000, hookTimeout: 900_000 });

const env = {
  RAYLING_NODE: process.execPath,
  NODE_OPTIONS: "",
  PYTHONPATH: [`${pythonFolder}/src`, pythonFolder].join(":"),
  RAY_raylet_start_wait_time_s: "150",
};

let venv: Venv = {};

beforeAll(async () => {
  venv = await venvWith(["ray[default]", "numpy", "pytest"]);
});

test("calls, streams, restarts, names, and nothing is left after kills", async ({ skip }) => {
  const { python = "", problem } = venv;
  if (problem !== undefined) skip(problem);
  const args = ["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"];
  const { stdout } = await runProgram(
    python,
    [...args, `${pythonFolder}/tests/test_remote_ts.py`],
    env,
  );
  expect(stdout).toMatch(/^\d+ passed(?!.*skipped)/m);
});

test.for([
  ["open", "RangeError: an answer has 16 numbers, and references have 32"],
  ["remote_ts", "TypeError: a guess is an integer, not 0.5"],
])("the example %s runs", async ([name, said], { skip }) => {
  const { python = "", problem } = venv;
  if (problem !== undefined) skip(problem);
  const example = `${pythonFolder}/../examples/python/${name}/main.py`;
  const { stdout } = await runProgram(python, ["-B", example], env);
  expect(stdout).toContain(said);
});
