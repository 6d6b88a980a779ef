/**
 * Resolves `runtimeEnv.workingDir`: the folder is relative to the current directory of the code
 * that names it, and must exist.
 */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { RuntimeEnv } from "../rpc/directory.ts";
import { driversOf, hasCodeRoots } from "../shared/code-roots.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { show } from "../shared/text/show.ts";

/**
 * Returns the settings with the absolute path of the folder, as the driver knows it. On a machine
 * to which the code was copied, only the driver can say whether the folder exists.
 *
 * @param where names whose setting it is
 * @throws InvalidOptionError when there is no such folder
 */
export function withWholePath<Env extends RuntimeEnv | undefined>(where: string, env: Env): Env {
  if (typeof env?.workingDir !== "string") return env;
  const path = resolve(env.workingDir);
  if (hasCodeRoots()) {
    return { ...env, workingDir: fileURLToPath(driversOf(pathToFileURL(path).href)) };
  }
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
    return { ...env, workingDir: path };
  }
  throw new InvalidOptionError(
    "runtimeEnv",
    `${where}: option runtimeEnv workingDir must be an existing folder, not ${show(env.workingDir)} (${path})`,
  );
}
