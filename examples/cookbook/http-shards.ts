// node examples/cookbook/http-shards.ts
//
// HTTP over sharded actors: each key has its actor, a slow answer is a 504, a full actor a 503.
// With a port (`... http-shards.ts 8080`) it serves until Ctrl-C; without one it asks itself.

import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import * as ray from "rayling";

const Shard = ray.remote(
  class Shard {
    readonly #counts = new Map<string, number>();
    async size(): Promise<number> {
      return this.#counts.size;
    }
    /** Adds one to a key; `delayMs` stands for the work. It ends early when its client has left. */
    async add(key: string, delayMs: number, { signal }: { signal: AbortSignal }): Promise<number> {
      await sleep(delayMs, undefined, { signal });
      const count = (this.#counts.get(key) ?? 0) + 1;
      this.#counts.set(key, count);
      return count;
    }
  },
  // Calls that wait would be of clients that are gone: the fifth one of a shard is refused.
  { maxConcurrency: 4, maxPendingCalls: 4 },
);

const timeoutMs = 2_000;
await ray.init();
const shards = Array.from({ length: 3 }, () => Shard.remote());
// A shard that is still starting would be too slow for the first requests.
await ray.get(shards.map((shard) => shard.size.remote()));
const shardOf = (key: string): (typeof shards)[number] => {
  let hash = 0;
  for (const character of key) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0;
  return shards[hash % shards.length]!;
};

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  const gone = new AbortController();
  response.once("close", () => gone.abort(new Error("the client has left")));
  const delayMs = Number(searchParams.get("delay") ?? 0);
  try {
    const ref = shardOf(pathname).add.remote(pathname, delayMs, { signal: gone.signal });
    const count = await ray.get(ref, { timeoutMs }).finally(() => ray.cancel(ref));
    answer(response, 200, { count });
  } catch (error) {
    if (error instanceof ray.PendingCallsLimitExceeded) answer(response, 503, { error: "full" });
    else if (error instanceof ray.GetTimeoutError) answer(response, 504, { error: "too slow" });
    else if (!gone.signal.aborted) answer(response, 500, { error: String(error) });
  }
});
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1");
await once(server, "listening");
const bound = server.address();
const address = `http://127.0.0.1:${typeof bound === "object" ? bound?.port : bound}`;
console.log(`listens at ${address}`);

if (process.argv[2] === undefined) {
  const ask = async (path: string): Promise<string> => {
    const response = await fetch(address + path);
    return `${response.status} ${await response.text()}`;
  };
  console.log(
    "one after the other:",
    await ask("/apples"),
    await ask("/apples"),
    await ask("/pears"),
  );
  const many = await Promise.all(Array.from({ length: 8 }, () => ask("/plums?delay=60000")));
  const statuses = many.map((one) => one.slice(0, 3)).toSorted();
  console.log("eight slow ones for one shard:", statuses.join(" "));
} else {
  await once(process, "SIGINT");
}
server.close();
server.closeAllConnections();
await ray.shutdown();
