/**
 * One call or task from `.remote()` to its answer, as its caller sees it.
 *
 * It settles exactly once, whatever comes: a value, several values, a stream's end, a failure, a
 * cancellation, the loss of its host. Its owner (ActorClient or TaskClient) knows where it is sent
 * and what a loss means.
 */
import type { Encoded } from "../../protocol/codec.ts";
import { type FailureData, isOfClass } from "../../protocol/failure.ts";
import type { Answer, Pending, Route } from "../../protocol/message.ts";
import type { ActorInfo, WorkerRequest } from "../../rpc/directory.ts";
import type { CallArguments } from "./call-arguments.ts";
import type { ClientLink } from "./client-link.ts";
import { assertNever, type DeathCause, TaskCancelledError } from "../../shared/errors.ts";
import type { Fifo } from "../../shared/fifo.ts";
import type { MeanDuration } from "../../shared/mean-duration.ts";
import { messageOf, type ObjectEntry } from "../../store/object-entry.ts";
import type { Session } from "../../rpc/session/session.ts";
import { noteSettle } from "./note-events.ts";
import { currentTask, type TaskScope } from "../waits/task-scope.ts";

/** The facts that all calls of one stub share. */
export interface CallPlan {
  readonly route: Route;
  /**
   * Retries after the loss of the host, or after an exception if the plan retries those; -1 without
   * limit.
   */
  readonly maxRetries: number;
  readonly retryExceptions: boolean | readonly string[];
  /** A stream runs on when nobody takes its items any more. */
  readonly isDetached?: boolean;
  /** The worker that a task asks for. */
  readonly worker?: WorkerRequest;
  /** How long such a task takes, as measured. */
  readonly duration?: MeanDuration;
}

/** Where answers go that are not one value. */
export interface Returns {
  resolveAll?(values: readonly Encoded[]): void;
  item?(index: number, value: Encoded): void;
  /**
   * The call is answered with its one value: for a stream, the number of its items. Returns what is
   * wrong with that value, if anything is.
   */
  end?(value: Encoded): Error | undefined;
  fail(failure: FailureData): void;
  /** It was sent, perhaps again. */
  sent?(session: Session, id: number): void;
}

/**
 * The reason why a call has no answer yet: it waits for its arguments, its actor, a worker, credit,
 * its turn in the queue, or the answer itself.
 */
export type Stage = "arguments" | "actor" | "worker" | "credit" | "turn" | "sent";

/**
 * How a call was lost that was sent: by its session, for a reason; "gone": its actor ended before
 * it did; "absent": its actor is not where it arrived, so it never started.
 */
export type HowLost = DeathCause | "gone" | "absent";

/** The client of what is called: it knows where calls go, and what the loss of one means. */
export interface CallOwner {
  readonly link: ClientLink;
  /** The actor that is called, if one is. */
  readonly info: ActorInfo | undefined;
  /** Where a call waits until it is sent; asked once for each call. */
  queueFor(plan: CallPlan): Fifo<Call>;
  /** Sends a new call, or one that is made again, when its arguments are ready. */
  submit(call: Call): void;
  /** Why a call was not sent, though its arguments are ready. */
  stageOf(call: Call): Stage;
  /** It has its answer. Called once. */
  settled(call: Call): void;
  /** It failed and is to be tried again. */
  again(call: Call): void;
  lost(call: Call, how: HowLost): void;
  /** Makes it a call that was not sent, if it has not begun and will not. */
  takeBack?(call: Call): void;
  /** It was cancelled before it was sent. */
  withdrawn(call: Call): void;
  /** Ends its worker. @throws InvalidOptionError where that is not allowed */
  force(call: Call): void;
}

export class Call implements Pending {
  readonly owner: CallOwner;
  readonly queue: Fifo<Call>;
  readonly plan: CallPlan;
  readonly args: CallArguments;
  /** Its value; the first one of several; of a stream, its completion. */
  readonly entry: ObjectEntry;
  returns: Returns | undefined = undefined;
  /** The task that made it, if one did. */
  parent: TaskScope | undefined = currentTask();
  /** Kept alive as long as the call is unanswered. */
  hold: unknown = undefined;
  retriesLeft: number;
  /** Arguments that are not ready. */
  unresolved = 0;
  /** Where it was sent, while it is unanswered there. */
  session: Session | undefined = undefined;
  id = -1;
  /** Which life of the actor it was sent to. */
  incarnation = 0;
  /** It was sent in vain: it may be sent again without being a retry. */
  isUnstarted = false;
  /** It was made before, and failed or lost its result. */
  isAgain = false;
  isCancelled = false;
  isSettled = false;
  /** It is settled, and the other side has not come to its end. */
  #keepsPlace = false;

  constructor(owner: CallOwner, plan: CallPlan, args: CallArguments, entry: ObjectEntry) {
    this.owner = owner;
    this.queue = owner.queueFor(plan);
    this.plan = plan;
    this.args = args;
    this.entry = entry;
    this.retriesLeft = plan.maxRetries;
    entry.producer = this;
  }

