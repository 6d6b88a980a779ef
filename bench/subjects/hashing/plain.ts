/**
 * The bar for CPU work: two worker threads by hand. A worker has a few items ahead, each posted by
 * itself, and gets the next one with each answer.
 */
import { Worker } from "node:worker_threads";
import type { HashSubject } from "./subjects.ts";
import type { Hashed, Item } from "./work.ts";

/** Items that a worker has at a time: the one it hashes, and those that wait in its port. */
const ahead = 4;

export async function plainSubject(threads: number): Promise<HashSubject> {
  const workers = Array.from(
    { length: threads },
    () => new Worker(new URL("./plain-worker.ts", import.meta.url)),
  );
  return {
    hashAll: (items) => hashAll(workers, items),
    async close() {
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
}

function hashAll(workers: readonly Worker[], items: readonly Item[]): Promise<Hashed[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Hashed[]>();
  const results: Hashed[] = [];
  let next = 0;
  const post = (worker: Worker): void => {
    const item = items[next++];
    if (item !== undefined) worker.postMessage(item);
  };
  for (const worker of workers) {
    worker.removeAllListeners().once("error", reject);
    worker.on("message", (hashed: Hashed) => {
      post(worker);
      if (results.push(hashed) === items.length) resolve(results);
    });
  }
  for (let more = 0; more < ahead; more++) workers.forEach(post);
  return promise;
}
