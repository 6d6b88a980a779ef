/**
 * The environment variables of a host: those of the driver with the changes of the runtimeEnv, and
 * without tokens, which actors and their child processes do not need.
 *
 * Hosts share Node's compile cache: the first one that loads a module strips its types and compiles
 * it, and the others read the result. NODE_COMPILE_CACHE names another directory, and
 * NODE_DISABLE_COMPILE_CACHE=1 turns the cache off.
 */
import { inEnvironment } from "./env-references.ts";
import { codeDirectory } from "../../shared/compiled/code-directory.ts";
import { warn } from "../../shared/text/warning.ts";

export function hostEnv(env: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const own = forFiles(inEnvironment(withoutTokens(process.env), env));
  if (own["NODE_COMPILE_CACHE"] !== undefined) return own;
  const cache = codeCache();
  return cache === undefined ? own : { NODE_COMPILE_CACHE: cache, ...own };
}

/**
 * Returns an environment whose flags let a process or thread run a file: with --input-type Node
 * runs texts only, as that of `-e`.
 */
export function forFiles(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: options } = env;
  const rest = options?.replaceAll(inputType, "");
  return rest === options ? env : { ...env, NODE_OPTIONS: rest };
}

const inputType = /(?<!\S)"?--input[-_]type(?:=|"?\s+"?)[\w-]+"?(?!\S)/g;

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
  const { path, directory, problem } = codeDirectory();
  if (problem === undefined) return directory;
  if (!warned) {
    warned = true;
    warn(
      `${path} ${problem}: hosts share no compiled code, and start more slowly. Remove it, or name another in NODE_COMPILE_CACHE`,
    );
  }
  return undefined;
}
