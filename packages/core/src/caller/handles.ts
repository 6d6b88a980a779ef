/** Actor handles of one runtime: made, received and counted. */
import type { ActorInfo } from "../rpc/directory.ts";
import type { ObjectEntry } from "../store/object-entry.ts";
import type { Store } from "../store/store.ts";
import { type HandleCaller, makeHandle } from "./handle.ts";
import { HandleCounts } from "./objects/handle-counts.ts";

export interface HandlesParts {
  readonly store: Store;
  /** Calls of the handles; asked when the first of them is made. */
  readonly caller: () => HandleCaller;
  /** Nothing anywhere holds this actor of ours. */
  readonly onReleased: (actorId: string) => void;
  /** No handle of the actor is here any more. */
  readonly onUnused: (actorId: string) => void;
}

export class Handles {
  readonly #store: Store;
  readonly #caller: () => HandleCaller;
  readonly #counts: HandleCounts;

  constructor({ store, caller, onReleased, onUnused }: HandlesParts) {
    this.#store = store;
    this.#caller = caller;
    this.#counts = new HandleCounts({
      borrowedCount: () => store.borrowedCount,
      onReleased,
      onUnused,
    });
  }

  /** The first handle of an actor that this runtime creates. It keeps its actor alive. */
  own(info: ActorInfo): object {
    const life = this.#store.create(`actor ${info.className}`);
    this.#counts.watch(life, info.actorId, true);
    return makeHandle(info, this.#caller(), life);
  }

  /** A handle that does not keep its actor alive. */
  weak(info: ActorInfo): object {
    const handle = makeHandle(info, this.#caller(), undefined);
    this.#counts.watchWeak(handle, info.actorId);
    return handle;
  }

  /** A handle that arrived inside a value; `owner` and `sequence` name the actor's life. */
  received(info: ActorInfo, owner: string, sequence: number): object {
    const life = this.#store.importReference(owner, sequence, `actor ${info.className}`);
    this.#counts.watch(life, info.actorId, owner === this.#store.id);
    return makeHandle(info, this.#caller(), life);
  }

  /** Something of others is held here: the collector is asked to run when it idles. */
  arm(): void {
    this.#counts.arm();
  }

  /** Whether an entry stands for the handles of an actor, and has no value. */
  isLife(entry: ObjectEntry): boolean {
    return this.#counts.has(entry);
  }

  close(): void {
    this.#counts.close();
  }
}