  get stage(): Stage {
    if (this.session !== undefined) return "sent";
    return this.unresolved > 0 ? "arguments" : this.owner.stageOf(this);
  }

  /** Sends it; its arguments are ready. Or fails it, if one of them failed. */
  send(session: Session, route: Route, incarnation: number): void {
    const { values, dependencies: entries, signals } = this.args;
    const isPlain = entries.length === 0 && signals === undefined;
    const dependencies: Encoded[] = isPlain ? none : [];
    for (const dependency of entries) {
      const { outcome } = dependency;
      if (outcome?.ok === false) return this.fail(outcome.failure);
      const value = outcome === undefined ? undefined : messageOf(dependency, outcome);
      if (value !== undefined) dependencies.push(value);
    }
    if (signals !== undefined) {
      dependencies.push(...signals.states());
      signals.listen((index, reason) => this.session?.abort(this.id, index, reason));
    }
    this.session = session;
    this.incarnation = incarnation;
    const { sequence } = this.entry;
    this.id = session.requests.add(this);
    session.call({
      kind: "call",
      id: this.id,
      sequence,
      route,
      arguments: values,
      dependencies,
    });
    this.returns?.sent?.(session, this.id);
  }

  get isCall(): true {
    return true;
  }

  settle(answer: Answer): void {
    if (this.isCancelled) {
      decline(answer, this.owner.link);
      return this.#cancelled();
    }
    switch (answer.kind) {
      case "result": {
        const problem = this.returns?.end?.(answer.value);
        if (problem !== undefined) return this.fail(this.owner.link.values.describe(problem));
        this.owner.link.objects.settle(this.entry, answer.value, this);
        return this.#settled();
      }
      case "results":
        this.returns?.resolveAll?.(answer.values);
        return this.#settled();
      case "failure":
        return this.#reject(answer.error);
      case "gone":
      case "absent":
        return this.owner.lost(this, answer.kind);
      case "cancelled":
        return this.#cancelled();
      default:
        assertNever(answer);
    }
  }

  lose(reason: DeathCause): void {
    if (this.isCancelled) return this.#cancelled();
    this.owner.lost(this, reason);
  }

  item(index: number, value: Encoded): void {
    if (this.isSettled) return this.owner.link.values.decline(value);
    this.returns?.item?.(index, value);
  }

  #reject(error: Encoded): void {
    const failure = this.owner.link.values.readFailure(error);
    if (this.retriesLeft !== 0 && isRetried(failure, this.plan.retryExceptions)) {
      this.retriesLeft -= 1;
      this.owner.again(this);
    } else {
      this.fail(failure);
    }
  }

  #cancelled(): void {
    if (!this.#keepsPlace) return this.fail(cancellationOf(this));
    this.#keepsPlace = false;
    this.entry.producer = undefined;
    this.owner.settled(this);
  }

  fail(failure: FailureData): void {
    if (this.isSettled) return;
    this.entry.reject(failure);
    this.returns?.fail(failure);
    this.#settled();
  }

  /**
   * Ends it early: now, if it was not sent, else when the other side says so. It is not tried
   * again.
   */
  cancel(recursive: boolean, force: boolean): void {
    if (this.isSettled && !this.#keepsPlace) return;
    this.owner.takeBack?.(this);
    if (force) this.owner.force(this);
    if (this.isSettled) return;
    this.isCancelled = true;
    if (this.session === undefined) {
      this.fail(cancellationOf(this));
      return this.owner.withdrawn(this);
    }
    this.session.send({ kind: "cancel", id: this.id, recursive });
    // An actor keeps the place of a cancelled call itself; a task keeps its worker until its end.
    if (this.plan.worker === undefined) return;
    this.#keepsPlace = true;
    this.fail(cancellationOf(this));
    // It may still be ended by force.
    this.entry.producer = this;
  }

  #settled(): void {
    this.isSettled = true;
    const { events } = this.owner.link;
    if (events !== undefined) noteSettle(events, this);
    this.hold = undefined;
    this.args.signals?.end();
    if (!this.#keepsPlace) this.owner.settled(this);
  }
}

/** Nobody looks at the values of an answer. */
function decline(answer: Answer, { values }: ClientLink): void {
  if (answer.kind === "result") values.decline(answer.value);
  else if (answer.kind === "results") for (const value of answer.values) values.decline(value);
  else if (answer.kind === "failure") values.readFailure(answer.error);
}

function cancellationOf({ owner, entry }: Call): FailureData {
  return owner.link.values.describe(new TaskCancelledError(entry.id, entry.label));
}

/** Whether user code's failure is to be tried again. */
function isRetried(failure: FailureData, policy: boolean | readonly string[]): boolean {
  return typeof policy === "boolean" ? policy : policy.some((one) => isOfClass(failure, one));
}

/** Shared by all calls without dependencies; nobody writes to it. */
const none: Encoded[] = [];
