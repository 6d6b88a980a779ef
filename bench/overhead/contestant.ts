/**
 * A process with one session that is watched in one way, or not at all. Asked for a round it calls
 * an actor, or scores samples, and answers with the CPU that it used for each, in us.
 *
 * A process of its own for each way, so that none runs the code that another has warmed up.
 */
import { once } from "node:events";
import { get as httpGet } from "node:http";
import { fileURLToPath, pathToFileURL } from "node:url";
import type * as RewardLoop from "@rayling/reward-loop";
import { Adder, ray } from "./watched.ts";

export interface Round {
  readonly what: "calls" | "samples";
  readonly count: number;
}

/** Calls under way at a time, and samples of a batch. */
const atOnce = 1000;

const checkout = process.env["RAYLING_BENCH_CHECKOUT"];
const { RewardLoopManager } = (
  checkout === undefined
    ? await import("@rayling/reward-loop")
    : await import(pathToFileURL(`${checkout}/packages/reward-loop/src/index.ts`).href)
) as typeof RewardLoop;

/** Follows the rooms that a person looks at: the session's overview, actors and reward loops. */
async function follow(url: string): Promise<void> {
  const { headers } = await fetch(url, { redirect: "manual" });
  const { port, searchParams } = new URL(url);
  const base = `http://127.0.0.1:${port}${headers.get("location")}api/`;
  const authorization = `Bearer ${searchParams.get("token")}`;
  for (const view of ["overview", "actors", "loops"]) {
    const request = httpGet(`${base}${view}/events`, { headers: { authorization } });
    const [response] = (await once(request, "response")) as [NodeJS.ReadableStream];
    response.resume();
  }
}

async function main(isServed: boolean): Promise<void> {
  if (isServed) {
    const { provideDashboard } = await import("@rayling/core/dashboard");
    const { serveSession } = await import("@rayling/dashboard");
    provideDashboard(async () => serveSession);
  }
  const page = isServed ? { dashboard: { port: 0 } } : {};
  const { dashboardUrl } = await ray.init({ numCpus: 3, ...page });
  if (dashboardUrl !== undefined) await follow(dashboardUrl);
  const adder = Adder.remote();
  const module = fileURLToPath(new URL("watched.ts", import.meta.url));
  const loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    reward: `${module}:one`,
  });
  const rounds = {
    calls: async (): Promise<void> => {
      const refs = Array.from({ length: atOnce }, (_, at) => adder.add.remote(at, 1));
      await ray.get(refs);
    },
    samples: async (): Promise<void> => {
      const samples = Array.from({ length: atOnce }, () => ({
        response: "72",
        dataSource: "maths",
        groundTruth: "72",
      }));
      for await (const { outcome } of loop.scoreStream(samples)) {
        if (!outcome.valid) throw new Error(outcome.error.message);
      }
    },
  };
  process.on("message", ({ what, count }: Round) => {
    void (async () => {
      const before = process.cpuUsage();
      for (let done = 0; done < count; done += atOnce) await rounds[what]();
      const { user, system } = process.cpuUsage(before);
      process.send?.((user + system) / count);
    })();
  });
  process.once("disconnect", () => {
    void (async () => {
      await loop[Symbol.asyncDispose]();
      await ray.shutdown();
      process.exit();
    })();
  });
  process.send?.(0);
}

await main(process.argv.includes("--page"));
