/** Python, as far as it is on this machine. */

import { execFile, execFileSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { workspace } from "../command.ts";

export const pythonFolder: string = join(workspace, "python");

/** Why Python's tests cannot run here; undefined where they can. */
export function pythonProblem(): string | undefined {
  const question = "import sys; print(sys.version_info >= (3, 10))";
  try {
    const answer = execFileSync("python3", ["-c", question], { encoding: "utf8" });
    return answer.trim() === "True" ? undefined : "python3 is older than 3.10";
  } catch {
    // Not there.
    return "there is no python3";
  }
}

const run = promisify(execFile);

/** Rejects, with all that it wrote, where it ends with another code than 0. */
export async function runProgram(
  program: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return run(program, args, { env: { ...process.env, ...env }, maxBuffer: 2 ** 26 });
}

/** Processes of this checkout, on this Node. */
export const checkoutEnv: Readonly<Record<string, string>> = {
  RAYLING_NODE: process.execPath,
  NODE_OPTIONS: "",
  PYTHONPATH: [`${pythonFolder}/src`, pythonFolder].join(":"),
};

/** Runs one file of python/tests. Rejects where a test fails; returns the last lines of pytest. */
export async function pytest(
  python: string,
  file: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const args = ["-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"];
  const all = { ...checkoutEnv, ...env };
  const { stdout } = await runProgram(python, [...args, `${pythonFolder}/tests/${file}.py`], all);
  return stdout;
}
