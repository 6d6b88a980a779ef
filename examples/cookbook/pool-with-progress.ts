// node examples/cookbook/pool-with-progress.ts
//
// A pool of actors works through a long list, says how far it is, and ends in order on Ctrl-C with
// what it has.

import { availableParallelism } from "node:os";
import * as ray from "rayling";

const Counter = ray.remote(
  class Counter {
    /** Counts the numbers that end in themselves when they are squared: 25 * 25 = 625. */
    count(from: number, to: number): number {
      let found = 0;
      for (let n = from; n < to; n++) {
        if (String(BigInt(n) * BigInt(n)).endsWith(String(n))) found += 1;
      }
      return found;
    }
  },
);

const [pieces = 40, size = 5_000] = process.argv.slice(2).map(Number);
await ray.init();
// One catch is enough: everything that shutdown ends rejects with SessionEndedError.
process.once("SIGINT", () => void ray.shutdown());

const actors = Array.from({ length: Math.min(4, availableParallelism()) }, () => Counter.remote());
const pool = new ray.ActorPool(actors);
const starts = Array.from({ length: pieces }, (_, index) => index * size);
let done = 0;
let found = 0;
try {
  const counts = pool.mapUnordered(
    (counter, from) => counter.count.remote(from, from + size),
    starts,
  );
  for await (const count of counts) {
    done += 1;
    found += count;
    if (done % 4 === 0) console.log(`${Math.round((100 * done) / pieces)} %, ${found} found`);
  }
  console.log(`all ${pieces} pieces: ${found} numbers end in themselves`);
} catch (error) {
  if (!(error instanceof ray.SessionEndedError)) throw error;
  console.log(`stopped after ${done} of ${pieces} pieces: ${found} found so far`);
  process.exitCode = 130;
}
await ray.shutdown();
