/**
 * All pools that hash, by name. A subject is loaded only when it starts, so that a process with one
 * of them holds no other.
 */
import type { Hashed, Item } from "./work.ts";

export interface HashSubject {
  /** Resolves with one result for each item, in any order. */
  hashAll(items: readonly Item[]): Promise<Hashed[]>;
  /** Ends its threads. */
  close(): Promise<void>;
}

export const threads = 2;
export const plainName = "two plain workers";
export const mapName = "ActorPool.map, two actors";
export const mapUnorderedName = "ActorPool.mapUnordered, two actors";
/** With `maxInFlightPerActor: 2`: the next item is there when the one before it is done. */
export const aheadName = "ActorPool.mapUnordered, one item ahead";

/** In the order of the table: the bar, Rayling, the peer. */
export const hashSubjects: Readonly<Record<string, () => Promise<HashSubject>>> = {
  [plainName]: async () => (await import("./plain.ts")).plainSubject(threads),
  [mapName]: async () => (await import("./rayling.ts")).actorPoolSubject(threads, "map"),
  [mapUnorderedName]: async () =>
    (await import("./rayling.ts")).actorPoolSubject(threads, "mapUnordered"),
  [aheadName]: async () =>
    (await import("./rayling.ts")).actorPoolSubject(threads, "mapUnordered", {
      maxInFlightPerActor: 2,
    }),
  "remote tasks, get": async () => (await import("./rayling.ts")).taskSubject(threads),
  "piscina, two threads": async () => (await import("./piscina.ts")).piscinaHashing(threads),
};
