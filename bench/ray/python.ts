/**
 * A Python that has Ray: the one that was given, or one in an environment of its own, made on the
 * first run and kept in out/ (git ignores it).
 */
import { execFile } from "node:child_process";
import { access, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { field } from "../measure/printed.ts";

/** The release that the aims are written against. */
export const rayVersion = "2.58.0";

const folder = join(import.meta.dirname, "../../out", `ray-${rayVersion}`);
/** Written last: an environment without it was left half made. */
const mark = join(folder, "complete");

/** There is no Python, no network, or something is missing in it; the benchmark itself is fine. */
export class NoRayError extends Error {
  readonly code = "NO_RAY";
}

/**
 * @param given path of an interpreter that has ray and numpy; undefined to make one
 * @throws NoRayError saying what is missing
 */
export async function pythonWithRay(
  given: string | undefined,
  say: (text: string) => void,
): Promise<string> {
  if (given === undefined) return ownPython(say);
  await mustImport(given, ["ray", "numpy"]);
  return given;
}

/**
 * @param given path of an interpreter
 * @throws NoRayError saying what is missing
 */
export async function mustImport(given: string, modules: readonly string[]): Promise<void> {
  await run(
    given,
    ["-c", `import ${modules.join(", ")}`],
    `--python ${given}: cannot import ${modules.join(", ")}`,
  );
}

async function ownPython(say: (text: string) => void): Promise<string> {
  const python = join(folder, "bin", "python");
  if (await exists(mark)) return python;
  await run("python3", ["--version"], "there is no python3");
  say(`installing Ray ${rayVersion} in ${folder} (once, about a minute)`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await run("python3", ["-m", "venv", folder], "python3 makes no virtual environment");
  await run(
    python,
    [
      "-m",
      "pip",
      "install",
      "--quiet",
      "--disable-pip-version-check",
      `ray[default]==${rayVersion}`,
      "numpy",
    ],
    `Ray ${rayVersion} cannot be installed (no network, or not for this Python?); --python PATH takes an interpreter that has it`,
  );
  await run(
    python,
    ["-c", "import ray, numpy"],
    `Ray ${rayVersion} was installed and does not import`,
  );
  await writeFile(mark, "");
  return python;
}

async function run(file: string, args: readonly string[], problem: string): Promise<void> {
  try {
    await promisify(execFile)(file, args);
  } catch (cause) {
    const { message } = cause instanceof Error ? cause : new Error(String(cause));
    const stderr = field(cause, "stderr");
    const said = typeof stderr === "string" ? stderr : "";
    const [lastLine = message] = said.trim().split("\n").slice(-1);
    throw new NoRayError(`${problem}: ${lastLine === "" ? message : lastLine}`, { cause });
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    // Not there, or not readable: made anew.
    return false;
  }
}
