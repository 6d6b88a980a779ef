/**
 * The wheel and the client, by their own tests in python/tests: they need nothing but Python, and
 * start this checkout's processes.
 */

import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { pythonFolder, pythonProblem, runProgram } from "./python-commands.ts";

const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

vi.setConfig({ testTimeout: 600_000 });

const env = {
  RAYLING_SERVE: JSON.stringify([process.execPath, main]),
  RAYLING_NODE: process.execPath,
};

test.for([
  ["test_rayling_client", "scores, tries again, goes on over a kill, and does what TRL asks of it"],
  ["test_runtime", "finds Node and the runtime, of one version"],
  ["test_connection", "tells of answers that cannot be read, and lets no call wait for ever"],
  ["test_verl_function", "scores for verl in a loop that its processes share, and leaves nothing"],
])("%s: the Python side %s", async ([module], { skip }) => {
  const reason = pythonProblem();
  if (reason !== undefined) skip(reason);
  const args = ["-B", "-m", "unittest", "discover", "-s", `${pythonFolder}/tests`];
  const { stderr } = await runProgram("python3", [...args, "-p", `${module}.py`], env);
  expect(stderr).toMatch(/^Ran [1-9]\d* tests?[^]*^OK( \(skipped=\d+\))?$/m);
});
