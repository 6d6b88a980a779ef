/**
 * Real Ray in a Python process of its own: answers one order after another, and leaves no process
 * and no file behind, also after Ctrl-C.
 *
 * It knows nothing of what is ordered: an order and its answer are a line of JSON each, and the
 * first line says what runs. Ray's processes are not all children of one another, so the tree is
 * noted while it lives, and what is left of it after the end is killed by id.
 */
import { type ChildProcess, type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { createInterface, type Interface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Ray's grace for its own processes after `ray.shutdown`, before they are killed. */
const graceMs = 15_000;

export class RayProcess {
  /** The line that it printed when Ray ran. */
  readonly greeting: unknown;
  readonly #child: ChildProcess;
  readonly #answers: Answers;
  readonly #folder: string;
  readonly #interrupted: () => void = () => void this.close().then(() => process.exit(130));
  #ending: Promise<void> | undefined;

  /**
   * Resolves when Ray runs.
   *
   * @param file what Python runs; its one argument is a folder for whatever it writes, which is
   * gone afterwards
   */
  static async start(python: string, file: URL): Promise<RayProcess> {
    // Short, because Ray puts unix sockets below it.
    const folder = await mkdtemp(join(tmpdir(), "ray-bench-"));
    const child = spawn(python, [fileURLToPath(file), folder], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, ...tidy(folder), RAY_ADDRESS: "", RAY_USAGE_STATS_ENABLED: "0" },
    });
    const answers = new Answers(child);
    try {
      return new RayProcess(child, answers, folder, await answers.next());
    } catch (error) {
      await end(child, folder);
      throw error;
    }
  }

  private constructor(child: ChildProcess, answers: Answers, folder: string, greeting: unknown) {
    this.#child = child;
    this.#answers = answers;
    this.#folder = folder;
    this.greeting = greeting;
    process.once("SIGINT", this.#interrupted).once("SIGTERM", this.#interrupted);
  }

  /** One order at a time. */
  async ask(order: object): Promise<unknown> {
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`);
    return this.#answers.next();
  }

  /** Resolves when no process of Ray is left. Idempotent. */
  close(): Promise<void> {
    this.#ending ??= end(this.#child, this.#folder).finally(() => {
      process.off("SIGINT", this.#interrupted).off("SIGTERM", this.#interrupted);
    });
    return this.#ending;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Caches of libraries, and bytecode beside the file that runs, would outlive the run. */
function tidy(folder: string): Readonly<Record<string, string>> {
  return { TMPDIR: folder, XDG_CACHE_HOME: folder, PYTHONDONTWRITEBYTECODE: "1" };
}

type PipedProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** One line of stdout per answer; the end of the process is an error with its last words. */
class Answers {
  readonly #lines: AsyncIterator<string>;
  #lastWords: string = "";

  constructor(child: PipedProcess) {
    child.on("error", () => undefined);
    child.stdin.on("error", () => undefined);
    child.stderr.on("data", (chunk: Buffer) => {
      this.#lastWords = `${this.#lastWords}${String(chunk)}`.slice(-2000);
    });
    const lines: Interface = createInterface({ input: child.stdout });
    this.#lines = lines[Symbol.asyncIterator]();
  }

  async next(): Promise<unknown> {
    const line = await this.#lines.next();
    if (line.done === true) throw new Error(`Ray ended by itself:\n${this.#lastWords.trim()}`);
    return JSON.parse(line.value);
  }
}

async function end(child: ChildProcess, folder: string): Promise<void> {
  const before = rayProcesses(await processes(), child.pid, folder);
  if (child.exitCode === null && child.signalCode === null && child.pid !== undefined) {
    const exit = once(child, "exit");
    child.stdin?.end();
    await Promise.race([exit, sleep(graceMs, undefined, { ref: false })]);
  }
  const deadline = performance.now() + graceMs;
  for (;;) {
    const now = await processes();
    const left = [...new Set([...before, ...rayProcesses(now, undefined, folder)])];
    const alive = left.filter((id) => now.has(id));
    if (alive.length === 0) break;
    if (performance.now() > deadline) for (const id of alive) kill(now.get(id)?.pid);
    await sleep(100);
  }
  await rm(folder, { recursive: true, force: true });
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** By pid and time of start, because the system uses pids again. */
async function processes(): Promise<ReadonlyMap<string, Process>> {
  const { stdout } = await promisify(execFile)("ps", ["-wweo", "pid=,ppid=,lstart=,args="], {
    env: { ...process.env, LC_ALL: "C" },
    maxBuffer: 2 ** 26,
  });
  const found = new Map<string, Process>();
  for (const line of stdout.split("\n")) {
    const [, pid, parent, start, command] =
      /^\s*(\d+)\s+(\d+)\s+(\w+ \w+ +\d+ [\d:]+ \d+)\s+(.*)$/.exec(line) ?? [];
    if (pid === undefined || command === undefined) continue;
    found.set(`${pid} ${start ?? ""}`, { pid: Number(pid), parent: Number(parent), command });
  }
  return found;
}

/**
 * The descendants of the Python process, itself too, and whatever names its folder: those that lost
 * their parent.
 */
function rayProcesses(
  all: ReadonlyMap<string, Process>,
  root: number | undefined,
  folder: string,
): string[] {
  const tree = new Set<number>(root === undefined ? [] : [root]);
  const found = new Set<string>();
  let size = -1;
  while (found.size > size) {
    size = found.size;
    for (const [id, { pid, parent, command }] of all) {
      if (!tree.has(pid) && !tree.has(parent) && !command.includes(folder)) continue;
      tree.add(pid);
      found.add(id);
    }
  }
  return [...found];
}

function kill(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself meanwhile.
  }
}
