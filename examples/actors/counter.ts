// node examples/actors/counter.ts
import * as ray from "rayling";

const Counter = ray.remote(
  class Counter {
    #n = 0;
    increment(by = 1): number {
      return (this.#n += by);
    }
  },
);

await ray.init();
const counter = Counter.remote();
const refs = [1, 2, 3].map((by) => counter.increment.remote(by));
console.log(await ray.get(refs));
const { ready, pending } = await ray.wait(refs, { numReturns: 1, timeoutMs: 50 });
console.log(ready.length, pending.length);
await ray.shutdown();
