/**
 * Whole commands, as a reader types them in a clone of the repository, in a project, or where the
 * Python package is installed.
 */
import { isSource } from "../../own-files.ts";
import { plain } from "./output.ts";

/** The Python package's command gives Node this module to begin with, and nobody else does. */
const isOfPython = process.execArgv.some((flag) =>
  /^--import=.*\/python\/imports\.[jt]s$/.test(flag),
);

const ofNpm = isSource ? "npx -y pnpm@12 rayling" : "npx rayling";

const launcher = isOfPython ? "rayling" : ofNpm;

/** Returns the command of these arguments, which are quoted for a shell where they need it. */
export function commandText(args: readonly string[]): string {
  return plain([launcher, ...args.map((arg) => quoted(arg))].join(" "));
}

/** Returns lines that name each command and say below it what it does. */
export function whatNext(
  commands: readonly (readonly [args: readonly string[], what: string])[],
): string[] {
  return [
    "What next",
    ...commands.flatMap(([args, what]) => [`  ${commandText(args)}`, `      ${what}`]),
  ];
}

function quoted(arg: string): string {
  return /^[\w@%+=:,./~-]+$/.test(arg) && !arg.startsWith("~")
    ? arg
    : `'${arg.replaceAll("'", String.raw`'\''`)}'`;
}
