/** Runs the command line as a user does: a process of its own, its output and exit code. */

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished, vi } from "vitest";
import { withoutWaits } from "../../../test/fixtures/waits.ts";
import { runCommandLine } from "../src/cli/command-line.ts";

// Threads start slowly on a busy machine; what matters here is that every wait ends by itself.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

export const workspace: string = fileURLToPath(new URL("../../../", import.meta.url));
const main = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export async function rayling(...args: readonly string[]): Promise<Ended> {
  const { ended } = start(...args);
  return ended;
}

let isInProcess = false;

/**
 * The command in this process, one at a time: for what has nothing to do with processes, as wrong input. A process of its own costs ten times as much.
 */
export async function inProcess(
  ...args: readonly string[]
): Promise<Pick<Ended, "code" | "stdout" | "stderr">> {
  if (isInProcess) throw new Error("another command runs in this process: use rayling()");
  isInProcess = true;
  const output = { stdout: "", stderr: "" };
  const keep = (name: keyof typeof output) =>
    vi.spyOn(process[name], "write").mockImplementation((text, ...more) => {
      output[name] += String(text);
      // Who writes may wait for it.
      const written: unknown = more.at(-1);
      if (typeof written === "function") queueMicrotask(() => void written());
      return true;
    });
  const spies = [keep("stdout"), keep("stderr")];
  try {
    const code = await runCommandLine(args);
    return { code, stdout: output.stdout, stderr: withoutWaits(output.stderr) };
  } finally {
    for (const spy of spies) spy.mockRestore();
    isInProcess = false;
  }
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

export function start(...args: readonly string[]): Started {
  return startProcess(process.execPath, [main, ...args]);
}

/** From another directory. */
export function startIn(directory: string, ...args: readonly string[]): Started {
  return startProcess(process.execPath, [main, ...args], directory);
}

/** A script of the test's own, with the same Node. */
export function startNode(script: string, ...args: readonly string[]): Started {
  return startProcess(process.execPath, [script, ...args]);
}

/** With the file on its standard input, through a pipe of the shell: Node itself would give it a socket. */
export function startPiped(file: string, ...args: readonly string[]): Started {
  return startProcess("sh", ["-c", 'cat "$0" | "$@"', file, process.execPath, main, ...args]);
}

/** The command line is "$@" in the text. */
export function startShell(text: string): Started {
  return startProcess("sh", ["-c", text, "sh", process.execPath, main]);
}

function startProcess(
  command: string,
  args: readonly string[],
  directory: string = workspace,
): Started {
  const child = spawn(command, args, { cwd: directory });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output.stderr += text));
  const ended = once(child, "close").then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
    stdout: output.stdout,
    stderr: withoutWaits(output.stderr),
  }));
  return { child, ended };
}

/** What of its output is like that, when it is there. */
export async function shown(
  { child }: Pick<Started, "child">,
  wanted: RegExp,
  where: "stdout" | "stderr" = "stdout",
): Promise<RegExpExecArray> {
  let text = "";
  return new Promise((resolve) => {
    child[where]?.on("data", (chunk: string) => {
      text += chunk;
      const match = wanted.exec(text);
      if (match !== null) resolve(match);
    });
  });
}

/** A folder that is gone after the test, or after what else is said. */
export async function folder(
  after: (remove: () => Promise<void>) => void = onTestFinished,
): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "rayling-cli-"));
  after(() => rm(path, { recursive: true }));
  return path;
}

export async function fileOf(lines: readonly unknown[]): Promise<string> {
  const path = join(await folder(), "solutions.jsonl");
  const texts = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)));
  await writeFile(path, `${texts.join("\n")}\n`);
  return path;
}

export interface RewardRecord {
  readonly index: number;
  readonly question: number;
  readonly solution: string;
  readonly valid: boolean;
  readonly score: number | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly latencyMs: number;
  readonly attempts: number;
  readonly extra: Readonly<Record<string, unknown>>;
}

/**
 * In order of index.
 *
 * @param torn whether one line may have been cut off
 */
export async function recordsOf(path: string, { torn = false } = {}): Promise<RewardRecord[]> {
  const lines = (await readFile(path, "utf8")).trimEnd().split("\n");
  let broken = torn ? 1 : 0;
  const records = lines.flatMap((line) => {
    try {
      return [JSON.parse(line) as RewardRecord];
    } catch (error) {
      if (broken-- > 0) return [];
      throw error;
    }
  });
  return records.toSorted((a, b) => a.index - b.index);
}
