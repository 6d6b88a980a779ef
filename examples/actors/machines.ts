// node examples/actors/machines.ts
//
// This script runs on one machine or on several: only where its actors run changes. Start a node in
// another terminal, or on another machine (docs/other-machines.md), and name it: `rayling run
// examples/actors/machines.ts --nodes rayling://...`

import * as ray from "rayling";

class PrimesClass {
  count(from: number, to: number): number {
    let found = 0;
    for (let n = Math.max(2, from); n < to; n++) if (isPrime(n)) found += 1;
    return found;
  }
  /** The node that this actor lives on. */
  node(): string {
    return ray.getRuntimeContext().getNodeId();
  }
}

function isPrime(n: number): boolean {
  for (let by = 2; by * by <= n; by++) if (n % by === 0) return false;
  return true;
}

const Primes = ray.remote(PrimesClass);

// The nodes come from RAYLING_NODES, and the code goes to those that do not have it.
await ray.init({ runtimeEnv: { workingDir: true } });

const counters = Array.from({ length: 4 }, () =>
  Primes.options({ schedulingStrategy: "SPREAD" }).remote(),
);
const step = 5000;
const counts = counters.map((counter, index) =>
  counter.count.remote(index * step, (index + 1) * step),
);
console.log("primes below 20,000 by quarters:", await ray.get(counts));

const names = new Map((await ray.nodes()).map(({ nodeId, nodeName }) => [nodeId, nodeName]));
const places = await ray.get(counters.map((counter) => counter.node.remote()));
for (const nodeId of new Set(places)) {
  const here = places.filter((one) => one === nodeId).length;
  console.log(
    `${here} of 4 actors on ${names.get(nodeId) === nodeId ? "this machine" : names.get(nodeId)}`,
  );
}
await ray.shutdown();
