/**
 * Scores samples of Python processes in one reward loop: `rayling.verl` starts it, as one for all
 * workers of a node or as one for each. It ends when the last of their connections has ended: each
 * event loop of a process has one.
 *
 * Command line: `listen FD PATH`, where FD is a listening socket at PATH. A connection begins with
 * a hello, and all send the same. Then come lists of samples
 * `[number, data source, response, ground truth, extra info]`, or `[number, problem]` for a sample
 * that Python cannot send, and lists of outcomes go back:
 * `[number, score, extra info]` or `[number, null, extra info, code, message, class]`.
 */

import { unlinkSync } from "node:fs";
import { createServer } from "node:net";
import type { Socket } from "node:net";
import * as ray from "@rayling/core";
import { carriable, failureClassOf, RewardLoopManager } from "@rayling/reward-loop";
import type { SampleOutcome } from "@rayling/reward-loop";
import { Columns } from "./columns.ts";
import { MessageSocket } from "./message-socket.ts";
import { loopOptionsOf, readHello } from "./score-hello.ts";
import type { Hello } from "./score-hello.ts";
import { isRefused, readRows, sampleOf } from "./score-rows.ts";
import type { RefusedRow, ScoreRow } from "./score-rows.ts";
import { looksAtGroups } from "../looks-at-groups.ts";
import { warmUp } from "./warm-up.ts";
import { mostDigits } from "@rayling/core/python";

/** How long the loop has for its end: its log and its cache. */
const closeTimeoutMs = 5000;

const ofGroups =
  "the reward function looks at all answers to a prompt (computeScores, postProcessScores), and each sample comes here by itself: give a function that scores one sample (computeScore)";

class ScoreHost {
  readonly #clients: Set<MessageSocket> = new Set();
  readonly #onLastGone: () => void;
  #loop: Promise<RewardLoopManager> | undefined;
  /** Whether a sample has come. */
  #hasBegun = false;
  #columns = new Columns(undefined, false);

  constructor(onLastGone: () => void) {
    this.#onLastGone = onLastGone;
  }

  add(socket: Socket): void {
    let hasGreeted = false;
    const client: MessageSocket = new MessageSocket(socket, {
      onMessage: (message) => {
        if (hasGreeted) {
          const rows = readRows(message);
          for (const row of rows) if (!isRefused(row)) void this.#score(client, row);
          // Behind those that may give the columns.
          for (const row of rows) if (isRefused(row)) this.#refuse(client, row);
          return;
        }
        hasGreeted = true;
        void this.#greet(client, readHello(message));
      },
      onClose: () => {
        this.#clients.delete(client);
        if (this.#clients.size === 0) this.#onLastGone();
      },
    });
    this.#clients.add(client);
  }

  /** Sends what graders have written to the process that has been here for longest. */
  log(stream: "stdout" | "stderr", text: string): void {
    const [first] = this.#clients;
    first?.send({ log: stream, text });
  }

  async close(): Promise<void> {
    const loop = await this.#loop?.catch(() => undefined);
    await loop?.close();
    await ray.shutdown();
  }

  async #greet(client: MessageSocket, hello: Hello): Promise<void> {
    try {
      const loop = await (this.#loop ??= this.#open(hello));
      client.send({ ready: loop.version });
    } catch (error) {
      const { name, message } = error instanceof Error ? error : new Error(String(error));
      client.send({ failed: `${name}: ${message}` });
      client.end();
    }
  }

  async #open(hello: Hello): Promise<RewardLoopManager> {
    this.#columns = new Columns(hello.columns, !hello.raises);
    const options = await loopOptionsOf(hello);
    const loop = await RewardLoopManager.create(options);
    if (looksAtGroups(loop)) {
      await loop.close();
      throw new TypeError(ofGroups);
    }
    // Where it fails, the first sample says why.
    warmUp(loop, options, () => this.#hasBegun).catch(() => undefined);
    return loop;
  }

  #refuse(client: MessageSocket, [number, problem]: RefusedRow): void {
    this.#columns.begin();
    this.#columns.failed({}, (info) => {
      client.sendRow([number, null, info, "INVALID_SAMPLE", problem, "data"]);
    });
  }

  async #score(client: MessageSocket, row: ScoreRow): Promise<void> {
    this.#hasBegun = true;
    this.#columns.begin();
    const [number] = row;
    let outcome: SampleOutcome;
    try {
      const loop = await this.#loop;
      if (loop === undefined) return;
      outcome = await loop.computeScore(sampleOf(row));
    } catch (error) {
      const { name, message } = error instanceof Error ? error : new Error(String(error));
      this.#columns.failed({}, (info) => {
        client.sendRow([number, null, info, name, message, "infrastructure"]);
      });
      return;
    }
    if (outcome.valid) {
      const info = this.#columns.scored(outcome.rewardExtraInfo);
      client.sendRow([number, outcome.rewardScore, sendable(info)]);
      return;
    }
    const { error } = outcome;
    this.#columns.failed(error.rewardExtraInfo ?? {}, (info) => {
      const { code, message } = error;
      client.sendRow([number, null, sendable(info), code, message, failureClassOf(error)]);
    });
  }
}

/** Returns it with a text for each value that Python cannot have; numbers stay. */
function sendable(info: Readonly<Record<string, unknown>>): unknown {
  return Object.values(info).every(isSendable) ? info : carriable(info).value;
}

function isSendable(value: unknown): boolean {
  if (typeof value === "bigint") return String(value).length <= mostDigits;
  return typeof value !== "object" || value === null;
}

/** Graders' output reaches this process' streams, line by line, and Python's logging from there. */
function logTo(host: ScoreHost): void {
  for (const stream of ["stdout", "stderr"] as const) {
    const write = (chunk: Uint8Array | string, ...more: readonly unknown[]): boolean => {
      host.log(stream, typeof chunk === "string" ? chunk : Buffer.from(chunk).toString());
      const onWritten = more.at(-1);
      if (typeof onWritten === "function") onWritten();
      return true;
    };
    process[stream].write = write;
  }
}

async function main(fd: number, path: string): Promise<void> {
  const { promise: lastGone, resolve } = Promise.withResolvers<void>();
  const host = new ScoreHost(resolve);
  const server = createServer((socket) => host.add(socket)).listen({ fd });
  // First, so that nobody else connects: the next process starts a host of its own.
  void lastGone.then(() => unlinkSync(path)).finally(() => server.close());
  logTo(host);
  await ray.init({ controlSocket: false });
  await lastGone;
  setTimeout(() => process.exit(1), closeTimeoutMs).unref();
  await host.close();
  process.exit(0);
}

const [, fd, path = ""] = process.argv.slice(2);
await main(Number(fd), path);
