/**
 * The environment variables of a host: those of the driver, with what the runtimeEnv sets or changes, and without the tokens among them: what actors run, and the
 * programs that they start, need none.
 *
 * Hosts share Node's cache of compiled code: the first that loads a module strips it of its types and compiles it, the others read that. Whoever could write there could
 * give hosts other code, so it is a directory of this user alone; NODE_COMPILE_CACHE names another, and NODE_DISABLE_COMPILE_CACHE=1 turns it off.
 */
import { lstatSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { warn } from "../../shared/text/warning.ts";
import { isOfUserAlone } from "../control/user-directory.ts";

export function hostEnv(env: Readonly<Record<string, string>> | undefined): NodeJS.ProcessEnv {
  const own = { ...withoutTokens(process.env), ...env };
  if (own["NODE_COMPILE_CACHE"] !== undefined) return own;
  const cache = codeCache();
  return cache === undefined ? own : { NODE_COMPILE_CACHE: cache, ...own };
}

/**
 * They open other machines, the metrics, reward models, and the scores of rayling serve; the last
 * says that a test runs, and its output is for the test runner.
 */
const ofDriver: readonly string[] = [
  "RAYLING_NODES",
  "RAYLING_METRICS_TOKEN",
  "RAYLING_ROUTER_TOKEN",
  "RAYLING_REWARD_MODEL_API_KEY",
  "RAYLING_SERVE_TOKEN",
  "NODE_TEST_CONTEXT",
];

/** The environment for programs that need none of them. */
export function withoutTokens(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !ofDriver.includes(name)));
}

let warned = false;

/** Undefined, with a warning, where somebody else has made it or may enter it: hosts then compile for themselves. */
function codeCache(): string | undefined {
  const directory = join(tmpdir(), `rayling-code-${process.getuid?.() ?? "user"}`);
  let problem: string;
  try {
    mkdirSync(directory, { mode: 0o700, recursive: true });
    if (isOfUserAlone(lstatSync(directory))) return directory;
    problem = "is not a directory of this user alone";
  } catch (error) {
    problem = `cannot be made: ${(error as Error).message}`;
  }
  if (!warned) {
    warned = true;
    warn(
      `${directory} ${problem}: hosts share no compiled code, and start more slowly. Remove it, or name another in NODE_COMPILE_CACHE`,
    );
  }
  return undefined;
}
