/** A judge in the test's own process: it costs no process, and is gone at once when it is closed. */

import { JudgeServer } from "../../../test/servers/judge-server.ts";
import type { JudgeOptions } from "../../../test/servers/judge-server.ts";
import type { Judge } from "../../../test/servers/judge.ts";

export async function startJudge(options: JudgeOptions = {}): Promise<Judge> {
  const server = await JudgeServer.start(options);
  const { address } = server;
  return {
    address,
    baseUrl: `http://${address}/v1`,
    stats: async () => structuredClone(server.stats()),
    [Symbol.asyncDispose]: () => server.close(),
  };
}
