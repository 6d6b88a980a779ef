/**
 * How a process of a run was started: its command, commit, machine and settings. The command is
 * shown without what is secret in it; the settings come without it.
 */

import { hostname } from "node:os";
import { basename } from "node:path";
import {
  hidden,
  isSecret,
  withoutSecretsOfMap,
  withoutUser,
} from "../../values/without-secrets.ts";
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
    command: run.command ?? commandText(process.argv),
    commit: (await gitCommit(process.cwd())) ?? null,
    node: process.version,
    host: hostname(),
    config: config ?? null,
  };
}

/** A shorter secret may be part of any text: it is hidden by its name alone. */
const shortestFound = 6;

/**
 * Returns the command as it would be typed, without the folder of the program.
 *
 * @param secrets those of the settings: they are hidden however the command names them
 */
export function commandText(argv: readonly string[], secrets: readonly string[] = []): string {
  const [program = "", ...args] = argv;
  // A longer one may begin with a shorter one.
  const known = secrets
    .filter(({ length }) => length >= shortestFound)
    .toSorted((one, other) => other.length - one.length);
  const shown = args.map((arg, at) => {
    const flag = /^--(.+)$/.exec(args[at - 1] ?? "")?.[1] ?? "";
    if (isSecret(flag) && !arg.startsWith("-")) return hidden;
    const [begin = "", name = ""] = /^-*([^={}]+)=/.exec(arg) ?? [];
    // All of `a.credentials.user` is secret, as it is in the settings.
    if (name.split(".").some(isSecret)) return `${begin}${hidden}`;
    const ofMap = withoutSecretsOfMap(arg);
    const own = known.reduce((text, secret) => text.replaceAll(secret, hidden), ofMap);
    return withoutUser(quoted(own));
  });
  return [basename(program), ...shown].join(" ");
}

function quoted(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", String.raw`'\''`)}'`;
}
