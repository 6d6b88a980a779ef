/**
 * A first-in first-out queue that many actors and tasks share: one async actor with the items, and
 * a `Queue` on each side that travels.
 *
 * It is an actor like any other. All waits are inside the actor, in one thread: it decides once
 * whether a waiter got its item, timed out, was withdrawn or died, so the last three leave nothing
 * behind. A call of a cancelled task is withdrawn there, and not cancelled: its caller cannot know
 * whether an item is on its way, and hears what became of it.
 * A waiting `get` means that there are no items, and a waiting `put` means that there is no room.
 */
import { Call } from "../../caller/calls/call.ts";
import { checkInterrupted, currentTask } from "../../caller/waits/task-scope.ts";
import { Empty, Full, InvalidOptionError, RaySystemError } from "../../shared/errors.ts";
import { present } from "../../shared/errors/internal.ts";
import { asError } from "../../shared/errors/thrown.ts";
import { Fifo } from "../../shared/fifo.ts";
import { Line } from "../../shared/waiting-line.ts";
import {
  type Check,
  checkOptions,
  count,
  flag,
  isRecord,
  withoutUndefined,
} from "../../shared/options.ts";
import { ownFile, ownFolder } from "../../shared/own-files.ts";
import { show } from "../../shared/text/show.ts";
import { entryOf, type ObjectRef } from "../../store/object-ref.ts";
import { kill, registerSerializer } from "../actors.ts";
import { get, getToTheEnd, wait } from "../objects.ts";
import type { ActorClass } from "../remote/actor-class.ts";
import type { ActorOptions } from "../remote/options.ts";
import { remote, type RemoteName } from "../remote/remote.ts";
import { letGo } from "../session.ts";
import { cancel } from "../tasks.ts";
import type { ActorHandle } from "../handle-types.ts";
import { timers } from "../../shared/machine/timers.ts";

/** Options of a Queue. */
export interface QueueOptions {
  /** The most items that it holds; further puts wait. Default 0: no limit. */
  readonly maxsize?: number | undefined;
  /**
   * Options of the actor behind it, such as a name. It takes no CPU by default; the queue sets its
   * concurrency.
   */
  readonly actorOptions?: Omit<ActorOptions, "maxConcurrency"> | undefined;
}

/** Options of `put` and `get` of a Queue. */
export interface QueueWaitOptions {
  /** Whether to wait; false fails at once. Default true. */
  readonly block?: boolean | undefined;
  /** The most time to wait, in ms. Default: no limit. */
  readonly timeoutMs?: number | undefined;
}

/** Options of `shutdown` of a Queue. */
export interface QueueShutdownOptions {
  /** Whether to end without waiting for calls that are under way. Default false. */
  readonly force?: boolean | undefined;
  /** The time that these calls have to finish, in ms. Default 5,000. */
  readonly gracePeriodMs?: number | undefined;
}

interface Waiter {
  readonly taskId: string;
  /** The item that the waiter wants to put. */
  readonly item: unknown;
  readonly finish: (item: unknown) => void;
  timer: NodeJS.Timeout | undefined;
}

class QueueActor {
  readonly #maxsize: number;
  readonly #items: Fifo<unknown> = new Fifo();
  readonly #getters: Line<Waiter> = new Line();
  readonly #putters: Line<Waiter> = new Line();
  /** Ends the wait of each call in one of the lines, by its id. */
  readonly #leaves: Map<string, (why: unknown) => void> = new Map();
  #onQuiet: (() => void)[] = [];

  constructor(maxsize: number) {
    this.#maxsize = maxsize === 0 ? Number.POSITIVE_INFINITY : maxsize;
  }

