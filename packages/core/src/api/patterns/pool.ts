/**
 * A pool of actors: work is submitted to the pool, and any free actor does it.
 *
 * It is built on the public API. As in Ray, an actor is free again when the result of its call is
 * taken. A wait for a result also frees other actors that are done, as long as work is queued for
 * them, so that a slow call at the head of an ordered line delays no other actor. The pool watches
 * no call while nobody waits. An actor is idle only if nothing is queued.
 */
import { inspect } from "node:util";
import { clockMs } from "../../shared/clock.ts";
import {
  ActorDiedError,
  GetTimeoutError,
  InvalidOptionError,
  NoMoreResultsError,
  RaySystemError,
  TaskCancelledError,
} from "../../shared/errors.ts";
import { Fifo } from "../../shared/fifo.ts";
import { Line } from "../../shared/waiting-line.ts";
import { checkOptions, count, flag } from "../../shared/options.ts";
import { letGo } from "../session.ts";
import { show } from "../../shared/text/show.ts";
import { entryOf, ObjectRef } from "../../store/object-ref.ts";
import { kill } from "../actors.ts";
import { getRuntimeContext } from "../context.ts";
import { get, waitForOne } from "../objects.ts";
import type { ActorHandle, RefValue, RefValues } from "../handle-types.ts";

/** The result of a pool's function: the ref, or refs, of the call that it made. */
export type PoolCall = ObjectRef | readonly ObjectRef[];

/** The value of such a call. */
export type PoolValue<Call extends PoolCall> = Call extends ObjectRef
  ? RefValue<Call>
  : Call extends readonly ObjectRef[]
    ? RefValues<Call>
    : never;

/** Options of an ActorPool. */
export interface PoolOptions {
  /**
   * The most calls of the pool that an actor has at a time. More than one hides the latency of
   * messages, or suits actors that mostly wait. Default 1, as in Ray.
   */
  readonly maxInFlightPerActor?: number | undefined;
}

/** Options of `getNext` and `getNextUnordered`. */
export interface PoolGetOptions {
  /** The time in ms after which the call rejects with GetTimeoutError. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /**
   * Whether a timeout gives up that result: its actor takes other work, behind the late call.
   * Default false: a later call can take the result.
   */
  readonly ignoreIfTimedOut?: boolean | undefined;
}

interface Submission<Actor> {
  readonly line: Line<Submission<Actor>>;
  readonly start: (actor: Actor) => PoolCall;
  /** The place in its line. */
  place: number;
  state: "wanted" | "given-up";
  /** The actor that does it, until that actor is free for other work. */
  actor: Actor | undefined;
  call: PoolCall | undefined;
  /** Whether its call is over and its actor free, or the call could not be made. */
  isOver: boolean;
  /** Set when a call that is over is looked at. */
  result: Promise<unknown> | undefined;
  /** While a call that may have failed is looked at; rejects if its looker is cancelled. */
  ending: Promise<void> | undefined;
}

/** Distributes calls over a set of actors. */
export class ActorPool<Actor extends ActorHandle<object>> {
  readonly #maxInFlight: number;
  /** An actor appears here once for each further call that it may have. */
  #idle: Actor[] = [];
  readonly #queue: Fifo<Submission<Actor>> = new Fifo();
  /** Submissions that hold an actor. */
  readonly #busy: Set<Submission<Actor>> = new Set();
  /** Submissions of `submit` whose results are not taken yet; every `map` has a line of its own. */
  readonly #submitted: Line<Submission<Actor>> = new Line();
  /** Whether its remaining results have lost their order. */
  #unordered = false;

  /** @throws InvalidOptionError for a value that is no actor handle, or a duplicate handle */
  constructor(actors: Iterable<Actor>, options: PoolOptions = {}) {
    checkOptions("ActorPool", options, { maxInFlightPerActor: count(1) });
    this.#maxInFlight = options.maxInFlightPerActor ?? 1;
    for (const actor of actors) this.#add(actor);
    // Each actor gets its first call before any gets a second one.
    const once = this.#idle;
    this.#idle = Array.from({ length: this.#maxInFlight }, () => once).flat();
  }

  /**
   * Calls `fn(actor, value)` with a free actor: now, or when one is free. An error of `fn` is
   * thrown here, or by `getNext` if the call was made later.
   */
  submit<Value>(fn: (actor: Actor, value: Value) => PoolCall, value: Value): void {
    this.#submit(this.#submitted, fn, value);
  }

