/**
 * The items of a generator method or task, as refs, while they are made.
 *
 * Items arrive in order; items of a retry that had arrived before are dropped. A failure is one
 * more ref, then the stream has ended. Letting go of the generator (the end of a `for await`, the
 * collector) ends its producer, as in JavaScript; a detached producer runs on, without
 * back-pressure, and its items are dropped.
 */
import { inspect } from "node:util";
import type { Encoded } from "../protocol/codec.ts";
import type { FailureData } from "../protocol/failure.ts";
import { noMoreItems, unlimitedItems } from "../protocol/message.ts";
import { RaySystemError, StreamingGeneratorReplayInconsistentError } from "../shared/errors.ts";
import { Fifo } from "../shared/fifo.ts";
import { refuseJson } from "../shared/text/no-json.ts";
import type { ObjectEntry } from "../store/object-entry.ts";
import { ObjectRef } from "../store/object-ref.ts";
import type { Session } from "../rpc/session/session.ts";
import type { Returns } from "./calls/call.ts";
import type { ClientLink } from "./calls/client-link.ts";
import { Wait } from "./waits/stuck-watch.ts";
import { checkInterrupted } from "./waits/task-scope.ts";
import type { Waiting } from "./waits/waiting-tasks.ts";

export class StreamState implements Returns {
  readonly completion: ObjectEntry;
  readonly waiting: Waiting;
  /** See waits/waitable.ts. */
  wave = 0;
  readonly #link: ClientLink;
  readonly #isLimited: boolean;
  readonly #isDetached: boolean;
  readonly #items: Fifo<ObjectEntry> = new Fifo();
  readonly #watchers: Set<() => void> = new Set();
  #received = 0;
  #taken = 0;
  #isEnded = false;
  #isDropped = false;
  #sent: { readonly session: Session; readonly id: number } | undefined;

  constructor(
    completion: ObjectEntry,
    link: ClientLink,
    waiting: Waiting,
    { isLimited, isDetached }: { readonly isLimited: boolean; readonly isDetached: boolean },
  ) {
    this.completion = completion;
    this.waiting = waiting;
    this.#link = link;
    this.#isLimited = isLimited;
    this.#isDetached = isDetached;
    // Its failure is the last item, too.
    completion.overlook();
  }

