/**
 * Names where the figures were taken: machine, versions, command, commit. A figure without them
 * cannot be repeated.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism, cpus, totalmem } from "node:os";
import { field, text } from "./printed.ts";

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  /** Less than `cores` when the process was pinned (taskset). */
  readonly usableCores: number;
  readonly memoryGiB: number;
  readonly platform: string;
  readonly node: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly command: string;
  /** With `+` when files differ from it; undefined outside a checkout. */
  readonly commit: string | undefined;
  readonly date: string;
}

const libraries = [
  "@rayling/core",
  "msgpackr",
  "comlink",
  "piscina",
  "tinypool",
  "workerpool",
  "threads",
  "poolifier",
  "tinybench",
];

/** @param command as it was typed, in parts */
export function describeMachine(command: readonly string[], now: Date = new Date()): Machine {
  const processors = cpus();
  return {
    cpu: processors[0]?.model.trim() ?? "unknown",
    cores: processors.length,
    usableCores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    versions: Object.fromEntries(libraries.map((name) => [name, versionOf(name)])),
    command: command.join(" "),
    commit: commit(),
    date: now.toISOString().slice(0, 10),
  };
}

export function machineLines(machine: Machine): readonly string[] {
  const versions = Object.entries(machine.versions).map(([name, version]) => `${name} ${version}`);
  const pinned = machine.usableCores < machine.cores ? ` (pinned to ${machine.usableCores})` : "";
  return [
    `${machine.cpu}, ${machine.cores} cores${pinned}, ${machine.memoryGiB} GiB, ${machine.platform}`,
    `Node ${machine.node}; ${versions.join(", ")}`,
    `${machine.command}; commit ${machine.commit ?? "unknown"}, ${machine.date}`,
  ];
}

/** Read from the file, because most packages do not export their package.json. */
function versionOf(name: string): string {
  const url = new URL(`../node_modules/${name}/package.json`, import.meta.url);
  return text(field(JSON.parse(readFileSync(url, "utf8")), "version"));
}

function commit(): string | undefined {
  try {
    const git = (...args: string[]): string =>
      execFileSync("git", args, {
        cwd: import.meta.dirname,
        encoding: "utf8",
        stdio: "pipe",
      }).trim();
    const changed = git("status", "--porcelain", "--untracked-files=no") !== "";
    return `${git("rev-parse", "--short", "HEAD")}${changed ? "+" : ""}`;
  } catch {
    // No git, or no checkout: a fresh copy of the files is a fine place to measure.
    return undefined;
  }
}
