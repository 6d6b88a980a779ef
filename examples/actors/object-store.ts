// node examples/actors/object-store.ts
//
// `put` stores a value once; a ref to it costs nothing to pass on. Large arrays are shared between
// threads: copied in once, never out.

import * as ray from "rayling";

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

const Summer = ray.remote(
  class Summer {
    /** A ref at the top level of the arguments has become its value. */
    sum(values: Float64Array, part: number, parts: number): { sum: number; shared: boolean } {
      const size = values.length / parts;
      let sum = 0;
      for (let index = part * size; index < (part + 1) * size; index++) sum += values[index] ?? 0;
      return { sum, shared: values.buffer instanceof SharedArrayBuffer };
    }
    /**
     * A ref inside a value stays a ref: who holds it decides when to get it, and the object lives
     * as long.
     */
    async first(given: { readonly later: ray.ObjectRef<Float64Array> }): Promise<number> {
      const values = await ray.get(given.later);
      return values[0] ?? Number.NaN;
    }
  },
);

const square = ray.remote((value: number): number => value * value);

await ray.init();
const summers = Array.from({ length: 4 }, () => Summer.remote());
await ray.get(summers.map((summer) => summer.sum.remote(new Float64Array(4), 0, 1)));

const values = Float64Array.from({ length: 8_000_000 }, (_, index) => index % 10);
const start = performance.now();
const ref = ray.put(values);
console.log(
  `put ${megabytes(values.byteLength)} in ${(performance.now() - start).toFixed(0)} ms: one copy, the last one`,
);

// A stored value is a snapshot: this changes nothing for anybody.
values.fill(0);

const asked = performance.now();
const parts = await ray.get(
  summers.map((summer, part) => summer.sum.remote(ref, part, summers.length)),
);
const sum = parts.reduce((total, part) => total + part.sum, 0);
console.log(
  `4 actors summed a quarter each in ${(performance.now() - asked).toFixed(0)} ms: ${sum}`,
);
console.log(`all of them read the same memory: ${parts.every(({ shared }) => shared)}`);
console.log(
  `a ref inside a value stays a ref: ${await ray.get(summers[0]!.first.remote({ later: ref }))}`,
);

// Refs are also how work is chained and watched: nothing here waits for a value that it only passes
// on.
const squares = [5, 4, 3, 2].map((value) => square.remote(square.remote(value)));
let pending = squares;
while (pending.length > 0) {
  const step = await ray.wait(pending);
  console.log(
    `ready: ${(await ray.get(step.ready)).join()}, still pending: ${step.pending.length}`,
  );
  pending = step.pending;
}

// `get` gives up after a while if you say so; the work goes on, and the value can be got later.
const slow = summers[0]!.sum.remote(ref, 0, 1);
const early = await ray.get(slow, { timeoutMs: 0 }).catch((error: unknown) => String(error));
console.log("at once:", early);
console.log("later:", await ray.get(slow));

await ray.shutdown();