  sent(session: Session, id: number): void {
    this.#sent = { session, id };
    if (this.#taken > 0 || this.#isDropped) this.#tellTaken();
  }

  item(index: number, value: Encoded): void {
    if (index < this.#received) return this.#link.values.decline(value);
    this.#received += 1;
    const entry = this.#link.objects.store.create(`${this.completion.label}[${index}]`);
    // Also where nobody will take it: the refs inside are ours to release.
    this.#link.objects.settle(entry, value);
    if (this.#isDropped) return;
    this.#items.push(entry);
    this.#changed();
  }

  end(value: Encoded): Error | undefined {
    this.#sent = undefined;
    const count = this.#link.values.codec.decode(value);
    if (typeof count !== "number") {
      return new RaySystemError(`${this.completion.label} ended without the count of its items`);
    }
    if (count < this.#received) {
      return new StreamingGeneratorReplayInconsistentError(
        this.completion.label,
        this.#received,
        count,
      );
    }
    this.#isEnded = true;
    this.#changed();
    return undefined;
  }

  fail(failure: FailureData): void {
    this.#sent = undefined;
    if (!this.#isDropped) {
      const entry = this.#link.objects.store.create(`${this.completion.label}[${this.#received}]`);
      entry.reject(failure);
      this.#items.push(entry);
    }
    this.#isEnded = true;
    this.#changed();
  }

  /** The next item, or the end, is there. */
  get isReady(): boolean {
    return this.#items.size > 0 || this.#isEnded || this.#isDropped;
  }

  get isFinished(): boolean {
    return this.#items.size === 0 && (this.#isEnded || this.#isDropped);
  }

  take(): ObjectEntry | undefined {
    const entry = this.#items.shift();
    if (entry === undefined) return undefined;
    this.#taken += 1;
    this.#tellTaken();
    return entry;
  }

  /** Calls back when the next item or the end is there: at once if it is. */
  watch(watcher: () => void): void {
    if (this.isReady) watcher();
    else this.#watchers.add(watcher);
  }

  unwatch(watcher: () => void): void {
    this.#watchers.delete(watcher);
  }

  /**
   * Resolves when the next item or the end is there. Rejects when the task that waits is cancelled.
   */
  async next(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const wait = new Wait("the next of a generator");
    wait.waitables = [this];
    wait.stop = reject;
    wait.isEndless = true;
    this.waiting.begin(wait);
    this.watch(resolve);
    try {
      await promise;
    } finally {
      this.unwatch(resolve);
      this.waiting.ended(wait);
    }
  }

  drop(): void {
    if (this.#isDropped) return;
    this.#isDropped = true;
    this.#items.drain();
    this.#tellTaken();
    this.#changed();
  }

  #tellTaken(): void {
    if (this.#sent === undefined) return;
    const { session, id } = this.#sent;
    let count: number | undefined;
    if (this.#isDropped && !this.#isDetached) count = noMoreItems;
    else if (this.#isLimited) count = this.#isDropped ? unlimitedItems : this.#taken;
    if (count !== undefined) session.send({ kind: "consumed", id, count });
  }

  #changed(): void {
    const watchers = [...this.#watchers];
    this.#watchers.clear();
    for (const watcher of watchers) watcher();
  }
}

let read: (generator: ObjectRefGenerator) => StreamState;

const dropped: FinalizationRegistry<StreamState> = new FinalizationRegistry((state) =>
  state.drop(),
);

/**
 * Refs to the items of a streaming method or task, each given out as soon as its item is there:
 * `for await (const ref of generator)`.
 *
 * An exception after k items gives one more ref, which rejects, and then the end. A generator
 * cannot be sent to another actor, nor replayed.
 */
export class ObjectRefGenerator<out T = unknown> implements AsyncIterableIterator<ObjectRef<T>> {
  readonly #state: StreamState;
  /** Carries the type only; never set. */
  declare protected readonly itemType: T;

  /** @internal Users get generators from `remote()`. */
  constructor(state: StreamState) {
    this.#state = state;
    dropped.register(this, state);
  }

  static {
    read = (generator) => generator.#state;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /**
   * Resolves with the ref of the next item when it is there; with `done` at the end, and ever
   * after.
   */
  async next(): Promise<IteratorResult<ObjectRef<T>, undefined>> {
    const state = this.#state;
    checkInterrupted();
    for (;;) {
      const entry = state.take();
      if (entry !== undefined) return { done: false, value: new ObjectRef<T>(entry) };
      if (state.isFinished) return { done: true, value: undefined };
      await state.next();
    }
  }

  /**
   * Lets go of the rest, as the end of a `for await` does: the generator ends where it is, and its
   * `finally` runs. Refs that were given out stay good. With `detached: true` among the options of
   * the call the method runs on to its end.
   */
  async return(): Promise<IteratorResult<ObjectRef<T>, undefined>> {
    this.#state.drop();
    return { done: true, value: undefined };
  }

  /** Lets go of the rest as `return` does, and rejects with `error`. */
  async throw(error?: unknown): Promise<IteratorResult<ObjectRef<T>, undefined>> {
    this.#state.drop();
    throw error;
  }

  /** As `return`, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#state.drop();
  }

  /** A ref that is ready when the method has ended: to the number of items, or to what it threw. */
  completed(): ObjectRef<number> {
    return new ObjectRef<number>(this.#state.completion);
  }

  /** Whether `next` would answer at once. */
  nextReady(): boolean {
    return this.#state.isReady;
  }

  /** Whether every item has been taken and no more will come. */
  isFinished(): boolean {
    return this.#state.isFinished;
  }
}

export function streamOf(generator: ObjectRefGenerator): StreamState {
  return read(generator);
}

// Defined here because a computed class member has no declared type.
Object.defineProperty(ObjectRefGenerator.prototype, inspect.custom, {
  value(this: ObjectRefGenerator): string {
    return `ObjectRefGenerator(${streamOf(this).completion.label})`;
  },
});

refuseJson(ObjectRefGenerator.prototype, "a stream of refs is read by iterating over it; it");
