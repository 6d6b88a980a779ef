/** Virtual environments of Python, kept between runs: Ray takes a minute to install. */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { pythonProblem, runProgram } from "./python-commands.ts";

/** One of the two. */
export interface Venv {
  readonly python?: string;
  readonly problem?: string;
}

/** @param packages as pip takes them */
export async function venvWith(packages: readonly string[]): Promise<Venv> {
  const problem = pythonProblem();
  if (problem !== undefined) return { problem };
  const key = createHash("sha256").update(packages.join()).digest("hex").slice(0, 16);
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const folder = join(cache, "rayling-tests", `venv-${key}`);
  const python = join(folder, "bin/python");
  if (existsSync(join(folder, "complete"))) return { python };
  await mkdir(join(cache, "rayling-tests"), { recursive: true });
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
