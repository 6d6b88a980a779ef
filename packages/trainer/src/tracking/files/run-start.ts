/**
 * How a process of a run was started: its command, commit, machine and settings, without what is
 * secret in them.
 */

import { hostname } from "node:os";
import { basename } from "node:path";
import { hidden, isSecret, withoutSecrets, withoutUser } from "../../values/without-secrets.ts";
import type { TrackedRun } from "../tracking-logger.ts";
import { gitCommit } from "./git-commit.ts";
import type { StartLine } from "./run-lines.ts";

export async function runStart(run: TrackedRun): Promise<StartLine> {
  const { projectName, experimentName, totalSteps, config } = run;
  return {
    type: "start",
    atMs: Date.now(),
    projectName,
    experimentName,
    totalSteps: totalSteps ?? null,
    command: commandText(process.argv),
    commit: (await gitCommit(process.cwd())) ?? null,
    node: process.version,
    host: hostname(),
    config: config === undefined ? null : withoutSecrets(config),
  };
}

/** Returns the command as it would be typed, without the folder of the program. */
export function commandText([program = "", ...args]: readonly string[]): string {
  const shown = args.map((arg, at) => {
    const flag = /^--(.+)$/.exec(args[at - 1] ?? "")?.[1] ?? "";
    if (isSecret(flag) && !arg.startsWith("-")) return hidden;
    const [, name = ""] = /^-*([^=]+)=/.exec(arg) ?? [];
    if (isSecret(name)) return `${arg.slice(0, arg.indexOf("=") + 1)}${hidden}`;
    return withoutUser(quoted(arg));
  });
  return [basename(program), ...shown].join(" ");
}

function quoted(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", String.raw`'\''`)}'`;
}
