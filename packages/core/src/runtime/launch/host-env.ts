/**
 * The environment variables of a host: those of the driver with the changes of the runtimeEnv, and
 * without tokens, which actors and their child processes do not need.
 *
 * Hosts share Node's compile cache: the first one that loads a module strips its types and compiles
 * it, and the others read the result. A writer to that cache could change the code of hosts, so the
 * cache is private to this user. NODE_COMPILE_CACHE names another directory, and
 * NODE_DISABLE_COMPILE_CACHE=1 turns the cache off.
 */
import { lstatSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { warn } from "../../shared/text/warning.ts";
import { isOfUserAlone } from "../control/user-directory.ts";
import { asError } from "../../shared/errors/thrown.ts";

export function hostEnv(env: Readonly<Record<string, string>> | undefined): NodeJS.ProcessEnv {
  const own = { ...withoutTokens(process.env), ...env };
  if (own["NODE_COMPILE_CACHE"] !== undefined) return own;
  const cache = codeCache();
  return cache === undefined ? own : { NODE_COMPILE_CACHE: cache, ...own };
}

/**
 * Tokens of other machines, of the metrics, of reward models, and of the scores of rayling serve.
 * The last variable marks a test run, whose output is for the test runner.
 */
const ofDriver: readonly string[] = [
  "RAYLING_NODES",
  "RAYLING_METRICS_TOKEN",
  "RAYLING_ROUTER_TOKEN",
  "RAYLING_REWARD_MODEL_API_KEY",
  "RAYLING_SERVE_TOKEN",
  "NODE_TEST_CONTEXT",
];

/** Variables of reward models with a name end with that name. */
const ofNamed = /^RAYLING_(?:ROUTER_TOKEN|REWARD_MODEL_API_KEY)_/;

/** Returns an environment without tokens, for other programs. */
export function withoutTokens(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !ofDriver.includes(name) && !ofNamed.test(name)),
  );
}

let warned = false;

/**
 * Returns undefined, with a warning, when another user owns the directory or may enter it: hosts
 * then compile for themselves.
 */
function codeCache(): string | undefined {
  const directory = join(tmpdir(), `rayling-code-${process.getuid?.() ?? "user"}`);
  let problem: string;
  try {
    mkdirSync(directory, { mode: 0o700, recursive: true });
    if (isOfUserAlone(lstatSync(directory))) return directory;
    problem = "is not a directory of this user alone";
  } catch (error) {
    problem = `cannot be made: ${asError(error).message}`;
  }
  if (!warned) {
    warned = true;
    warn(
      `${directory} ${problem}: hosts share no compiled code, and start more slowly. Remove it, or name another in NODE_COMPILE_CACHE`,
    );
  }
  return undefined;
}