  /**
   * Yields results in the order of `values`. Nothing happens before the first one is requested;
   * then values are taken as actors become free, at most two per actor ahead of the consumer. The
   * first failure ends the iteration. Results of `submit` stay for `getNext`.
   */
  map<Value, Call extends PoolCall>(
    fn: (actor: Actor, value: Value) => Call,
    values: Iterable<Value>,
  ): AsyncGenerator<PoolValue<Call>, void, undefined> {
    return this.#map(fn, values, (line) => this.#takeFirst("ActorPool.map", line, {}));
  }

  /** Yields results like `map`, but in the order in which they become ready. */
  mapUnordered<Value, Call extends PoolCall>(
    fn: (actor: Actor, value: Value) => Call,
    values: Iterable<Value>,
  ): AsyncGenerator<PoolValue<Call>, void, undefined> {
    return this.#map(fn, values, (line) => this.#takeAny("ActorPool.mapUnordered", line, {}));
  }

  /**
   * Returns the next result in the order of submission. Give its type: `pool.getNext<number>()`.
   *
   * Rejects with the error of the call; GetTimeoutError; NoMoreResultsError; RaySystemError after
   * `getNextUnordered` until all results are taken, or when no actor is left.
   */
  async getNext<Value = unknown>(options: PoolGetOptions = {}): Promise<Value> {
    checkGet("ActorPool.getNext", options);
    if (this.#unordered) {
      throw new RaySystemError(
        "ActorPool.getNext cannot follow getNextUnordered, because what is next is not known: take the rest with getNextUnordered",
      );
    }
    return (await this.#takeFirst("ActorPool.getNext", this.#submitted, options)) as Value;
  }

  /** Returns the result that is ready first. Rejects as `getNext` does. */
  async getNextUnordered<Value = unknown>(options: PoolGetOptions = {}): Promise<Value> {
    checkGet("ActorPool.getNextUnordered", options);
    return (await this.#takeAny("ActorPool.getNextUnordered", this.#submitted, options)) as Value;
  }

  /** Whether a submission has a result that is neither taken nor about to be. */
  hasNext(): boolean {
    return this.#submitted.size > 0;
  }

  /** Whether an actor may have one more call, so that a submission would start at once. */
  hasFree(): boolean {
    return this.#idle.length > 0;
  }

  /** Removes and returns an actor that has no call of the pool, if there is one. */
  popIdle(): Actor | undefined {
    const free = this.#idle.findLast(
      (actor) => this.#idle.filter((one) => one === actor).length === this.#maxInFlight,
    );
    if (free !== undefined) this.#idle = this.#idle.filter((one) => one !== free);
    return free;
  }

  /**
   * Adds an actor.
   *
   * @throws InvalidOptionError for a value that is no actor handle, or a handle that is already in
   * the pool
   */
  push(actor: Actor): void {
    this.#add(actor);
    for (let more = this.#maxInFlight; more > 1; more--) this.#free(actor);
  }

  #add(actor: Actor): void {
    const name = nameOf(actor);
    const busy = [...this.#busy].flatMap((one) => one.actor ?? []);
    if ([...this.#idle, ...busy].some((one) => nameOf(one) === name)) {
      throw new InvalidOptionError("actor", `ActorPool: ${name} is in the pool already`);
    }
    this.#free(actor);
  }

  /** Kills the actors in the pool, for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    const busy = [...this.#busy].flatMap((one) => one.actor ?? []);
    const all = new Set([...this.#idle.splice(0), ...busy]);
    await letGo(() => Promise.all([...all].map((actor) => kill(actor))));
  }

  async *#map<Value, Call extends PoolCall>(
    fn: (actor: Actor, value: Value) => Call,
    values: Iterable<Value>,
    take: (line: Line<Submission<Actor>>) => Promise<unknown>,
  ): AsyncGenerator<PoolValue<Call>, void, undefined> {
    const line = new Line<Submission<Actor>>();
    try {
      for (const value of values) {
        this.#submit(line, fn, value);
        while (line.size >= 2 * (this.#idle.length + this.#busy.size)) {
          yield (await take(line)) as PoolValue<Call>;
        }
      }
      while (line.size > 0) yield (await take(line)) as PoolValue<Call>;
    } finally {
      // A consumer that leaves early needs no more results, and queued submissions never start.
      for (const one of line.items()) this.#giveUp(one);
    }
  }

  #submit<Value>(
    line: Line<Submission<Actor>>,
    fn: (actor: Actor, value: Value) => PoolCall,
    value: Value,
  ): void {
    const one: Submission<Actor> = {
      line,
      start: (actor) => fn(actor, value),
      place: 0,
      state: "wanted",
      actor: undefined,
      call: undefined,
      isOver: false,
      result: undefined,
      ending: undefined,
    };
    const actor = this.#idle.shift();
    if (actor === undefined) {
      this.#queue.push(one);
    } else {
      try {
        this.#start(one, actor);
      } catch (error) {
        this.#free(actor);
        throw error;
      }
    }
    one.place = line.add(one);
  }

  #start(one: Submission<Actor>, actor: Actor): void {
    one.call = checkedCall(one.start(actor));
    one.actor = actor;
    this.#busy.add(one);
  }

  /** Gives an idle actor the next queued submission, or marks it as idle. */
  #free(actor: Actor): void {
    for (;;) {
      const one = this.#queue.shift();
      if (one === undefined) break;
      if (one.state === "given-up") continue;
      try {
        return this.#start(one, actor);
      } catch (error) {
        one.result = Promise.reject(error);
        one.result.catch(ignore);
        one.isOver = true;
      }
    }
    this.#idle.push(actor);
  }

  async #takeFirst(
    where: string,
    line: Line<Submission<Actor>>,
    options: PoolGetOptions,
  ): Promise<unknown> {
    const one = line.shift();
    if (one === undefined) throw new NoMoreResultsError(where);
    try {
      const over = await this.#oneOver(() => [one], where, deadlineOf(options));
      if (over !== undefined) return await resultOf(one);
    } catch (error) {
      // The submission's own failure is its result; any other error leaves it to be taken later.
      if (one.result === undefined) line.putBack(one.place, one);
      throw error;
    }
    if (options.ignoreIfTimedOut === true) this.#giveUp(one);
    else line.putBack(one.place, one);
    throw timedOut(options, [one]);
  }

  async #takeAny(
    where: string,
    line: Line<Submission<Actor>>,
    options: PoolGetOptions,
  ): Promise<unknown> {
    const deadline = deadlineOf(options);
    for (;;) {
      const one = await this.#oneOver(() => line.items(), where, deadline);
      if (one === undefined) {
        const late = [...line.items()];
        const oldest = late.find(({ actor }) => actor !== undefined);
        if (options.ignoreIfTimedOut === true && oldest !== undefined) this.#giveUp(oldest);
        throw timedOut(options, late);
      }
      if (line.take(one.place) === undefined) continue;
      if (line === this.#submitted) this.#unordered = line.size > 0;
      try {
        return await resultOf(one);
      } catch (error) {
        if (one.result === undefined) line.putBack(one.place, one);
        throw error;
      }
    }
  }

  /**
   * Waits until one of the submissions is over; meanwhile other actors that are done take queued
   * work. Returns undefined when the time is over first.
   */
  async #oneOver(
    wanted: () => Iterable<Submission<Actor>>,
    where: string,
    deadline: number | undefined,
  ): Promise<Submission<Actor> | undefined> {
    for (;;) {
      const watched: Submission<Actor>[] = [];
      let isAnyWanted = false;
      for (const one of wanted()) {
        if (one.isOver) return one;
        isAnyWanted = true;
        if (one.call !== undefined) watched.push(one);
      }
      if (!isAnyWanted) throw new NoMoreResultsError(where);
      if (this.#queue.size > 0) watched.push(...this.#busy);
      if (watched.length === 0) {
        throw new RaySystemError(
          `${where}: the pool has no actor left for the queued calls; push one`,
        );
      }
      let done = watched.find(isReady);
      if (done === undefined) {
        const timeout =
          deadline === undefined ? {} : { timeoutMs: Math.max(0, deadline - clockMs()) };
        await waitForOne(watched.map(firstRef), timeout);
        done = watched.find(isReady);
        if (done === undefined) return undefined;
      }
      if (this.#endGood(done)) continue;
      // The look of another caller, which may be cancelled: then this one looks again.
      if (done.ending === undefined) await this.#look(done);
      else await done.ending.catch(ignore);
    }
  }

  /** Frees the actor of a call that has given its one value. Returns whether it was such a one. */
  #endGood(one: Submission<Actor>): boolean {
    if (!(one.call instanceof ObjectRef) || entryOf(one.call).outcome?.ok !== true) return false;
    one.isOver = true;
    const { actor } = one;
    if (actor !== undefined) {
      this.#letGo(one);
      this.#free(actor);
    }
    return true;
  }

  async #look(one: Submission<Actor>): Promise<void> {
    one.ending = this.#end(one);
    try {
      await one.ending;
    } finally {
      one.ending = undefined;
    }
  }

