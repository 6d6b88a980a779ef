/**
 * The lives of actors whose handles are here: each is an object of the actor's creator that every handle holds, so an actor is out of scope when
 * nobody holds its life any more.
 */
import type { ObjectEntry } from "../store/object-entry.ts";
import { IdleCollector } from "./idle-collector.ts";

export interface LivesParts {
  /** Refs of others that are held here: like lives, they are let go when the collector has run. */
  readonly borrowedCount: () => number;
  /** Nothing here holds a handle any more; of an own actor nothing anywhere. */
  readonly onReleased: (actorId: string, isOwn: boolean) => void;
}

export class Lives {
  readonly #known: WeakSet<ObjectEntry> = new WeakSet();
  #held = 0;
  readonly #collector: IdleCollector;
  readonly #released: FinalizationRegistry<{ readonly actorId: string; readonly isOwn: boolean }>;

  constructor({ borrowedCount, onReleased }: LivesParts) {
    this.#collector = new IdleCollector(() => this.#held + borrowedCount());
    this.#released = new FinalizationRegistry(({ actorId, isOwn }) => {
      this.#held -= 1;
      onReleased(actorId, isOwn);
    });
  }

  watch(life: ObjectEntry, actorId: string, isOwn: boolean): void {
    if (this.#known.has(life)) return;
    this.#known.add(life);
    this.#held += 1;
    this.arm();
    this.#released.register(life, { actorId, isOwn });
  }

  /** Whether it stands for the handles of an actor, and has no value. */
  has(entry: ObjectEntry): boolean {
    return this.#known.has(entry);
  }

  /** Something of others came here, and is to be let go when nothing holds it. */
  arm(): void {
    this.#collector.arm();
  }

  close(): void {
    this.#collector.close();
  }
}
