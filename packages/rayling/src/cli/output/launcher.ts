/** Whole commands, as a reader types them in a clone of the repository or in a project. */
import { isSource } from "../../own-files.ts";
import { plain } from "./output.ts";

const launcher = isSource ? "npx -y pnpm@12 rayling" : "npx rayling";

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
