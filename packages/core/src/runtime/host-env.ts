/**
 * The environment variables of a host: those of the driver, with what the runtimeEnv sets or changes.
 *
 * Hosts share Node's cache of compiled code: the first that loads a module strips it of its types and compiles it, the others read that. It lies where
 * NODE_COMPILE_CACHE says, else where Node itself would have it, in the system's temporary folder. NODE_DISABLE_COMPILE_CACHE=1 turns it off.
 */
import { tmpdir } from "node:os";
import { join } from "node:path";

export function hostEnv(env: Readonly<Record<string, string>> | undefined): NodeJS.ProcessEnv {
  return {
    NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"),
    ...process.env,
    ...env,
  };
}
