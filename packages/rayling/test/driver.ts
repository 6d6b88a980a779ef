/** Drivers for tests of the commands that speak to one: real processes, found in a directory of the test's own. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type * as ray from "rayling";
import { afterAll, beforeAll, beforeEach, onTestFinished, vi } from "vitest";
import { type Ended, folder, inProcess, startNode } from "./command.ts";

const script = fileURLToPath(new URL("fixtures/driver.ts", import.meta.url));

type Cleanup = (close: () => Promise<void>) => void;

/** Where drivers and commands of this test meet, or of several. */
export async function ownDirectory(after: Cleanup = onTestFinished): Promise<string> {
  const directory = await folder(after);
  vi.stubEnv("RAYLING_CONTROL_DIRECTORY", directory);
  return directory;
}

export interface Driver {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly ended: Promise<Ended>;
  /** Asks the driver itself, over its standard input. */
  ask(name: string, ...given: readonly unknown[]): Promise<unknown>;
}

/** Resolves when commands can find it, if they ever will. */
export async function driver(
  options: ray.InitOptions = {},
  isFound = options.controlSocket !== false,
  after: Cleanup = onTestFinished,
): Promise<Driver> {
  const directory = process.env["RAYLING_CONTROL_DIRECTORY"] ?? "";
  const { child, ended } = startNode(script, JSON.stringify(options));
  after(async () => void child.kill("SIGKILL"));
  const answers: PromiseWithResolvers<unknown>[] = [];
  const isReady = Promise.withResolvers<void>();
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
    if (line === "ready") isReady.resolve();
    if (line.startsWith("answer ")) answers.shift()?.resolve(JSON.parse(line.slice(7)));
  });
  void ended.then(({ stderr }) => isReady.reject(new Error(`the driver ended: ${stderr}`)));
  await isReady.promise;
  if (isFound) await found(directory, child.pid);
  return {
    child,
    pid: child.pid as number,
    ended,
    ask: (...command) => {
      const answer = Promise.withResolvers<unknown>();
      answers.push(answer);
      child.stdin?.write(`${JSON.stringify(command)}\n`);
      return answer.promise;
    },
  };
}

/** One driver for all tests of a `describe` that only look at it; commands of other tests do not see it. */
export function sharedDriver(options: ray.InitOptions = {}): () => Driver & { directory: string } {
  let shared: Driver & { directory: string };
  const closing: (() => Promise<void>)[] = [];
  const after: Cleanup = (close) => void closing.push(close);
  beforeAll(async () => {
    // The driver makes it.
    const directory = join(await folder(after), "made-by-the-driver");
    vi.stubEnv("RAYLING_CONTROL_DIRECTORY", directory);
    shared = { ...(await driver(options, true, after)), directory };
  });
  beforeEach(() => void vi.stubEnv("RAYLING_CONTROL_DIRECTORY", shared.directory));
  afterAll(async () => {
    for (const close of closing.toReversed()) await close();
  });
  return () => shared;
}

export async function recordsIn(directory: string): Promise<readonly string[]> {
  // It is made by the first driver.
  const names = await readdir(directory).catch(() => []);
  return names.filter((name) => name.endsWith(".json")).map((name) => join(directory, name));
}

/** Resolves when commands find a driver of that process. */
export async function found(directory: string, pid: number | undefined): Promise<void> {
  while (!(await pidsIn(directory)).includes(pid)) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function pidsIn(directory: string): Promise<readonly unknown[]> {
  const records = await recordsIn(directory);
  return Promise.all(
    records.map(async (record) => {
      // Another driver may remove it meanwhile.
      const text = await readFile(record, "utf8").catch(() => "{}");
      return (JSON.parse(text) as { readonly pid?: unknown }).pid;
    }),
  );
}

export async function killed({ child }: Driver): Promise<void> {
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

/** What a command prints as JSON, run in this process. Throws when it fails. */
export async function json(...args: readonly string[]): Promise<unknown> {
  return parsed(args, await inProcess(...args, "--format", "json"));
}

function parsed(
  args: readonly string[],
  { code, stdout, stderr }: Pick<Ended, "code" | "stdout" | "stderr">,
): unknown {
  if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout);
}
