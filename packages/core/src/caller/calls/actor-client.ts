/**
 * One caller's view of one actor: its calls in submission order, from `.remote()` to the answer.
 *
 * There is a queue for each concurrency group. In the queue of an ordered actor a call whose
 * argument is not ready holds back the later ones (Ray's head-of-line rule); for an async or
 * threaded actor it waits beside the queue. A call without credit waits here, encoded.
 *
 * When the actor is lost, calls that were sent are retried if they may be and else rejected; calls
 * that were not sent wait for the restart. Retries of lost calls keep their order. A retry after an
 * exception, and a call that makes a lost result again, goes to the end, but before a call that
 * waits for an argument, because that argument may come of it.
 */
import type { FailureData } from "../../protocol/failure.ts";
import type { Route } from "../../protocol/message.ts";
import {
  type ActorIdentity,
  actorDeath,
  ActorUnavailableError,
  type DeathCause,
  InvalidOptionError,
} from "../../shared/errors.ts";
import { Fifo } from "../../shared/fifo.ts";
import {
  type ActorInfo,
  type ActorLocation,
  type ActorLoss,
  totalConcurrency,
} from "../../rpc/directory.ts";
import type { Lane } from "../../rpc/lane.ts";
import type { Session } from "../../rpc/session.ts";
import type { Demand } from "../../rpc/demand.ts";
import type { Call, CallOwner, CallPlan, Stage } from "./call.ts";
import { type ClientLink, outOfReachMs } from "./client-link.ts";

type State =
  | { readonly kind: "locating" }
  /** It lives, and could not be reached from here; the next call tries again. */
  | { readonly kind: "unreached" }
  | {
      readonly kind: "ready";
      readonly session: Session;
      /** The lane of all calls to the actor from here, by every handle. */
      readonly lane: Lane;
      readonly target: string;
      readonly incarnation: number;
    }
  | { readonly kind: "dead"; readonly failure: FailureData };

/** Calls that were lost together. */
interface Loss {
  readonly session: Session | undefined;
  readonly incarnation: number;
  readonly reason: DeathCause | undefined;
  readonly calls: Call[];
}

export class ActorClient implements CallOwner {
  readonly info: ActorInfo;
  readonly link: ClientLink;
  /** The actor keeps it by itself. */
  readonly keepsPlace: boolean = false;
  #concurrency: number;
  #state: State = { kind: "locating" };
  /** The queue of the default group; other groups have theirs in `#groups`. */
  #queue: Fifo<Call> = new Fifo();
  readonly #groups: Map<string, Fifo<Call>> = new Map();
  /** Calls to an unordered actor whose arguments are not ready. */
  readonly #parked: Set<Call> = new Set();
  /** Told of their loss in this turn. */
  #losses: Loss[] = [];
  #outstanding = 0;
  /** How many calls are with the life that is called now. */
  #sent = 0;
  /**
   * How many calls are with an earlier life, or on their way back from it. They go first: nothing
   * is sent until it is known which of them go again.
   */
  #behind = 0;
  /** Which of them go again, so far. */
  #again: Call[] = [];
  #waitingForCredit = false;
  /** For when calls of other handles are back, too. */
  #endWatchingLane: (() => void) | undefined;
  /** The session that was asked to say when there is credit, once for as long as it has not. */
  #askedForCredit: Session | undefined;
  #unwatch: (() => void) | undefined;
  /** The last question where a life ended; it may have no answer for long. */
  #asked: { readonly incarnation: number; readonly loss: Promise<ActorLoss> } | undefined;
  /** Nobody has a handle: the actor is not located again until it is called all the same. */
  #isRetired = false;
  readonly #routes: WeakMap<Route, Route> = new WeakMap();

  /** @param registered settles when the directory knows the actor */
  constructor(info: ActorInfo, link: ClientLink, registered?: Promise<void>) {
    this.info = info;
    this.link = link;
    this.#concurrency = totalConcurrency(info);
    if (registered === undefined) this.#locate();
    else
      registered.then(
        () => this.#locate(),
        (error: unknown) => this.#die(link.values.describe(error)),
      );
  }

