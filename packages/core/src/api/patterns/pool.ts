/**
 * A pool of actors: work is submitted to the pool, and whichever actor is free does it.
 *
 * Built on the public API. As in Ray, an actor is free again when the result of its call is taken; so that a slow call
 * at the head of an ordered line keeps no other actor from working, whoever waits for a result also frees actors that are done, as long as
 * something is queued for them. Nothing happens behind the user's back: no call is watched while nobody waits.
 * An actor is idle only if nothing is queued.
 */
import { inspect } from "node:util";
import {
  ActorDiedError,
  GetTimeoutError,
  InvalidOptionError,
  NoMoreResultsError,
  RaySystemError,
} from "../../shared/errors.ts";
import { Fifo } from "../../shared/fifo.ts";
import { Line } from "../../shared/text/line.ts";
import { checkOptions, count, flag } from "../../shared/options.ts";
import { letGo } from "../session.ts";
import { show } from "../../shared/text/show.ts";
import { ObjectRef } from "../../store/object-ref.ts";
import { kill } from "../actors.ts";
import { get, wait } from "../objects.ts";
import type { ActorHandle, RefValue, RefValues } from "../types.ts";

/** What a function of a pool gives back: the ref, or refs, of the call it made. */
export type PoolCall = ObjectRef | readonly ObjectRef[];

/** The result of such a call. */
export type PoolValue<Call extends PoolCall> = Call extends ObjectRef
  ? RefValue<Call>
  : Call extends readonly ObjectRef[]
    ? RefValues<Call>
    : never;

export interface PoolOptions {
  /** How many calls of the pool an actor has at a time: more than one hides the way there and back, or is for actors that mostly wait. Default 1, as in Ray. */
  readonly maxInFlightPerActor?: number;
}

export interface PoolGetOptions {
  /** Reject with GetTimeoutError after this. Default: wait as long as it takes. */
  readonly timeoutMs?: number;
  /** After a timeout, give up that result: its actor takes other work, behind the late call. Default false: it can be got later. */
  readonly ignoreIfTimedOut?: boolean;
}

interface Submission<Actor> {
  readonly line: Line<Submission<Actor>>;
  readonly start: (actor: Actor) => PoolCall;
  /** In its line. */
  place: number;
  state: "wanted" | "given-up";
  /** Who does it, until that actor is free for other work. */
  actor: Actor | undefined;
  call: PoolCall | undefined;
  /** Set when the call is over, or could not be made. */
  result: Promise<unknown> | undefined;
  freed: Promise<void> | undefined;
}

export class ActorPool<Actor extends ActorHandle<object>> {
  readonly #maxInFlight: number;
  /** An actor stands here once for each call that it may have more. */
  #idle: Actor[] = [];
  readonly #queue: Fifo<Submission<Actor>> = new Fifo();
  /** Submissions that hold an actor. */
  readonly #busy: Set<Submission<Actor>> = new Set();
  /** What `submit` was given and nobody took yet; every `map` has a line of its own. */
  readonly #submitted: Line<Submission<Actor>> = new Line();
  /** Whether what is left in it has lost its order. */
  #unordered = false;

  /** @throws InvalidOptionError for what is no actor handle, or stands twice */
  constructor(actors: Iterable<Actor>, options: PoolOptions = {}) {
    checkOptions("ActorPool", options, { maxInFlightPerActor: count(1) });
    this.#maxInFlight = options.maxInFlightPerActor ?? 1;
    for (const actor of actors) this.#add(actor);
    // Each has its first call before any has a second one.
    const once = this.#idle;
    this.#idle = Array.from({ length: this.#maxInFlight }, () => once).flat();
  }

  /**
   * Has `fn(actor, value)` called with an actor that is free: now, or when one is. What `fn` throws comes from here, or from `getNext` if it
   * was called later.
   */
  submit<Value>(fn: (actor: Actor, value: Value) => PoolCall, value: Value): void {
    this.#submit(this.#submitted, fn, value);
  }

  /**
   * Results in the order of `values`. Nothing happens before the first is asked for; then values are taken as actors become free, at most two
   * per actor ahead of the consumer. The first failure ends the iteration. What `submit` was given stays for `getNext`.
   */
  map<Value, Call extends PoolCall>(
    fn: (actor: Actor, value: Value) => Call,
    values: Iterable<Value>,
  ): AsyncGenerator<PoolValue<Call>, void, undefined> {
    return this.#map(fn, values, (line) => this.#takeFirst("ActorPool.map", line, {}));
  }

  /** As `map`, but results come in the order in which they are ready. */
  mapUnordered<Value, Call extends PoolCall>(
    fn: (actor: Actor, value: Value) => Call,
    values: Iterable<Value>,
  ): AsyncGenerator<PoolValue<Call>, void, undefined> {
    return this.#map(fn, values, (line) => this.#takeAny("ActorPool.mapUnordered", line, {}));
  }

