/**
 * Pythons that have packages of PyPI: the one that RAYLING_TEST_PYTHON names, where it has them, or
 * a virtual environment that is kept between runs. Ray takes a minute to install, and verl several,
 * with the build of torch that pip's own configuration says.
 */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { pythonProblem, runProgram } from "./python-commands.ts";

export type PackagedPython = { readonly python: string } | { readonly problem: string };

/** Ray waits as long for processes of its own on a busy machine, and nothing is downloaded. */
export const rayEnv: Readonly<Record<string, string>> = {
  RAY_raylet_start_wait_time_s: "150",
  HF_HUB_OFFLINE: "1",
};

/** @param packages as pip takes them: names, with extras or with `==` and a version */
export async function pythonWith(packages: readonly string[]): Promise<PackagedPython> {
  const named = process.env["RAYLING_TEST_PYTHON"];
  if (named !== undefined && (await has(named, packages))) return { python: named };
  const problem = pythonProblem();
  if (problem !== undefined) return { problem };
  const { stdout: version } = await runProgram("python3", ["-c", "import sys; print(sys.version)"]);
  const key = createHash("sha256")
    .update([version, ...packages].join("\n"))
    .digest("hex");
  const folder = join(await cacheFolder(), `venv-${key.slice(0, 16)}`);
  const python = join(folder, "bin/python");
  if (existsSync(join(folder, "complete"))) return { python };
  await rm(folder, { recursive: true, force: true });
  await runProgram("python3", ["-m", "venv", folder]);
  try {
    const pip = ["-m", "pip", "--disable-pip-version-check", "install", "-q"];
    await runProgram(python, [...pip, ...packages]);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    return { problem: `PyPI lacks ${packages.join(", ")}, or is not there: ${String(error)}` };
  }
  await mkdir(join(folder, "complete"));
  return { python };
}

/** Returns the interpreter, or skips the test with the reason why there is none. */
export function orSkip(found: PackagedPython, skip: (reason: string) => never): string {
  return "python" in found ? found.python : skip(found.problem);
}

const hasThem = `
import importlib.metadata, re, sys
for one in sys.argv[1:]:
    name, _, version = re.sub(r"\\[.*?\\]", "", one).partition("==")
    found = importlib.metadata.version(name)
    if version and found != version:
        sys.exit(f"{name} is {found}, and not {version}")
`;

async function has(python: string, packages: readonly string[]): Promise<boolean> {
  return runProgram(python, ["-c", hasThem, ...packages]).then(
    () => true,
    () => false,
  );
}

/** The user's cache, or the folder of temporary files where that cannot be written. */
async function cacheFolder(): Promise<string> {
  const folder = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "rayling-tests");
  try {
    await mkdir(folder, { recursive: true });
    return folder;
  } catch {
    // A home that is not there, or is not ours.
    const temporary = join(tmpdir(), "rayling-tests");
    await mkdir(temporary, { recursive: true });
    return temporary;
  }
}