  /**
   * Handles a call that is over: it keeps the result, and frees the actor unless it is dead. Throws
   * if the task that looks is cancelled meanwhile: the call is not over for the pool then.
   */
  async #end(one: Submission<Actor>): Promise<void> {
    const result = get(one.call as ObjectRef);
    const failure = await result.then(ignore, (error: unknown) => error);
    if (isInterruption(failure)) throw failure;
    one.result = result;
    one.isOver = true;
    const { actor } = one;
    if (actor === undefined) return;
    this.#letGo(one);
    // The failure may name another actor, which this one called.
    if (failure instanceof ActorDiedError && nameOf(actor).includes(failure.actorId)) {
      this.#idle = this.#idle.filter((other) => other !== actor);
      return;
    }
    this.#free(actor);
  }

  /** Gives up a result: its actor may take other work, which runs behind the late call. */
  #giveUp(one: Submission<Actor>): void {
    one.state = "given-up";
    one.line.take(one.place);
    const { actor } = one;
    if (actor === undefined) return;
    this.#letGo(one);
    this.#free(actor);
  }

  #letGo(one: Submission<Actor>): void {
    this.#busy.delete(one);
    one.actor = undefined;
  }
}

const ignore = (): undefined => undefined;

function checkGet(where: string, options: PoolGetOptions): void {
  checkOptions(where, options, { timeoutMs: count(0, "fraction"), ignoreIfTimedOut: flag });
}

