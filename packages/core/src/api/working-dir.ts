/** `runtimeEnv.workingDir` at the edge: a folder is meant from the current directory of whoever names it, and must be there. */
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { RuntimeEnv } from "../rpc/directory.ts";
import { driversOf, hasCodeRoots } from "../shared/code-roots.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { show } from "../shared/text/show.ts";

/**
 * The same with the whole path of the folder, as the driver knows it. On a machine where the code was brought to, there is nothing to look at: whether
 * the folder is there is the driver's to say.
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
    `${where}: option runtimeEnv workingDir must be a folder that is there, not ${show(env.workingDir)} (${path})`,
  );
}
