// rayling run --on-ray http://127.0.0.1:8265 examples/on-ray/primes.ts
//
// Counts primes with an actor for each CPU that Ray has free. Start Ray first: `ray start --head`.
// Python jobs on the cluster keep what they hold; `ray status` shows what this script reserves.

import * as ray from "rayling";

class PrimesClass {
  count(from: number, to: number): number {
    let found = 0;
    for (let n = Math.max(2, from); n < to; n++) if (isPrime(n)) found += 1;
    return found;
  }
  /** The node of Ray that this actor is on. */
  node(): string {
    return ray.getRuntimeContext().getNodeId();
  }
}

function isPrime(n: number): boolean {
  for (let by = 2; by * by <= n; by++) if (n % by === 0) return false;
  return true;
}

const Primes = ray.remote(PrimesClass);

await ray.init();
const { CPU: free = 1 } = await ray.availableResources();
const counters = Array.from({ length: Math.max(1, Math.floor(free)) }, () =>
  Primes.options({ numCpus: 1 }).remote(),
);
const limit = 200_000;
const parts = counters.map((counter, index) =>
  counter.count.remote(
    Math.floor((limit * index) / counters.length),
    Math.floor((limit * (index + 1)) / counters.length),
  ),
);
const found = (await ray.get(parts)).reduce((sum, one) => sum + one, 0);
const nodes = new Set(await ray.get(counters.map((counter) => counter.node.remote())));
console.log(`${found} primes below ${limit}, by ${counters.length} actors on ${nodes.size} nodes`);
await ray.shutdown();
