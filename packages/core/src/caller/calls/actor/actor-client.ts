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
import type { FailureData } from "../../../protocol/failure.ts";
import { type ActorInfo, type ActorLocation, totalConcurrency } from "../../../rpc/directory.ts";
import type { Session } from "../../../rpc/session/session.ts";
import {
  actorDeath,
  ActorUnavailableError,
  type DeathCause,
  InvalidOptionError,
} from "../../../shared/errors.ts";
import type { Fifo } from "../../../shared/fifo.ts";
import type { Call, CallOwner, CallPlan, HowLost, Stage } from "../call.ts";
import type { ClientLink } from "../client-link.ts";
import { ActorLife } from "./actor-life.ts";
import { CallQueues, type OutOfReach } from "./call-queues.ts";
import { LossQuestions } from "./loss-questions.ts";
import { ReturningCalls } from "./returning-calls.ts";
import { UnansweredCalls } from "./unanswered-calls.ts";

type State =
  | { readonly kind: "locating" }
  /** It lives, and could not be reached from here; the next call tries again. */
  | { readonly kind: "unreached" }
  | { readonly kind: "ready"; readonly life: ActorLife }
  | { readonly kind: "dead"; readonly failure: FailureData };

/** Calls that were lost together. */
interface Loss {
  readonly session: Session | undefined;
  readonly incarnation: number;
  readonly reason: DeathCause | undefined;
  readonly calls: Call[];
}

const noLosses: readonly Loss[] = [];

export class ActorClient implements CallOwner {
  readonly info: ActorInfo;
  readonly link: ClientLink;
  readonly unanswered: UnansweredCalls = new UnansweredCalls();
  readonly queues: CallQueues = new CallQueues();
  readonly #returning: ReturningCalls = new ReturningCalls();
  readonly #questions: LossQuestions;
  #state: State = { kind: "locating" };
  /** Losses of this turn. */
  #losses: readonly Loss[] = noLosses;
  /** Nobody has a handle: the actor is not located again until it is called all the same. */
  #isRetired = false;

  /** @param registered settles when the directory knows the actor */
  constructor(info: ActorInfo, link: ClientLink, registered?: Promise<void>) {
    this.info = info;
    this.link = link;
    this.#questions = new LossQuestions(link.directory, info.actorId);
    if (registered === undefined) void this.#locate();
    else {
      registered.then(
        () => this.#locate(),
        (error: unknown) => this.#die(link.values.describe(error)),
      );
    }
  }

  /** Calls wait in the queue of their concurrency group. */
  queueFor({ route }: CallPlan): Fifo<Call> {
    return this.queues.of(route.shape?.group);
  }

  submit(call: Call): void {
    this.unanswered.count += 1;
    this.#isRetired = false;
    if (this.#state.kind === "dead") return call.fail(this.#state.failure);
    const { dependencies } = call.args;
    for (let index = 0; index < dependencies.length; index++) {
      const dependency = dependencies[index];
      if (dependency === undefined || dependency.outcome !== undefined) continue;
      call.unresolved += 1;
      dependency.watch(() => {
        call.unresolved -= 1;
        if (call.unresolved > 0) return;
        if (this.queues.unpark(call)) this.#enqueue(call);
        else this.#drain(call.queue);
      });
    }
    if (call.unresolved > 0 && !this.info.isOrdered) this.queues.park(call);
    else this.queues.place(call);
    this.#goOn(call.queue);
  }

  settled(call: Call): void {
    this.unanswered.settled(call);
    this.#back(call);
  }

  again(call: Call): void {
    this.#back(call);
    call.isAgain = true;
    this.#enqueue(call);
  }

  /** Calls that are lost in one turn are dealt with together, in their order. */
  lost(call: Call, how: HowLost): void {
    if (how === "absent") call.isUnstarted = true;
    else call.mayHaveRun = true;
    const { incarnation, session } = call;
    const life = this.#lifeOf(session, incarnation);
    if (life !== undefined) {
      this.#returning.add(1);
      life.back();
    }
    call.leavePlace();
    const known = this.#losses.find(
      (loss) => loss.incarnation === incarnation && loss.session === session,
    );
    if (known !== undefined) return void known.calls.push(call);
    const reason = typeof how === "string" ? undefined : how;
    const loss: Loss = { session, incarnation, reason, calls: [call] };
    this.#losses = [...this.#losses, loss];
    void Promise.resolve().then(() => {
      this.#losses = this.#losses.filter((one) => one !== loss);
      return this.#afterLoss(loss);
    });
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
    return this.#state.life.isFull ? "credit" : "turn";
  }

  /** Nobody here will call any more, unless a lost result is to be made again. */
  retire(): void {
    this.#isRetired = true;
    if (this.#state.kind !== "ready") return;
    this.#state.life.leave();
    this.#state = { kind: "unreached" };
  }

  /** Unanswered calls that are not under way. */
  *calls(): Iterable<Call> {
    yield* this.queues.calls();
    yield* this.#returning.calls();
  }

  #enqueue(call: Call): void {
    if (call.isSettled) return;
    if (this.#state.kind === "dead") return call.fail(this.#state.failure);
    this.queues.place(call);
    this.#goOn(call.queue);
  }

  #goOn(queue: Fifo<Call>): void {
    if (this.#state.kind === "unreached") void this.#locate();
    else this.#drain(queue);
  }

  /** A call is not on the other side any more. */
  #back(call: Call): void {
    const { session, incarnation } = call;
    if (session === undefined) return;
    call.leavePlace();
    const life = this.#lifeOf(session, incarnation);
    if (life !== undefined) life.back();
    else if (this.#returning.back(1)) this.#drainAll();
  }

  /** The life that is called now, if it is that one. */
  #lifeOf(session: Session | undefined, incarnation: number): ActorLife | undefined {
    const state = this.#state;
    return state.kind === "ready" && state.life.is(session, incarnation) ? state.life : undefined;
  }

