/**
 * A server of scores in a process of its own, with what its CPU has done: `rayling serve`, or the
 * same function behind FastAPI.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import { mustImport } from "../ray/python.ts";
import { portOf } from "../measure/port.ts";

/** The unit of /proc, on every Linux that there is. */
const ticksPerSecond = 100;

const startLimitMs = 60_000;

export class ScoreServer implements AsyncDisposable {
  readonly name: string;
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(name: string, url: string, child: ChildProcess) {
    this.name = name;
    this.url = url;
    this.#child = child;
  }

  /** @param flags more of them */
  static async rayling(name: string, flags: readonly string[] = []): Promise<ScoreServer> {
    const port = await freePort();
    const manifest = new URL(import.meta.resolve("rayling/package.json"));
    const main = fileURLToPath(new URL("src/cli/main.ts", manifest));
    const reward = fileURLToPath(new URL("grade.ts", import.meta.url));
    const listen = ["--listen", `127.0.0.1:${port}`];
    const args = [main, "serve", "--reward", reward, ...listen, "--workers", "1", ...flags];
    return ScoreServer.#start(name, port, process.execPath, args);
  }

  /**
   * @param python an interpreter that has fastapi and uvicorn
   * @throws NoRayError saying what it lacks
   */
  static async fastApi(python: string): Promise<ScoreServer> {
    await mustImport(python, ["fastapi", "uvicorn"]);
    const port = await freePort();
    const file = fileURLToPath(new URL("fastapi_server.py", import.meta.url));
    return ScoreServer.#start("FastAPI, uvicorn", port, python, ["-B", file, String(port)]);
  }

  static async #start(
    name: string,
    port: number,
    command: string,
    args: readonly string[],
  ): Promise<ScoreServer> {
    const child = spawn(command, args, { stdio: ["ignore", "ignore", "pipe"] });
    let lastWords = "";
    child.stderr.on(
      "data",
      (text: Buffer) => (lastWords = `${lastWords}${String(text)}`.slice(-2000)),
    );
    const url = `http://127.0.0.1:${port}`;
    const deadline = performance.now() + startLimitMs;
    while (!(await isReady(url))) {
      if (child.exitCode !== null || performance.now() > deadline) {
        child.kill("SIGKILL");
        throw new Error(`${name} does not start:\n${lastWords.trim()}`);
      }
      await sleep(50);
    }
    return new ScoreServer(name, url, child);
  }

  /** CPU time of all its threads so far. */
  async cpuMs(): Promise<number> {
    const text = await readFile(`/proc/${this.#child.pid}/stat`, "utf8");
    // Behind its name: the fields of proc(5) from the third on.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) * (1000 / ticksPerSecond);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await ended;
  }
}

async function isReady(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/readyz`);
    await answer.arrayBuffer();
    return answer.ok;
  } catch {
    // Nobody listens there yet.
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const port = portOf(server);
  server.close();
  await once(server, "close");
  return port;
}
