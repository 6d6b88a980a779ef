/**
 * Counts the actors whose handles are here. Every handle holds the life of its actor, an object of
 * the actor's creator, so an actor is out of scope when nobody holds its life any more. A weak
 * handle holds no life and is counted by itself: state kept for the handles of an actor goes with
 * the last of them.
 */
import type { ObjectEntry } from "../../store/object-entry.ts";
import { IdleCollector } from "./idle-collector.ts";

export interface HandleCountsParts {
  /** Refs of others that are held here: like lives, they are let go when the collector has run. */
  readonly borrowedCount: () => number;
  /** Nothing anywhere holds the life of this actor of ours. */
  readonly onReleased: (actorId: string) => void;
  /** No handle of it is here any more. */
  readonly onUnused: (actorId: string) => void;
}

interface Holder {
  readonly actorId: string;
  readonly kind: "own life" | "life" | "weak handle";
}

export class HandleCounts {
  readonly #known: WeakSet<ObjectEntry> = new WeakSet();
  #held = 0;
  /** HandleCounts and weak handles that are here, by actor. */
  readonly #holders: Map<string, number> = new Map();
  readonly #collector: IdleCollector;
  readonly #released: FinalizationRegistry<Holder>;

  constructor({ borrowedCount, onReleased, onUnused }: HandleCountsParts) {
    this.#collector = new IdleCollector(() => this.#held + borrowedCount());
    this.#released = new FinalizationRegistry(({ actorId, kind }) => {
      if (kind !== "weak handle") this.#held -= 1;
      if (kind === "own life") onReleased(actorId);
      const left = (this.#holders.get(actorId) ?? 0) - 1;
      if (left > 0) {
        this.#holders.set(actorId, left);
      } else {
        this.#holders.delete(actorId);
        onUnused(actorId);
      }
    });
  }

  watch(life: ObjectEntry, actorId: string, isOwn: boolean): void {
    if (this.#known.has(life)) return;
    this.#known.add(life);
    this.#held += 1;
    this.arm();
    this.#count(life, { actorId, kind: isOwn ? "own life" : "life" });
  }

  watchWeak(handle: object, actorId: string): void {
    this.#count(handle, { actorId, kind: "weak handle" });
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

  #count(what: object, holder: Holder): void {
    const { actorId } = holder;
    this.#holders.set(actorId, (this.#holders.get(actorId) ?? 0) + 1);
    this.#released.register(what, holder);
  }
}
