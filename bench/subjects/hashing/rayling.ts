/** Rayling's pools as its users write them: two actors of an ActorPool, or tasks. */
import * as ray from "@rayling/core";
import { Hasher, hashTask } from "./remote.ts";
import type { HashSubject } from "./subjects.ts";

/** Begins the session where there is none. */
export async function actorPoolSubject(
  threads: number,
  how: "map" | "mapUnordered",
  options: ray.PoolOptions = {},
): Promise<HashSubject> {
  if (!ray.isInitialized()) await ray.init({ numCpus: threads });
  const actors = Array.from({ length: threads }, () => Hasher.remote());
  const pool = new ray.ActorPool(actors, options);
  return {
    hashAll: (items) => Array.fromAsync(pool[how]((actor, item) => actor.hash.remote(item), items)),
    async close() {
      await pool[Symbol.asyncDispose]();
    },
  };
}

/** As many tasks run at a time as the session has CPUs. */
export async function taskSubject(threads: number): Promise<HashSubject> {
  if (!ray.isInitialized()) await ray.init({ numCpus: threads });
  return {
    hashAll: (items) => ray.get(items.map((item) => hashTask.remote(item))),
    close: async () => {},
  };
}
