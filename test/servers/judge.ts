/** A judge server in a process of its own, for as long as somebody needs it. */

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { JudgeOptions, JudgeStats } from "./judge-server.ts";

export type { JudgeOptions, JudgeStats } from "./judge-server.ts";

export interface Judge extends AsyncDisposable {
  /** host:port */
  readonly address: string;
  readonly baseUrl: string;
  stats(): Promise<JudgeStats>;
}

export async function startJudge(options: JudgeOptions = {}): Promise<Judge> {
  const program = fileURLToPath(new URL("./judge-server.ts", import.meta.url));
  // It ends with us, however we end.
  const child = fork(program, [JSON.stringify(options)]);
  const ended = once(child, "exit");
  const [{ address }] = (await Promise.race([
    once(child, "message"),
    ended.then(() => Promise.reject(new Error("the judge server has ended at once"))),
  ])) as [{ readonly address: string }];
  return {
    address,
    baseUrl: `http://${address}/v1`,
    async stats() {
      const response = await fetch(`http://${address}/stats`, {
        // None that the server closes while this process is held up.
        headers: { connection: "close" },
      });
      return (await response.json()) as JudgeStats;
    },
    async [Symbol.asyncDispose]() {
      child.kill();
      await ended;
    },
  };
}