  get #identity(): ActorIdentity {
    return { actorId: this.info.actorId, className: this.info.className };
  }

  /** Calls without an answer, sent or not. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /** Calls wait in the queue of their concurrency group. */
  queueFor({ route }: CallPlan): Fifo<Call> {
    const group = route.shape?.group;
    if (group === undefined) return this.#queue;
    let queue = this.#groups.get(group);
    if (queue === undefined) {
      queue = new Fifo();
      this.#groups.set(group, queue);
    }
    return queue;
  }

  submit(call: Call): void {
    this.#outstanding += 1;
    this.#isRetired = false;
    const state = this.#state;
    if (state.kind === "dead") return call.fail(state.failure);
    const { dependencies } = call;
    for (let index = 0; index < dependencies.length; index++) {
      const dependency = dependencies[index];
      if (dependency === undefined || dependency.outcome !== undefined) continue;
      call.unresolved += 1;
      dependency.watch(() => {
        call.unresolved -= 1;
        if (call.unresolved > 0) return;
        if (this.#parked.delete(call)) this.#enqueue(call);
        else this.#drain(call.queue);
      });
    }
    if (call.unresolved > 0 && !this.info.isOrdered) this.#parked.add(call);
    else if (call.isAgain) place(call);
    else call.queue.push(call);
    if (state.kind === "ready") this.#drain(call.queue);
    else if (state.kind === "unreached") this.#locateAgain();
  }

  #enqueue(call: Call): void {
    if (call.isSettled) return;
    if (this.#state.kind === "dead") return call.fail(this.#state.failure);
    if (call.isAgain) place(call);
    else call.queue.push(call);
    if (this.#state.kind === "unreached") this.#locateAgain();
    else this.#drain(call.queue);
  }

  settled(call: Call): void {
    this.#outstanding -= 1;
    this.#back(call);
  }

  again(call: Call): void {
    this.#back(call);
    call.isAgain = true;
    this.#enqueue(call);
  }

  /** It is not on the other side any more. */
  #back(call: Call): void {
    if (call.session === undefined) return;
    const lane = this.#laneOf(call.session, call.incarnation);
    call.session = undefined;
    if (lane === undefined) return this.#cameBack(1);
    this.#sent -= 1;
    lane.back(1);
  }

  /** So many calls of an earlier life have their answer, or go again. */
  #cameBack(count: number): void {
    this.#behind -= count;
    if (this.#behind > 0) return;
    // Each before what was not sent, in the order in which they were made: the last one first.
    const again = this.#again.toSorted((left, right) => right.entry.sequence - left.entry.sequence);
    this.#again = [];
    for (const call of again) call.queue.unshift(call);
    this.#drainAll();
  }

  /** The lane, if this is the life that is called now. */
  #laneOf(session: Session | undefined, incarnation: number): Lane | undefined {
    const state = this.#state;
    const isCurrent =
      state.kind === "ready" && state.session === session && state.incarnation === incarnation;
    return isCurrent ? state.lane : undefined;
  }

  lost(call: Call, reason: DeathCause): void {
    this.#noteLoss(call, reason);
  }

  gone(call: Call): void {
    this.#noteLoss(call, undefined);
  }

  absent(call: Call): void {
    call.isUnstarted = true;
    this.#noteLoss(call, undefined);
  }

  /** Later calls need not wait for its argument. */
  withdrawn(call: Call): void {
    this.#drain(call.queue);
  }

  force(call: Call): never {
    throw new InvalidOptionError(
      "force",
      `cancel: force is for tasks; ${call.entry.label} is a call to an actor, use kill to end the actor`,
    );
  }

  stageOf(): Stage {
    if (this.#state.kind !== "ready") return "actor";
    return this.#waitingForCredit ? "credit" : "turn";
  }

  demandOf(): Demand | undefined {
    return undefined;
  }

  /** Nobody here will call any more, unless a lost result is to be made again. */
  retire(): void {
    this.#isRetired = true;
    this.#unwatch?.();
    this.#needsNoCredit();
    if (this.#state.kind !== "ready") return;
    this.#leaveLane();
    this.#state = { kind: "unreached" };
  }

  #leaveLane(): void {
    const state = this.#state;
    if (state.kind === "ready") state.session.lanes.leave(state.lane);
  }

  /** Unanswered calls, for those who look for some of them. */
  *calls(): Iterable<Call> {
    for (const queue of [this.#queue, ...this.#groups.values()]) yield* queue;
    yield* this.#again;
    yield* this.#parked;
  }

  #drainAll(): void {
    this.#drain(this.#queue);
    for (const queue of this.#groups.values()) this.#drain(queue);
  }

  #drain(queue: Fifo<Call>): void {
    const state = this.#state;
    if (state.kind !== "ready" || this.#waitingForCredit || this.#behind > 0) return;
    const { session, lane } = state;
    for (;;) {
      const head = queue.peek();
      if (head === undefined) return;
      if (head.isSettled) {
        queue.shift();
        continue;
      }
      if (head.unresolved > 0 || !session.isOpen) return;
      if (!lane.isFree(this.#concurrency) && !session.requests.hasCredit(this.#concurrency)) {
        return this.#waitForCredit(session, lane);
      }
      if (head.dependencies.length > 0 && this.#bringing(head)) return;
      queue.shift();
      head.send(session, this.#route(head.plan.route, state.target), state.incarnation);
      if (head.session === undefined) continue;
      this.#sent += 1;
      lane.sent();
    }
  }

  #waitForCredit(session: Session, lane: Lane): void {
    this.#waitingForCredit = true;
    // The session may be full of calls to other actors of the same host, which may never end.
    this.#endWatchingLane ??= lane.watch(() => {
      if (lane.isFree(this.#concurrency)) this.#goOn();
    });
    if (this.#askedForCredit === session) return;
    this.#askedForCredit = session;
    session.requests.whenCredit(this.#concurrency, () => {
      if (this.#askedForCredit !== session) return;
      this.#askedForCredit = undefined;
      this.#goOn();
    });
  }

  #goOn(): void {
    this.#needsNoCredit();
    this.#drainAll();
  }

  #needsNoCredit(): void {
    this.#waitingForCredit = false;
    this.#endWatchingLane?.();
    this.#endWatchingLane = undefined;
  }

  /** An argument that is away holds the call back like one that is not ready. */
  #bringing(call: Call): boolean {
    const isBringing = this.link.objects.bringing(call.dependencies, () => {
      call.unresolved -= 1;
      this.#drain(call.queue);
    });
    if (isBringing) call.unresolved += 1;
    return isBringing;
  }

  /**
   * The route to this life of the actor: it is not the first life, or getIfExists gave the handle
   * another id.
   */
  #route(route: Route, target: string): Route {
    if (route.target === target) return route;
    let own = this.#routes.get(route);
    if (own?.target !== target) {
      own = { ...route, target };
      this.#routes.set(route, own);
    }
    return own;
  }

  #locate(): void {
    this.link.directory.locate(this.info).then(
      (location) => this.#located(location),
      (error: unknown) => this.#die(this.link.values.describe(error)),
    );
  }

  async #located(location: ActorLocation): Promise<void> {
    if (location.state === "dead") {
      return this.#die(this.link.values.describe(actorDeath(this.#identity, location.cause)));
    }
    const { target, hostId, incarnation } = location;
    let unreached: Error | undefined;
    const session = await this.link.session(hostId).catch((error: Error) => {
      unreached = error;
      return undefined;
    });
    if (unreached !== undefined && !(await this.#isOver(incarnation))) {
      return this.#outOfReach(unreached);
    }
    if (session === undefined || !session.isOpen) {
      return this.#afterLoss({ session, incarnation, reason: undefined, calls: [] }, true);
    }
    if (this.#isRetired) {
      this.#state = { kind: "unreached" };
      return;
    }
    const lane = session.lanes.enter(target);
    // By another name (getIfExists) the actor may have other options than those known here: only
    // the least concurrency is sure to need no credit.
    // the least concurrency is sure to need no credit.
    this.#concurrency = target === this.info.actorId ? totalConcurrency(this.info) : 1;
    this.#state = { kind: "ready", session, lane, target, incarnation };
    this.#unwatch?.();
    this.#unwatch = session.whenClosed((reason) => {
      void this.#afterLoss({ session, incarnation, reason, calls: [] });
    });
    this.#drainAll();
  }

  #locateAgain(): void {
    this.#state = { kind: "locating" };
    this.#locate();
  }

  /** Whether that life ends within the time that it takes to hear of it. */
  async #isOver(incarnation: number): Promise<boolean> {
    return (await this.#soon(this.#lossTold(incarnation))) !== undefined;
  }

  /** Undefined when that takes too long. */
  async #soon(loss: Promise<ActorLoss>): Promise<ActorLoss | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => resolve(undefined), outOfReachMs).unref();
    try {
      return await Promise.race([loss, late]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Calls that are lost in one turn are dealt with together, in their order. */
  #outOfReach({ message }: Error): void {
    const cause: DeathCause = {
      kind: "unreachable",
      message: `its host cannot be reached from here: ${message}`,
    };
    const failure = this.link.values.describe(new ActorUnavailableError(this.#identity, cause));
    let isWanted = false;
    for (const queue of [this.#queue, ...this.#groups.values()]) {
      for (const call of queue) {
        if (call.isSettled) continue;
        if (call.retriesLeft === 0) call.fail(failure);
        else {
          call.retriesLeft -= 1;
          isWanted = true;
        }
      }
    }
    if (isWanted) this.#locateAgain();
    else this.#state = { kind: "unreached" };
  }

  /** Calls that are lost in one turn are dealt with together, in their order. */
  #noteLoss(call: Call, reason: DeathCause | undefined): void {
    const { incarnation, session } = call;
    const lane = this.#laneOf(session, incarnation);
    if (lane !== undefined) {
      this.#sent -= 1;
      this.#behind += 1;
      lane.back(1);
    }
    call.session = undefined;
    const known = this.#losses.find(
      (loss) => loss.incarnation === incarnation && loss.session === session,
    );
    if (known !== undefined) return void known.calls.push(call);
    const loss: Loss = { session, incarnation, reason, calls: [call] };
    this.#losses.push(loss);
    void Promise.resolve().then(() => {
      this.#losses = this.#losses.filter((one) => one !== loss);
      return this.#afterLoss(loss);
    });
  }

  /** @param locating it was never reached in that life, and is looked for again */
  async #afterLoss(
    { session, incarnation, reason, calls }: Loss,
    locating: boolean = this.#leave(session, incarnation),
  ): Promise<void> {
    if (!locating && calls.length === 0) return;
    const { restarting, cause } = await this.#lossOf(incarnation, reason);
    const failure = this.link.values.describe(
      restarting
        ? new ActorUnavailableError(this.#identity, cause)
        : actorDeath(this.#identity, cause),
    );
    for (const call of calls) {
      if (restarting && !call.isCancelled && (call.isUnstarted || call.retriesLeft !== 0)) {
        if (!call.isUnstarted) call.retriesLeft -= 1;
        call.isUnstarted = false;
        this.#again.push(call);
      } else {
        call.fail(failure);
      }
    }
    if (!restarting) return this.#die(failure);
    if (this.#state.kind === "dead") return this.#die(this.#state.failure);
    this.#cameBack(calls.length);
    if (locating) this.#locate();
  }

  /** Nothing is sent to that life any more. Returns whether it was the one in use. */
  #leave(session: Session | undefined, incarnation: number): boolean {
    const lane = this.#laneOf(session, incarnation);
    if (lane === undefined) return false;
    this.#needsNoCredit();
    const sent = this.#sent;
    this.#behind += sent;
    this.#sent = 0;
    lane.back(sent);
    this.#leaveLane();
    this.#state = { kind: "locating" };
    return true;
  }

  async #lossOf(incarnation: number, reason: DeathCause | undefined): Promise<ActorLoss> {
    // Nothing goes on after the session, and nobody is left to ask.
    if (reason?.kind === "shutdown") return { restarting: false, cause: reason };
    // Only the way to it broke; the actor may well live, and a new way is looked for.
    if (reason?.kind === "channel-broken") return { restarting: true, cause: reason };
    const loss = this.#lossTold(incarnation);
    if (reason?.kind !== "unreachable") return loss;
    // So it may be here, too: the one that knows of its end may reach it all the time.
    return (await this.#soon(loss)) ?? { restarting: true, cause: reason };
  }

  /**
   * Places a call that goes again at the end, but before the first call that waits for an argument,
   * which may be waiting for this one.
   */
  #lossTold(incarnation: number): Promise<ActorLoss> {
    if (this.#asked?.incarnation !== incarnation) {
      const loss = this.link.directory
        .loss(this.info.actorId, incarnation)
        .catch((error: unknown): ActorLoss => {
          const cause: DeathCause = { kind: "unreachable", message: String(error) };
          return { restarting: false, cause };
        });
      this.#asked = { incarnation, loss };
    }
    return this.#asked.loss;
  }

  #die(failure: FailureData): void {
    this.#leaveLane();
    this.#state = { kind: "dead", failure };
    this.#unwatch?.();
    for (const queue of [this.#queue, ...this.#groups.values()]) {
      for (const call of queue.drain()) if (!call.isSettled) call.fail(failure);
    }
    for (const call of [...this.#again, ...this.#parked]) if (!call.isSettled) call.fail(failure);
    this.#again = [];
    this.#parked.clear();
  }
}

/**
 * Places a call that goes again at the end, but before the first call that waits for an argument,
 * which may be waiting for this one.
 */
function place(call: Call): void {
  call.queue.insert(call, ({ unresolved, isSettled }) => unresolved > 0 && !isSettled);
}
