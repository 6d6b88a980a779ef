/**
 * The remote classes of the benchmarks, and nothing else: hosts import this file, so it must be
 * cheap and must not reach driver code.
 */
import { threadId } from "node:worker_threads";
import * as ray from "@rayling/core";
import { bytesInUse } from "../measure/memory.ts";

/** 1 MiB of float64. */
export const heldElements = 131_072;

class AdderInstance {
  add(a: number, b: number): number {
    return a + b;
  }
}

/** Answers every `read` with the same values, as an actor that holds weights or a batch would. */
class HolderInstance {
  readonly #values = Float64Array.from({ length: heldElements }, (_, index) => index);
  read(): Float64Array {
    return this.#values;
  }
}

/** Adds, and says in which thread it lives and what that holds. */
class ProberInstance {
  add(a: number, b: number): number {
    return a + b;
  }
  thread(): number {
    return threadId;
  }
  bytesInUse(): Promise<number> {
    return bytesInUse();
  }
}

/** Makes big values, and reads those of others. */
export class MakerInstance {
  make(elements: number): Float64Array {
    const values = new Float64Array(new SharedArrayBuffer(8 * elements));
    values[elements - 1] = elements;
    return values;
  }
  last(values: Float64Array): number {
    return values.at(-1) ?? 0;
  }
}

export const Maker: ray.ActorClass<typeof MakerInstance> = ray.remote(MakerInstance);
export const Adder: ray.ActorClass<typeof AdderInstance> = ray.remote(AdderInstance);
export const Holder: ray.ActorClass<typeof HolderInstance> = ray.remote(HolderInstance);
export const Prober: ray.ActorClass<typeof ProberInstance> = ray.remote(ProberInstance);
