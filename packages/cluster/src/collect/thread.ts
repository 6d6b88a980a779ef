/**
 * Starts the thread that searches the disk for the driver; it answers one request and ends.
 */
import { Worker } from "node:worker_threads";
import { forFiles, RaySystemError, threadFlags } from "@rayling/core/cluster";
import type { Collected, CollectRequest } from "./collect.ts";

export type CollectAnswer = { readonly collected: Collected } | { readonly problem: string };

/** The name keeps bundlers from searching for files of that pattern. */
const here: string = import.meta.url;
const entry: URL = new URL(`./thread-main${here.slice(-3)}`, here);

/** Rejects with RaySystemError. */
export function collectInThread(request: CollectRequest): Promise<Collected> {
  return new Promise((resolve, reject) => {
    const execArgv = threadFlags(process.execArgv);
    const worker = new Worker(entry, {
      workerData: request,
      env: forFiles(process.env),
      ...(execArgv === undefined ? {} : { execArgv }),
    });
    worker.on("message", (answer: CollectAnswer) => {
      if ("collected" in answer) resolve(answer.collected);
      else reject(new RaySystemError(answer.problem));
    });
    worker.on("error", (error) => reject(new RaySystemError(String(error), { cause: error })));
    worker.on("exit", () => reject(new RaySystemError("the thread that reads the code ended")));
    worker.unref();
  });
}
