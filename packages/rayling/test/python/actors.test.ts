/**
 * TypeScript classes in Python programs, by the tests in python/tests, which start processes of this
 * checkout.
 */

import { expect, test, vi } from "vitest";
import { checkoutEnv, pytest, pythonFolder, pythonProblem, runProgram } from "./python-commands.ts";
import { inFull } from "../../../../test/fixtures/suite.ts";

vi.setConfig({ testTimeout: 600_000 });

async function pytestProblem(): Promise<string | undefined> {
  const problem = pythonProblem();
  if (problem !== undefined) return problem;
  return runProgram("python3", ["-c", "import pytest"]).then(
    () => undefined,
    () => "python3 has no pytest",
  );
}

test("a class is opened, called, read as a stream, closed and killed", async ({ skip }) => {
  const problem = await pytestProblem();
  if (problem !== undefined) skip(problem);
  expect(await pytest("python3", "test_actors")).toMatch(/^\d+ passed/m);
});

test.runIf(
  inFull("python.test.ts calls the client as TRL does, and a class in TypeScript is called above"),
)("the reward function of the example for TRL scores as TRL calls it", async ({ skip }) => {
  const problem = pythonProblem();
  if (problem !== undefined) skip(problem);
  const example = `${pythonFolder}/../examples/python/trl_reward/main.py`;
  const { stdout } = await runProgram("python3", ["-B", example], checkoutEnv);
  expect(stdout).toBe("answer [1.0, 0.1, 0.0, None]\n");
});
