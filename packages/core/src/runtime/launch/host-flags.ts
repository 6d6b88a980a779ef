/**
 * The command-line flags of a host with settings of its own, and the files that a host with limited
 * permissions must still be able to read.
 *
 * Flags are checked with the options (shared/runtime-env.ts). A flag that only Node can refuse ends
 * the host before it is ready, with Node's own words as the cause. A host with limited reading may
 * read the runtime, its dependencies, and the package of the module that it is started for.
 */
import { existsSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ownFolder } from "../../shared/own-files.ts";
import type { Permissions, RuntimeEnv } from "../../rpc/directory.ts";
import { present } from "../../shared/errors/internal.ts";

export interface FlagsRequest {
  readonly runtimeEnv: RuntimeEnv | undefined;
  /** The module that the host is started for. */
  readonly moduleUrl: string;
  /** The runtime's own directories. */
  readonly directories: readonly string[];
  /** The folders of copied code, and of its dependencies. */
  readonly codeFolders?: readonly string[];
}

export function hostFlags(request: FlagsRequest): string[] {
  const { execArgv = [], permissions } = request.runtimeEnv ?? {};
  const flags = [...linkFlags(), ...execArgv];
  if (permissions === undefined) return flags;
  return [...flags, ...permissionFlags(permissions, request)];
}

/**
 * Where links are not followed, a host does not follow that to its own file either: it would load
 * this package from there, and the user's module another copy of it by the link.
 */
function linkFlags(): string[] {
  const { NODE_OPTIONS: options = "" } = process.env;
  const all = [...process.execArgv, ...options.split(/\s+/)];
  return all.includes("--preserve-symlinks") ? ["--preserve-symlinks-main"] : [];
}

/**
 * Returns flags of the driver that a process inherits, without those that say what to run or test,
 * or where a debugger connects.
 */
export function processFlags(execArgv: readonly string[]): string[] {
  return withValues(execArgv)
    .filter(([flag = ""]) => !ofProgram.test(flag))
    .flat();
}

const ofProgram =
  /^(-e|-p|-pe|-i|--eval|--print|--interactive|--input[-_]type|--inspect|--debug-port|--watch|--test|--run|--entry-url)\b/;

/**
 * Returns flags of the driver that decide how modules load, which warnings appear, and what an
 * unhandled rejection does. A thread with flags of its own does not inherit them; other flags apply
 * to the whole process.
 */
export function moduleFlags(execArgv: readonly string[]): string[] {
  return withValues(execArgv)
    .filter(([flag = ""]) => ofModules.test(flag))
    .flat();
}

/**
 * Returns the flags of a thread with those of its own; undefined: it inherits the driver's. It does
 * not where they say how to read a program that is no file, since Node then loads no file in it.
 */
export function threadFlags(
  execArgv: readonly string[],
  own: readonly string[] = [],
): string[] | undefined {
  const isOfText = execArgv.some((flag) => ofText.test(flag));
  if (own.length === 0 && !isOfText) return undefined;
  return [...moduleFlags(execArgv), ...own];
}

const ofText = /^--input[-_]type\b/;

/** Flags that Node accepts for a thread: all of its module flags, on 22.18 and on 24. */
const ofModules = new RegExp(
  `^(${[
    "-C|-r|--conditions|--require|--import|--loader|--experimental-loader|--disable-warning",
    "--(no-)?(preserve-symlinks(-main)?|enable-source-maps|strip-types|require-module|addons|global-search-paths)",
    "--(no-)?experimental-(transform-types|strip-types|require-module|detect-module|import-meta-resolve|print-required-tla)",
    "--(no-)?experimental-((wasm|addon|json|vm)-modules|import-text|package-map|default-type|specifier-resolution)",
    "--(no-)?experimental-(sqlite|webstorage|websocket|eventsource|global-navigator)",
    "--unhandled-rejections",
    "--(no-)?(warnings|deprecation|(trace|throw|pending)-(warnings|deprecation))",
  ].join("|")})(=|$)`,
);

/** Returns each flag with its value, where that is an argument of its own. */
function withValues(execArgv: readonly string[]): string[][] {
  const flags: string[][] = [];
  for (let index = 0; index < execArgv.length; index++) {
    const flag = present(execArgv[index], "flag");
    const isCode = /^(-e|-p|-pe|--eval|--print)$/.test(flag);
    const next = execArgv[index + 1];
    const hasValue = next !== undefined && (isCode || !next.startsWith("-"));
    flags.push(hasValue ? [flag, next] : [flag]);
    if (hasValue) index += 1;
  }
  return flags;
}

function permissionFlags(
  permissions: Permissions,
  { moduleUrl, directories, codeFolders = [] }: FlagsRequest,
): string[] {
  const code = codeFolders.length > 0 ? codeFolders : packageOf(moduleUrl);
  const read = [...packageOf(ownFolder.href), ...code, ...(permissions.allowFsRead ?? [])];
  const write = [...directories, ...(permissions.allowFsWrite ?? [])];
  const { allowChildProcess, allowWorker, allowAddons, allowNet } = permissions;
  return [
    "--permission",
    ...[...new Set([...read, ...directories])].map((path) => `--allow-fs-read=${place(path)}`),
    ...new Set(write.map((path) => `--allow-fs-write=${place(path)}`)),
    ...(allowChildProcess === true ? ["--allow-child-process"] : []),
    ...(allowWorker === true ? ["--allow-worker"] : []),
    ...(allowAddons === true ? ["--allow-addons"] : []),
    ...(allowNet === true ? ["--allow-net"] : []),
  ];
}

function place(path: string): string {
  return path === "*" ? path : resolve(path);
}

/**
 * Returns the package of a module, by its name and by its real path, and the folders of its
 * dependencies.
 */
function packageOf(moduleUrl: string): string[] {
  if (!moduleUrl.startsWith("file:")) return [];
  const file = fileURLToPath(moduleUrl);
  const places = new Set<string>();
  for (const path of new Set([file, existsSync(file) ? realpathSync(file) : file])) {
    places.add(rootOf(path));
    for (let at = dirname(path); ; at = dirname(at)) {
      const modules = join(at, "node_modules");
      if (existsSync(modules)) places.add(modules);
      if (dirname(at) === at) break;
    }
  }
  return [...places];
}

/** Returns the nearest directory with a package.json, or the directory of the file. */
function rootOf(file: string): string {
  for (let at = dirname(file); ; at = dirname(at)) {
    if (existsSync(join(at, "package.json"))) return at;
    if (dirname(at) === at) return dirname(file);
  }
}
