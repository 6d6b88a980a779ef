/**
 * A reward-model server as a child process: started on a free port, ready when it is healthy, and
 * ended with this process, however this ends. Its own processes (workers that hold a GPU) end with
 * it, also where it ends by itself.
 */

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { withoutTokens } from "@rayling/core/http";
import { killGroup } from "@rayling/reward-manager-registry/values";
import { RewardModelStartError } from "../errors.ts";
import { timerMs } from "../time/clock.ts";
import type { LaunchOptions } from "../options/defaults/reward-model.ts";

/**
 * A shell that leads a group of processes: the server, what it starts, and three of its own.
 *
 * One waits for the end of standard input, which comes when this process is gone or asks for the
 * end: it sends SIGTERM to the group, and ten seconds later SIGKILL. One waits for the server,
 * reports its exit code (here, by descriptor 4), and sends SIGTERM to what it has left behind. The
 * last one sends SIGKILL when nobody holds the server's standard output any more, two seconds later
 * in any case. Signals go to the group alone: it has members as long as they are sent, so that no
 * other process can have its number.
 */
const watched = `exec 3<&0 4>&1
trap : HUP INT TERM
{
  cat <&3
  trap "" HUP INT TERM
  kill -TERM 0
  sleep 10
  kill -KILL 0
} >/dev/null 2>&1 4>&- &
{
  trap : HUP INT TERM
  "$@" </dev/null 3<&- 4>&-
  code=$?
  exec 2>/dev/null 3<&-
  echo $code >&4
  trap "" HUP INT TERM
  kill -TERM 0
  { sleep 2; kill -KILL 0; } >/dev/null 4>&- &
} | {
  trap "" HUP INT TERM
  exec 2>/dev/null 3<&- 4>&-
  cat >/dev/null
  kill -KILL 0
}`;

const keptLines = 20;
const killAfterMs = 10_000;
const pollMs = 200;

/** Its end may be heard before its last lines are. */
const lastWordsMs = 2000;

/**
 * A server may take a minute until it listens, and another process may have taken its port by then:
 * so often another port is tried.
 */
const mostPorts = 5;

export class ServerProcess {
  readonly address: string;
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #lastLines: string[] = [];
  /** As the shell has reported it; empty until then. */
  #exitCode = "";

