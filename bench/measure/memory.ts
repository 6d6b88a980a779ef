/**
 * Measures what this thread holds, as the collector leaves it: objects and array buffers, in bytes.
 */
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** One for each isolate: the loaded module's state is that of its thread. */
let collect: (() => void) | undefined;

/** After one full collection in this very turn. */
export function bytesNow(): number {
  if (collect === undefined) {
    setFlagsFromString("--expose-gc");
    const collector: unknown = runInNewContext("gc");
    if (typeof collector !== "function") throw new TypeError("V8 shows no collector");
    collect = () => void Reflect.apply(collector, undefined, []);
  }
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/**
 * After full collections until one frees no more, ten at most: finalizers run in turns of their
 * own, and what they let go is for the next.
 */
export async function bytesInUse(): Promise<number> {
  let least = bytesNow();
  for (let more = 0; more < 10; more++) {
    await turn();
    const bytes = bytesNow();
    if (bytes > 0.999 * least) return Math.min(bytes, least);
    least = bytes;
  }
  return least;
}
