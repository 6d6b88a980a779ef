// node examples/actors/actor-pool.ts
//
// More work than actors: a pool hands each piece to whichever actor is free, and a queue carries
// news from all of them to one reader.

import { availableParallelism } from "node:os";
import * as ray from "rayling";

interface Range {
  readonly from: number;
  readonly to: number;
}

const PrimeCounter = ray.remote(
  class PrimeCounter {
    readonly #id: number;
    readonly #news: ray.Queue<string>;
    constructor(id: number, news: ray.Queue<string>) {
      this.#id = id;
      this.#news = news;
    }
    async count({ from, to }: Range): Promise<number> {
      let primes = 0;
      for (let candidate = Math.max(from, 2); candidate < to; candidate++) {
        let divisor = 2;
        while (divisor * divisor <= candidate && candidate % divisor !== 0) divisor += 1;
        if (divisor * divisor > candidate) primes += 1;
      }
      await this.#news.put(`actor ${this.#id}: ${primes} primes from ${from} to ${to}`);
      return primes;
    }
  },
);

// The last ranges cost many times what the first cost: giving each actor the same number of them
// would keep most actors waiting.
const ranges: Range[] = Array.from({ length: 16 }, (_, index) => ({
  from: index * 100_000,
  to: (index + 1) * 100_000,
}));

await ray.init();
const news = new ray.Queue<string>();

async function countWith(actors: number): Promise<number> {
  const counters = Array.from({ length: actors }, (_, id) =>
    PrimeCounter.options({ maxConcurrency: 1 }).remote(id, news),
  );
  const pool = new ray.ActorPool(counters);
  const start = performance.now();
  let primes = 0;
  // Results in the order of the ranges. mapUnordered gives them as they come; break out whenever
  // you have seen enough.
  for await (const found of pool.map((counter, range) => counter.count.remote(range), ranges))
    primes += found;
  console.log(
    `${actors} actors: ${primes} primes below 1,600,000 in ${(performance.now() - start).toFixed(0)} ms`,
  );
  return primes;
}

const alone = await countWith(1);
await news.getNowaitBatch(ranges.length);
const together = await countWith(Math.max(2, Math.min(4, availableParallelism())));

console.log("who did what, in the order it was done:");
for (const line of await news.getNowaitBatch(ranges.length)) console.log(`  ${line}`);
const nothing = await news
  .get({ timeoutMs: 10 })
  .catch((error: unknown) => error instanceof ray.Empty);
console.log(
  `the queue is empty now: ${nothing === true}; both counts agree: ${alone === together}`,
);

await ray.shutdown();