  private constructor(address: string, child: ChildProcess) {
    this.address = address;
    this.#process = child;
    this.#ended = once(child, "exit");
    this.#ended.catch(() => undefined);
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#exitCode += text.trim();
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#lastLines.push(...text.trimEnd().split("\n"));
      this.#lastLines.splice(0, this.#lastLines.length - keptLines);
    });
  }

  /** Rejects with RewardModelStartError, and leaves no process. */
  static async start(
    launch: LaunchOptions,
    index: number,
    healthPath: string,
  ): Promise<ServerProcess> {
    for (let tries = 1; ; tries++) {
      try {
        return await ServerProcess.#startOnce(launch, index, healthPath);
      } catch (error) {
        if (tries === mostPorts || !isPortTaken(error)) throw error;
      }
    }
  }

  static async #startOnce(
    launch: LaunchOptions,
    index: number,
    healthPath: string,
  ): Promise<ServerProcess> {
    const port = await freePort();
    const args = launch.args.map((arg) =>
      arg.replaceAll("{port}", String(port)).replaceAll("{index}", String(index)),
    );
    const child = spawn("sh", ["-c", watched, "sh", launch.command, ...args], {
      env: { ...withoutTokens(process.env), ...visibleGpus(launch, index, port), ...launch.env },
      stdio: ["pipe", "pipe", "pipe"],
      // A group of its own, so that all of it can be ended.
      detached: true,
    });
    const server = new ServerProcess(`127.0.0.1:${port}`, child);
    try {
      await server.#untilWell(healthPath, launch.startTimeoutMs ?? 600_000);
      return server;
    } catch (error) {
      await server.stop();
      throw error;
    }
  }

  /** Asks its group to end, and ends it if it does not. */
  async stop(): Promise<void> {
    const { exitCode, signalCode } = this.#process;
    this.#process.stdin?.destroy();
    if (exitCode !== null || signalCode !== null) return;
    const { pid } = this.#process;
    const killing = setTimeout(() => killGroup(pid), killAfterMs);
    await this.#ended.catch(() => undefined);
    clearTimeout(killing);
  }

  async #untilWell(healthPath: string, timeoutMs: number): Promise<void> {
    const asking = new AbortController();
    const ended = this.#ended.then(
      async () => {
        await this.#saidAll();
        const { exitCode, signalCode } = this.#process;
        return this.#failed(`it ended with ${this.#exitCode || (exitCode ?? signalCode)}`);
      },
      (error: unknown) => this.#failed(String(error)),
    );
    const late = AbortSignal.timeout(timerMs(timeoutMs));
    const well = this.#isWell(healthPath, AbortSignal.any([late, asking.signal])).catch(() =>
      this.#failed(`it was not well after ${timeoutMs} ms`),
    );
    const error = await Promise.race([well, ended]);
    // Its port may be somebody else's by now, and nobody waits for an answer.
    asking.abort();
    if (error !== undefined) throw error;
  }

  /** Resolves when it is healthy. Rejects with the signal's reason. */
  async #isWell(healthPath: string, signal: AbortSignal): Promise<undefined> {
    for (;;) {
      signal.throwIfAborted();
      const status = await statusOf(`http://${this.address}${healthPath}`, signal);
      if (status >= 200 && status < 300) return undefined;
      await delay(pollMs, undefined, { signal });
    }
  }

  /** Resolves when its output has ended, which a process that it left behind may hold open. */
  async #saidAll(): Promise<void> {
    const signal = AbortSignal.timeout(lastWordsMs);
    await once(this.#process, "close", { signal }).catch(() => undefined);
  }

  #failed(reason: string): RewardModelStartError {
    return new RewardModelStartError(this.address, reason, this.#lastLines.join("\n"));
  }
}

/** By `node:http`: fetch would ask the proxy that HTTP_PROXY names. 0: there was no answer. */
function statusOf(url: string, signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    const asked = request(url, { agent: false, signal }, (answer) => {
      answer.on("error", () => undefined).resume();
      resolve(answer.statusCode ?? 0);
    });
    asked.on("error", () => resolve(0));
    asked.end();
  });
}

/** The message of Node, Python and uvicorn. */
function isPortTaken(error: unknown): boolean {
  return error instanceof RewardModelStartError && /address already in use/i.test(error.stderr);
}

/** Throws RewardModelStartError where there are too few. */
function visibleGpus(
  { gpusPerReplica: count, firstGpu = 0 }: LaunchOptions,
  index: number,
  port: number,
): Readonly<Record<string, string>> {
  if (count === undefined) return {};
  const own = process.env["CUDA_VISIBLE_DEVICES"]?.split(",");
  const places = Array.from({ length: count }, (_, place) => firstGpu + index * count + place);
  const last = places.at(-1) ?? 0;
  if (own !== undefined && last >= own.length) {
    const reason = `it is to have GPU ${last}, counted from 0, and CUDA_VISIBLE_DEVICES has ${own.length}`;
    throw new RewardModelStartError(`127.0.0.1:${port}`, reason, "");
  }
  const gpus = places.map((place) => (own === undefined ? String(place) : own[place]));
  return { CUDA_VISIBLE_DEVICES: gpus.join(",") };
}

async function freePort(): Promise<number> {
  const probe = createServer();
  // In a worker of node:cluster the primary would give all workers the same one.
  probe.listen({ port: 0, host: "127.0.0.1", exclusive: true });
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  if (address === null || typeof address === "string") throw new Error("no port is free");
  return address.port;
}