/**
 * Returns the printed form of a handle, its class and id, which is equal for all handles of an
 * actor.
 */
function nameOf(actor: object): string {
  const name = inspect(actor);
  if (!name.startsWith("ActorHandle(")) {
    throw new InvalidOptionError(
      "actor",
      `ActorPool takes actor handles, ${show(actor)} is not one`,
    );
  }
  return name;
}

function checkedCall(call: PoolCall): PoolCall {
  const refs: readonly unknown[] = Array.isArray(call) ? call : [call];
  if (refs.length === 0 || !refs.every((ref) => ref instanceof ObjectRef)) {
    throw new InvalidOptionError(
      "fn",
      `ActorPool: the function must return the ref of the call it makes, not ${show(call)}`,
    );
  }
  return call;
}

/** A submission as far as its call goes. */
interface Called {
  readonly call: PoolCall | undefined;
}

/** Returns the ref of a call that was made, the first one if it has several. */
function firstRef({ call }: Called): ObjectRef {
  return (call instanceof ObjectRef ? call : call?.[0]) as ObjectRef;
}

function isReady(one: Called): boolean {
  return entryOf(firstRef(one)).isReady;
}

/** The result of a submission that is over. A cancelled task takes none: it can be taken again. */
async function resultOf(one: {
  readonly call: PoolCall | undefined;
  result: Promise<unknown> | undefined;
}): Promise<unknown> {
  one.result ??= get(one.call as ObjectRef);
  try {
    return await one.result;
  } catch (error) {
    if (isInterruption(error)) one.result = undefined;
    throw error;
  }
}

/** Whether the running task was cancelled, not a call that it made. */
function isInterruption(error: unknown): boolean {
  return error instanceof TaskCancelledError && error.taskId === getRuntimeContext().getTaskId();
}

function deadlineOf({ timeoutMs }: PoolGetOptions): number | undefined {
  return timeoutMs === undefined ? undefined : clockMs() + timeoutMs;
}

function timedOut(options: PoolGetOptions, late: readonly Called[]): GetTimeoutError {
  const waitingFor = late.map((one) =>
    inspect(one.call === undefined ? "a call that is queued" : firstRef(one)),
  );
  return new GetTimeoutError(options.timeoutMs ?? 0, waitingFor);
}
