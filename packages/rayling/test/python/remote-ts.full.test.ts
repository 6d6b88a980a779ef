/**
 * TypeScript classes on a real Ray, by the tests and examples in Python. In the full suite alone,
 * because it asks PyPI for Ray, and starts clusters.
 */

import { beforeAll, expect, test, vi } from "vitest";
import { checkoutEnv, pytest, pythonFolder, runProgram } from "./python-commands.ts";
import { orSkip, type PackagedPython, pythonWith, rayEnv } from "./python-venv.ts";

vi.setConfig({ testTimeout: 1_200_000, hookTimeout: 900_000 });

let found: PackagedPython;

beforeAll(async () => {
  found = await pythonWith(["ray[default]", "numpy", "pytest"]);
});

test.for([
  { file: "test_actors", what: "arrays of NumPy travel, too" },
  {
    file: "test_remote_ts",
    what: "calls, streams, restarts, names, and nothing is left after kills",
  },
  { file: "test_on_ray", what: "labels, refusals and places are those of Ray" },
])("$file: $what", async ({ file }, { skip }) => {
  const stdout = await pytest(orSkip(found, skip), file, rayEnv);
  expect(stdout).toMatch(/^\d+ passed(?!.*skipped)/m);
});

test.for([
  ["open", "RangeError: an answer has 16 numbers, and references have 32"],
  ["remote_ts", "TypeError: a guess is an integer, not 0.5"],
])("the example %s runs", async ([name, said], { skip }) => {
  const example = `${pythonFolder}/../examples/python/${name}/main.py`;
  const env = { ...checkoutEnv, ...rayEnv };
  const { stdout } = await runProgram(orSkip(found, skip), ["-B", example], env);
  expect(stdout).toContain(said);
});
