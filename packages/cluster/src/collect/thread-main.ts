/** Entry point of the thread that collects code (collect/thread.ts). */
import { parentPort, workerData } from "node:worker_threads";
import { collect, type CollectRequest } from "./collect.ts";
import type { CollectAnswer } from "./thread.ts";

const answer = await collect(workerData as CollectRequest).then(
  (collected): CollectAnswer => ({ collected }),
  (error: Error): CollectAnswer => ({ problem: error.message }),
);
parentPort?.postMessage(answer);
