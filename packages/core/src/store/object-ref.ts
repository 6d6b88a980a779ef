/**
 * A user's reference to a value that is elsewhere, or not made yet.
 *
 * It is not thenable: an async function may return one without awaiting it. Only this package makes
 * refs and reads them.
 */
import { inspect } from "node:util";
import { refuseJson } from "../shared/text/no-json.ts";
import { SessionEndedError } from "../shared/errors.ts";
import type { ObjectEntry } from "./object-entry.ts";

let read: (ref: ObjectRef) => ObjectEntry;

/**
 * A reference to a value of type `T`. Pass it to a remote call in place of a `T`, or give it to
 * `get` and `wait`.
 */
export class ObjectRef<out T = unknown> {
  readonly #entry: ObjectEntry;
  /** Carries the type only; it is never set. */
  declare protected readonly valueType: T;

  /** @internal Users get refs from `remote()` and `put`. */
  constructor(entry: ObjectEntry) {
    this.#entry = entry;
  }

  static {
    read = (ref) => ref.#entry;
  }

  /** Unique in the cluster: the owner's id and a number. */
  get id(): string {
    return this.#entry.id;
  }

  /** The object's id and name, for people. */
  toString(): string {
    return `ObjectRef(${this.#entry.id})`;
  }
}

export function entryOf(ref: ObjectRef): ObjectEntry {
  return read(ref);
}

/**
 * Returns the entry of a ref that is about to be used.
 *
 * @throws SessionEndedError when its session has ended
 */
export function liveEntryOf(ref: ObjectRef): ObjectEntry {
  return live(read(ref));
}

/** @throws SessionEndedError when its session has ended */
export function live(entry: ObjectEntry): ObjectEntry {
  if (!entry.isStale) return entry;
  throw new SessionEndedError(
    `ObjectRef(${entry.id}) of ${entry.label} belongs to a session that has ended`,
  );
}

// Shows the state when printed. A computed class member would have no declared type, so it is
// defined here.
Object.defineProperty(ObjectRef.prototype, inspect.custom, {
  value(this: ObjectRef): string {
    const entry = entryOf(this);
    const state = entry.outcome === undefined ? "pending" : entry.outcome.ok ? "ready" : "failed";
    return `ObjectRef(${entry.id}, ${entry.label}, ${state})`;
  },
});

// A ref is typed as a stream where its function has the result type of a generator function, and
// `for await` would only say that it cannot be iterated over.
Object.defineProperty(ObjectRef.prototype, Symbol.asyncIterator, {
  value(this: ObjectRef): never {
    throw new TypeError(
      `${String(this)} of ${entryOf(this).label} is a ref, not a stream: only generator functions stream by themselves; get the ref, or give the call that made it numReturns: "streaming"`,
    );
  },
});

refuseJson(
  ObjectRef.prototype,
  "an ObjectRef stands for a value that is elsewhere: get it, or pass the ref to a call; it",
);