  #drainAll(): void {
    for (const queue of this.queues.all()) this.#drain(queue);
  }

  #drain(queue: Fifo<Call>): void {
    const state = this.#state;
    if (state.kind !== "ready" || state.life.isFull || !this.#returning.isEmpty) return;
    const { life } = state;
    for (;;) {
      const head = queue.peek();
      if (head === undefined) return;
      if (head.isSettled) {
        queue.shift();
        continue;
      }
      if (head.unresolved > 0 || !life.session.isOpen) return;
      if (!life.hasRoom) return life.waitForRoom(() => this.#drainAll());
      if (head.args.dependencies.length > 0) {
        // An argument that is away holds the call back like one that is not ready.
        const isBringing = this.link.objects.bringing(head.args.dependencies, () => {
          head.unresolved -= 1;
          this.#drain(head.queue);
        });
        if (isBringing) {
          head.unresolved += 1;
          return;
        }
      }
      queue.shift();
      life.send(head);
    }
  }

  #locate(): Promise<void> {
    this.#state = { kind: "locating" };
    return this.queues.during(async () => {
      let location: ActorLocation;
      try {
        location = await this.link.directory.locate(this.info);
      } catch (error) {
        return this.#die(this.link.values.describe(error));
      }
      if (location.state === "dead") {
        return this.#die(this.link.values.describe(actorDeath(this.info, location.cause)));
      }
      const { target, hostId, incarnation } = location;
      let unreached: Error | undefined;
      const session = await this.link.session(hostId).catch((error: Error) => {
        unreached = error;
        return undefined;
      });
      if (unreached !== undefined && !(await this.#questions.endsSoon(incarnation))) {
        // Each call that waits has used up a try.
        if (this.queues.useTry(outOfReach(this.info, this.link, unreached))) return this.#locate();
        this.#state = { kind: "unreached" };
        return;
      }
      if (session === undefined || !session.isOpen) {
        return this.#afterLoss({ session, incarnation, reason: undefined, calls: [] }, true);
      }
      if (this.#isRetired) {
        this.#state = { kind: "unreached" };
        return;
      }
      // By another name (getIfExists) the actor may have other options than those known here: only
      // the least concurrency is sure to need no credit.
      const concurrency = target === this.info.actorId ? totalConcurrency(this.info) : 1;
      const place = { session, target, incarnation, concurrency };
      const life = new ActorLife(place, (reason) => {
        void this.#afterLoss({ session, incarnation, reason, calls: [] });
      });
      this.#state = { kind: "ready", life };
      this.#drainAll();
    });
  }

  /** @param locating it was never reached in that life, and is located again */
  async #afterLoss(
    { session, incarnation, reason, calls }: Loss,
    locating: boolean = this.#leave(session, incarnation),
  ): Promise<void> {
    if (!locating && calls.length === 0) return;
    const { restarting, cause } = await this.#questions.lossOf(incarnation, reason);
    const failure = this.link.values.describe(
      restarting ? new ActorUnavailableError(this.info, cause) : actorDeath(this.info, cause),
    );
    for (const call of calls) {
      if (restarting && !call.isCancelled && (call.isUnstarted || call.retriesLeft !== 0)) {
        if (!call.isUnstarted) call.retriesLeft -= 1;
        call.isUnstarted = false;
        this.#returning.goesAgain(call);
      } else {
        call.fail(failure);
      }
    }
    if (!restarting) return this.#die(failure);
    if (this.#state.kind === "dead") return this.#die(this.#state.failure);
    if (this.#returning.back(calls.length)) this.#drainAll();
    if (locating) void this.#locate();
  }

  /** Nothing more is sent to that life. Returns whether it was the one in use. */
  #leave(session: Session | undefined, incarnation: number): boolean {
    const life = this.#lifeOf(session, incarnation);
    if (life === undefined) return false;
    this.#state = { kind: "locating" };
    this.#returning.add(life.leave());
    return true;
  }

  #die(failure: FailureData): void {
    if (this.#state.kind === "ready") this.#state.life.leave();
    this.#state = { kind: "dead", failure };
    this.queues.fail(failure);
    this.#returning.fail(failure);
  }
}

/** Returns the failures of calls that wait for a connection. */
function outOfReach(info: ActorInfo, { values }: ClientLink, error: Error): OutOfReach {
  const message = `no connection to its host: ${error.message}`;
  const cause: DeathCause = { kind: "unreachable", message, error };
  const of = (mayHaveRun: boolean): FailureData =>
    values.describe(new ActorUnavailableError(info, cause, mayHaveRun));
  return { unsent: of(false), sentBefore: of(true) };
}
