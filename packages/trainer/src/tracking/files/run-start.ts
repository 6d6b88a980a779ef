/**
 * How a process of a run was started: its command, commit, machine and settings. Values whose name
 * says that they are secret are not written.
 */

import { hostname } from "node:os";
import { basename } from "node:path";
import type { TrackedRun, TrackingConfig } from "../tracking-logger.ts";
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

const hidden = "***";

const secretName =
  /(?:^|_)(?:(?:api|access|secret|private)_?key|token|secret|passw(?:or)?d|credentials?|authorization|cookie)$/i;

function isSecret(name: string): boolean {
  return secretName.test(name.replace(/([a-z])([A-Z])/g, "$1_$2").replace(/[-.]/g, "_"));
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

/** Hides the name and the password, or the token, of an address. */
function withoutUser(text: string): string {
  return text.replace(/(\w:\/\/)[^/@\s]+@/g, `$1${hidden}@`);
}

export function withoutSecrets(config: TrackingConfig): TrackingConfig {
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [name, shownValue(name, value)]),
  );
}

function shownValue(name: string, value: unknown): unknown {
  if (typeof value === "string") return isSecret(name) ? hidden : withoutUser(value);
  if (Array.isArray(value)) return value.map((one) => shownValue(name, one));
  if (typeof value === "object" && value !== null) return withoutSecrets({ ...value });
  return value;
}