  /**
   * The next result in the order of submission. Give its type: `pool.getNext<number>()`.
   *
   * Rejects with what the call rejects with; GetTimeoutError; NoMoreResultsError; RaySystemError after `getNextUnordered` until all is taken, or
   * when no actor is left.
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

  /** The next result that is ready, whichever it is. Rejects as `getNext` does. */
  async getNextUnordered<Value = unknown>(options: PoolGetOptions = {}): Promise<Value> {
    checkGet("ActorPool.getNextUnordered", options);
    return (await this.#takeAny("ActorPool.getNextUnordered", this.#submitted, options)) as Value;
  }

  /** Whether something was submitted whose result nobody took or is about to take. */
  hasNext(): boolean {
    return this.#submitted.size > 0;
  }

  /** Whether an actor may have one more call, so that a submission would start at once. */
  hasFree(): boolean {
    return this.#idle.length > 0;
  }

  /** Takes an actor out of the pool that has no call of it, if there is one. */
  popIdle(): Actor | undefined {
    const free = this.#idle.findLast(
      (actor) => this.#idle.filter((one) => one === actor).length === this.#maxInFlight,
    );
    if (free !== undefined) this.#idle = this.#idle.filter((one) => one !== free);
    return free;
  }

  /** Adds an actor. @throws InvalidOptionError for what is no actor handle, or is in the pool already */
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

  /** Kills the actors that are in it, for `await using`. */
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
      // Who leaves early wants no more results, and what is not started never will be.
      for (const [, one] of line.entries()) this.#giveUp(one);
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
      result: undefined,
      freed: undefined,
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

  /** An actor has nothing to do: it gets what is queued, or is idle. */
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
      const isOver = await this.#oneOver(() => [one], where, deadlineOf(options));
      if (isOver !== undefined) return await one.result;
    } catch (error) {
      // Its own failure is its result; any other leaves it to be taken later.
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
    const waiting = (): Submission<Actor>[] => Array.from(line.entries(), ([, one]) => one);
    for (;;) {
      const one = await this.#oneOver(waiting, where, deadline);
      if (one === undefined) {
        const late = waiting();
        const oldest = late.find(({ actor }) => actor !== undefined);
        if (options.ignoreIfTimedOut === true && oldest !== undefined) this.#giveUp(oldest);
        throw timedOut(options, late);
      }
      if (line.take(one.place) === undefined) continue;
      if (line === this.#submitted) this.#unordered = line.size > 0;
      return await one.result;
    }
  }

  /** Waits until one of them is over; meanwhile other actors that are done take what is queued. Undefined when the time is over first. */
  async #oneOver(
    wanted: () => readonly Submission<Actor>[],
    where: string,
    deadline: number | undefined,
  ): Promise<Submission<Actor> | undefined> {
    for (;;) {
      const candidates = wanted();
      if (candidates.length === 0) throw new NoMoreResultsError(where);
      const over = candidates.find(({ result }) => result !== undefined);
      if (over !== undefined) return over;
      // By id, because two calls may give the same ref.
      const watched = new Map<string, { ref: ObjectRef; one: Submission<Actor> }>();
      for (const one of [...candidates, ...(this.#queue.size > 0 ? this.#busy : [])]) {
        const ref = firstRef(one);
        if (ref !== undefined && !watched.has(ref.id)) watched.set(ref.id, { ref, one });
      }
      if (watched.size === 0) {
        throw new RaySystemError(
          `${where}: the pool has no actor left for what is queued; push one`,
        );
      }
      const refs = Array.from(watched.values(), ({ ref }) => ref);
      const timeout =
        deadline === undefined ? {} : { timeoutMs: Math.max(0, deadline - performance.now()) };
      const { ready } = await wait(refs, timeout);
      const done = ready[0] === undefined ? undefined : watched.get(ready[0].id)?.one;
      if (done === undefined) return undefined;
      await (done.freed ??= this.#finish(done));
    }
  }

  /** Its call is over: keeps the result, and frees the actor unless it is dead. */
  async #finish(one: Submission<Actor>): Promise<void> {
    one.result = get(one.call as ObjectRef);
    const failure = await one.result.then(ignore, (error: unknown) => error);
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

  /** Nobody wants its result: its actor may take other work, which runs behind the late call. */
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

/** What a handle prints as: its class and id, the same for every handle of that actor. */
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

function firstRef({ call }: { readonly call: PoolCall | undefined }): ObjectRef | undefined {
  return call instanceof ObjectRef ? call : call?.[0];
}

function deadlineOf({ timeoutMs }: PoolGetOptions): number | undefined {
  return timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
}

function timedOut(
  options: PoolGetOptions,
  late: readonly { readonly call: PoolCall | undefined }[],
): GetTimeoutError {
  const waitingFor = late.map((one) => inspect(firstRef(one) ?? "a call that is queued"));
  return new GetTimeoutError(options.timeoutMs ?? 0, waitingFor);
}
