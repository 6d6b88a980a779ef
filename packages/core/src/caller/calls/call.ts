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
import { CallState } from "./call-state.ts";
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
  /** The call is about to fail for good: what it has of several values stays. */
  failing?(): void;
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

/** Where calls are sent: a worker, or one life of an actor. */
export interface CallPlace {
  readonly session: Session;
  readonly incarnation: number;
}

/** The client of what is called: it knows where calls go, and what the loss of one means. */
export interface CallOwner {
  readonly link: ClientLink;
  /** The actor that is called, if one is. */
  readonly info: ActorInfo | undefined;
  /** Where a call waits until it is sent. */
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

/** Fields that few calls need. */
interface Rarities {
  returns: Returns | undefined;
  parent: TaskScope | undefined;
}

/** A million of them may wait, so each has as few fields as it can. */
export class Call extends CallState implements Pending {
  readonly owner: CallOwner;
  readonly plan: CallPlan;
  readonly args: CallArguments;
  /** Its value; the first one of several; of a stream, its completion. */
  readonly entry: ObjectEntry;
  retriesLeft: number;
  id = -1;
  #place: CallPlace | undefined = undefined;
  #rarities: Rarities | undefined;

  constructor(owner: CallOwner, plan: CallPlan, args: CallArguments, entry: ObjectEntry) {
    super();
    this.owner = owner;
    this.plan = plan;
    this.args = args;
    this.entry = entry;
    this.retriesLeft = plan.maxRetries;
    const parent = currentTask();
    this.#rarities = parent === undefined ? undefined : { returns: undefined, parent };
    entry.producer = this;
  }

  /** Where it was sent, while it is unanswered there. */
  get session(): Session | undefined {
    return this.#place?.session;
  }

  /** Which life of the actor it was sent to. */
  get incarnation(): number {
    return this.#place?.incarnation ?? 0;
  }

  /** It is not under way any more. */
  leavePlace(): void {
    this.#place = undefined;
  }

  get queue(): Fifo<Call> {
    return this.owner.queueFor(this.plan);
  }

  get returns(): Returns | undefined {
    return this.#rarities?.returns;
  }

  set returns(returns: Returns | undefined) {
    this.#rarities = { returns, parent: this.parent };
  }

  /** The task that made it, if one did. */
  get parent(): TaskScope | undefined {
    return this.#rarities?.parent;
  }

  set parent(parent: TaskScope | undefined) {
    this.#rarities = { returns: this.returns, parent };
  }

  get stage(): Stage {
    if (this.session !== undefined) return "sent";
    return this.unresolved > 0 ? "arguments" : this.owner.stageOf(this);
  }

  /** Sends it; its arguments are ready. Or fails it, if one of them failed. */
  send(place: CallPlace, route: Route): void {
    const { dependencies: entries, signals } = this.args;
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
      // The reason of an abort may have a getter, which may cancel this call.
      if (this.isSettled) return;
      signals.listen((index, reason) => this.session?.abort(this.id, index, reason));
    }
    const { values } = this.args;
    this.#place = place;
    const { session } = place;
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
      return endCancelled(this);
    }
    switch (answer.kind) {
      case "result": {
        const problem = this.returns?.end?.(answer.value);
        if (problem !== undefined) return this.fail(this.owner.link.values.describe(problem));
        this.owner.link.objects.settle(this.entry, answer.value, this);
        return endSettled(this);
      }
      case "results":
        this.returns?.resolveAll?.(answer.values);
        return endSettled(this);
      case "failure":
        return reject(this, answer.error);
      case "gone":
      case "absent":
        return this.owner.lost(this, answer.kind);
      case "cancelled":
        return endCancelled(this);
      default:
        assertNever(answer);
    }
  }

  lose(reason: DeathCause): void {
    if (this.isCancelled) return endCancelled(this);
    this.owner.lost(this, reason);
  }

  item(index: number, value: Encoded): void {
    if (this.isSettled) return this.owner.link.values.decline(value);
    this.returns?.item?.(index, value);
  }

  fail(failure: FailureData): void {
    if (this.isSettled) return;
    this.returns?.failing?.();
    this.entry.reject(failure);
    this.returns?.fail(failure);
    endSettled(this);
  }

  /**
   * Ends it early: now, if it was not sent, else when the other side says so. It is not tried
   * again.
   */
  cancel(recursive: boolean, force: boolean): void {
    if (this.isSettled && !this.keepsPlace) return;
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
    this.keepsPlace = true;
    this.fail(cancellationOf(this));
    // It may still be ended by force.
    this.entry.producer = this;
  }
}

function reject(call: Call, error: Encoded): void {
  const failure = call.owner.link.values.readFailure(error);
  if (call.retriesLeft !== 0 && isRetried(failure, call.plan.retryExceptions)) {
    call.retriesLeft -= 1;
    call.mayHaveRun = true;
    call.owner.again(call);
  } else {
    call.fail(failure);
  }
}

function endCancelled(call: Call): void {
  if (!call.keepsPlace) return call.fail(cancellationOf(call));
  call.keepsPlace = false;
  call.entry.producer = undefined;
  call.owner.settled(call);
}

function endSettled(call: Call): void {
  call.isSettled = true;
  const { events } = call.owner.link;
  if (events !== undefined) noteSettle(events, call);
  call.args.signals?.end();
  call.args.letGo();
  if (!call.keepsPlace) call.owner.settled(call);
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