  /** Puts an item. It is wrapped, so that a ref stays a ref. */
  put([item]: readonly [unknown], timeoutMs: number | undefined): unknown {
    if (this.#items.size < this.#maxsize) return this.#add(item);
    const late = (): Error => new Full(`there was no room within ${timeoutMs} ms`, this.#maxsize);
    return this.#wait(this.#putters, item, timeoutMs, late);
  }

  get(timeoutMs: number | undefined): unknown {
    if (this.#items.size > 0) return this.#take();
    const late = (): Error => new Empty(`no item came within ${timeoutMs} ms`);
    return this.#wait(this.#getters, undefined, timeoutMs, late);
  }

  putNowait(items: readonly unknown[]): void {
    if (this.#items.size + items.length > this.#maxsize) {
      throw new Full(
        `${items.length} more do not fit to the ${this.#items.size} in it`,
        this.#maxsize,
      );
    }
    for (const item of items) this.#add(item);
  }

  getNowait(wanted: number): unknown[] {
    if (this.#items.size < wanted) {
      throw new Empty(`${wanted} were asked for, ${this.#items.size} are in it`);
    }
    return Array.from({ length: wanted }, () => this.#take());
  }

  size(): number {
    return this.#items.size;
  }

  /** Resolves when no call waits any more. */
  async quiet(): Promise<void> {
    if (this.#getters.size + this.#putters.size === 0) return;
    await new Promise<void>((resolve) => this.#onQuiet.push(resolve));
  }

  /** A waiting call ends without an item. One that is over stays as it is. */
  withdraw(taskId: string): void {
    this.#leaves.get(taskId)?.(new RaySystemError("its caller has withdrawn it"));
  }

  full(): boolean {
    return this.#items.size >= this.#maxsize;
  }

  #add(item: unknown): void {
    if (!this.#finishFirst(this.#getters, () => item)) this.#items.push(item);
  }

  #take(): unknown {
    const item = this.#items.shift();
    this.#finishFirst(this.#putters, (putter) => this.#items.push(putter.item));
    return item;
  }

  #finishFirst(line: Line<Waiter>, give: (waiter: Waiter) => unknown): boolean {
    const first = line.shift();
    if (first === undefined) return false;
    first.finish(give(first));
    this.#left(first);
    return true;
  }

  #wait(
    line: Line<Waiter>,
    item: unknown,
    timeoutMs: number | undefined,
    late: () => Error,
  ): Promise<unknown> {
    if (timeoutMs === 0) throw late();
    const task = present(currentTask(), "call that waits");
    const { taskId, signal } = task;
    signal.throwIfAborted();
    return new Promise((finish, reject) => {
      const waiter: Waiter = { taskId, item, finish, timer: undefined };
      const place = line.add(waiter);
      const leave = (why: unknown): void => {
        if (line.take(place) === undefined) return;
        reject(asError(why));
        this.#left(waiter);
      };
      this.#leaves.set(taskId, leave);
      signal.addEventListener("abort", () => leave(signal.reason), { once: true });
      // One that waits for an item would take the next one with it, and one that waits for room
      // would still put its item, which a restarted caller puts again.
      task.whenCallerLost(() => leave(new RaySystemError("the caller is gone")));
      if (timeoutMs === undefined) return;
      waiter.timer = timers.setTimeout(() => leave(late()), Math.min(timeoutMs, longestTimerMs));
    });
  }

  #left({ taskId, timer }: Waiter): void {
    timers.clearTimeout(timer);
    this.#leaves.delete(taskId);
    if (this.#getters.size + this.#putters.size > 0) return;
    for (const resolve of this.#onQuiet.splice(0)) resolve();
  }
}

/** setTimeout fires at once for a longer time. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * Named, because to find the place of a call V8 reads the whole file again, in each host. In a
 * bundle, which hosts cannot load, it has no module.
 */
const place: RemoteName =
  ownFolder.protocol === "file:"
    ? { module: ownFile("api/patterns/queue"), exportName: "QueueActorClass" }
    : {};

export const QueueActorClass: ActorClass<typeof QueueActor> = remote(QueueActor, place);

/**
 * Each waiting call holds a place, and the call that would free them needs one: this limit is never
 * reached in practice.
 */
const actorDefaults: ActorOptions = { numCpus: 0, maxConcurrency: 1_000_000 };

const ofTheActor: Check = (value) => {
  if (!isRecord(value)) return "must be an object";
  return value["maxConcurrency"] !== undefined
    ? "must leave maxConcurrency to the queue"
    : undefined;
};

type QueueHandle = ActorHandle<QueueActor>;

/**
 * The actor of each Queue. A Queue that arrives from elsewhere is made around the handle that came.
 */
const actors: WeakMap<object, QueueHandle> = new WeakMap();

/**
 * A first-in first-out queue between actors, tasks and the driver. Pass it as an argument, put it
 * into values, return it: all copies use one queue. Items of one producer keep their order. An item
 * of a class with a serializer of its own can be put only if the queue's host has loaded the module
 * that registers it: send plain data.
 *
 * Calls reject with Full, Empty, InvalidOptionError, NotEncodableError, with ActorDiedError after
 * its `shutdown`, and with SessionEndedError after that of the session. In a cancelled task a call
 * that waits rejects with TaskCancelledError, and neither puts nor takes an item. If the queue has
 * answered it before it was withdrawn, it resolves, and the next wait of the task rejects. A call
 * that waits for an actor or task that has died neither puts nor takes; an item on its way there is
 * lost.
 */
export class Queue<T = unknown> {
  /** @throws InvalidOptionError, ActorAlreadyExistsError */
  constructor(options: QueueOptions = {}) {
    checkOptions("Queue", options, { maxsize: count(0), actorOptions: ofTheActor });
    const actorClass = QueueActorClass.options({
      ...actorDefaults,
      ...withoutUndefined(options.actorOptions ?? {}),
    });
    actors.set(this, actorClass.remote(options.maxsize ?? 0));
  }

  /**
   * Puts an item. Resolves when it is in the queue; waits while the queue is full. Rejects with
   * Full when it may not wait, or no longer.
   */
  async put(item: T, options: QueueWaitOptions = {}): Promise<void> {
    if (!waits("Queue.put", options)) return this.putNowait(item);
    await answerOf(this, (actor) => actor.put.remote([item], options.timeoutMs));
  }

  /**
   * Takes the oldest item; waits for one. Rejects with Empty when it may not wait, or no longer;
   * then it takes no later item either.
   */
  async get(options: QueueWaitOptions = {}): Promise<T> {
    if (!waits("Queue.get", options)) return this.getNowait();
    return answerOf<T>(this, (actor) => actor.get.remote(options.timeoutMs));
  }

  /** Puts an item, or rejects with Full if there is no room. */
  async putNowait(item: T): Promise<void> {
    await answerOf(this, (actor) => actor.putNowait.remote([item]));
  }

  /** Takes the oldest item, or rejects with Empty if there is none. */
  async getNowait(): Promise<T> {
    const [item] = await answerOf<unknown[]>(this, (actor) => actor.getNowait.remote(1));
    return item as T;
  }

  /** Puts all items, or rejects with Full and puts none. */
  async putNowaitBatch(items: Iterable<T>): Promise<void> {
    if (typeof items !== "object" || items === null || !(Symbol.iterator in items)) {
      throw new InvalidOptionError(
        "items",
        `Queue.putNowaitBatch takes a list, not ${show(items)}`,
      );
    }
    await answerOf(this, (actor) => actor.putNowait.remote([...items]));
  }

  /** Takes that many items, or rejects with Empty and takes none. */
  async getNowaitBatch(numItems: number): Promise<T[]> {
    checkOptions("Queue.getNowaitBatch", { numItems }, { numItems: count(0) });
    return answerOf<T[]>(this, (actor) => actor.getNowait.remote(numItems));
  }

  /** Returns the number of items in the queue. */
  async size(): Promise<number> {
    return get(actorOf(this).size.remote());
  }

  /** Whether the queue has no items. */
  async empty(): Promise<boolean> {
    return (await this.size()) === 0;
  }

  /** Whether a put would have to wait. */
  async full(): Promise<boolean> {
    return get(actorOf(this).full.remote());
  }

  /** Shuts it down, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await letGo(() => this.shutdown());
  }

  /**
   * Ends the queue and its items for all users; calls that still wait reject with ActorDiedError.
   * Idempotent.
   */
  async shutdown(options: QueueShutdownOptions = {}): Promise<void> {
    checkOptions("Queue.shutdown", options, {
      force: flag,
      gracePeriodMs: count(0, "fraction"),
    });
    const actor = actorOf(this);
    if (options.force !== true) {
      await wait([actor.quiet.remote()], { timeoutMs: options.gracePeriodMs ?? 5_000 });
    }
    await kill(actor);
  }
}

registerSerializer<Queue>(Queue, {
  // The id belongs to this copy of the package, as the key of the actor class does.
  id: `Queue of ${import.meta.url}`,
  write: (queue) => [actorOf(queue)],
  read: (data) => {
    const queue = Object.create(Queue.prototype) as Queue;
    const [actor] = data as readonly [QueueHandle];
    actors.set(queue, actor);
    return queue;
  },
});

function actorOf(queue: object): QueueHandle {
  const actor = actors.get(queue);
  if (actor === undefined) throw new InvalidOptionError("this", `${show(queue)} is not a Queue`);
  return actor;
}

/**
 * Makes a call that puts or takes items. It resolves if the call did so, and rejects if it did not.
 *
 * A task that was cancelled before makes none. One that is cancelled meanwhile withdraws the call,
 * and waits for its answer: if that is an item, the code gets it, and its next wait rejects.
 */
async function answerOf<T>(queue: object, make: (actor: QueueHandle) => ObjectRef): Promise<T> {
  checkInterrupted();
  const actor = actorOf(queue);
  const ref = make(actor);
  const entry = entryOf(ref);
  const task = currentTask();
  let isWithdrawn = false;
  const withdraw = (): void => {
    const { producer, isStale } = entry;
    if (!(producer instanceof Call) || isStale) return;
    isWithdrawn = true;
    // A call that was not sent ends here: its actor may never live.
    if (producer.session === undefined) cancel(ref);
    else actor.withdraw.options({ numReturns: 0 }).remote(ref.id);
  };
  if (entry.producer instanceof Call) entry.producer.isApart = true;
  task?.signal.addEventListener("abort", withdraw, { once: true });
  try {
    return (await getToTheEnd(ref)) as T;
  } catch (error) {
    if (isWithdrawn) throw task?.takeInterruption() ?? task?.signal.reason ?? error;
    // The session has ended, or the wait has failed: a call that has ended stays as it is.
    if (!entry.isStale) cancel(ref);
    throw error;
  } finally {
    task?.signal.removeEventListener("abort", withdraw);
  }
}

function waits(where: string, options: QueueWaitOptions): boolean {
  checkOptions(where, options, { block: flag, timeoutMs: count(0, "fraction") });
  return options.block ?? true;
}
