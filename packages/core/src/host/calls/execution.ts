/**
 * A call in this host that did not end in the turn in which it started: it is queued, awaits
 * something, or streams.
 *
 * It answers once: with its value, its failure, or "cancelled". A cancellation aborts its signal
 * and interrupts its waits. The user's promise goes on until it settles and keeps its place until
 * then: in an actor, which answers the cancellation at once, or, for a task, on the worker, which
 * answers only when it is free.
 */
import type { Caller } from "../../caller/caller.ts";
import {
  type ActorScope,
  asTask,
  type Stop,
  type TaskScope,
} from "../../caller/waits/task-scope.ts";
import type { Encoded } from "../../protocol/codec.ts";
import {
  type Answer,
  type CallMessage,
  noMoreItems,
  type Route,
  unlimitedItems,
} from "../../protocol/message.ts";
import type { Assignment } from "../../rpc/resource-demand.ts";
import type { Running } from "../../rpc/session/incoming-calls.ts";
import type { Session } from "../../rpc/session/session.ts";
import type { TaskEvents } from "../../telemetry/task-events.ts";
import { clockMs } from "../../shared/clock.ts";
import { RaySystemError, type RemoteSite, TaskCancelledError } from "../../shared/errors.ts";
import { countSignals, ReceivedSignals } from "./received-signals.ts";
import { beginTraced, type TracedExecution } from "./traced-execution.ts";

/** The runner of calls: an actor, or the task runner. */
export interface ExecutionSite {
  readonly caller: Caller;
  readonly actor: ActorScope | undefined;
  readonly assignment: Assignment;
  functionName(route: Route): string;
  /** Called when a call in the mailbox has its answer and will not run. */
  withdrawn?(execution: Execution): void;
}

/** Does not hold the call's message: the user's code may keep an execution, but not arguments. */
export class Execution implements Running, TaskScope {
  readonly id: number;
  readonly sequence: number;
  readonly route: Route;
  readonly session: Session;
  /** When it began to run, or to wait in a mailbox, as of clockMs(). */
  sinceMs: number;
  readonly #site: ExecutionSite;
  #controller: AbortController | undefined;
  #isAnswered = false;
  #isCancelled = false;
  /** The waits of its code, made when needed. */
  #waits: Set<Stop> | undefined;
  #isToInterrupt = false;
  /** Whether it ended its actor, and so has no value. */
  #exits = false;
  /** The number of stream items that its consumer has taken. */
  #taken = 0;
  /**
   * Whether the consumer of its stream has left: further items are useless, and earlier ones stay.
   */
  #isLeft = false;
  #wake: (() => void) | undefined;
  /** Called when its caller is gone, made when needed. */
  #leaves: (() => void)[] | undefined;
  /** The AbortSignals among its arguments, made when needed. */
  #signals: ReceivedSignals | undefined;
  readonly #signalCount: number;
  /** The call to run, while it waits in a mailbox. */
  queued: CallMessage | undefined;
  waitCount: number = 0;
  /** When it began, and when its arguments were decoded, if events are recorded. */
  #startMs = 0;
  #decodedMs = 0;
  /** Its span, if its caller has one and this thread makes spans. */
  #traced: TracedExecution | undefined;

  constructor(call: CallMessage, session: Session, site: ExecutionSite) {
    this.id = call.id;
    this.sequence = call.sequence;
    this.route = call.route;
    this.session = session;
    this.sinceMs = session.calls.sinceMs;
    this.#site = site;
    this.#signalCount = countSignals(call.dependencies);
    session.calls.track(call.id, this);
  }

  get taskId(): string {
    return `${this.session.peerId}:${this.sequence}`;
  }

  get functionName(): string {
    return this.#site.functionName(this.route);
  }

  get taskName(): string {
    return this.route.shape?.name ?? this.functionName;
  }

  get actor(): ActorScope | undefined {
    return this.#site.actor;
  }

  get assignment(): Assignment {
    return this.#site.assignment;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if ((this.#isCancelled || this.#isLeft) && !this.#controller.signal.aborted)
      this.#controller.abort(this.#reason());
    return this.#controller.signal;
  }

  get isQueued(): boolean {
    return this.queued !== undefined;
  }

  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  /** Whether any further output is of use. */
  get isWanted(): boolean {
    return !this.#isAnswered && !this.#isCancelled && !this.#isLeft;
  }

  /** Whether the consumer of its items has left. */
  get isLeft(): boolean {
    return this.#isLeft;
  }

  isCancelled(): boolean {
    if (!this.#isAnswered) this.session.poll();
    return this.#isCancelled;
  }

  cancel(recursive: boolean): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    if (this.actor !== undefined) this.answerWith("cancelled");
    // Its waits come first, because a child that is cancelled at once would end them with its own
    // error. The signal comes last: its listeners may make calls, which are not cancelled.
    this.#interrupt();
    if (recursive) this.#site.caller.calls.cancelChildren(this);
    this.#abort();
  }

  waits(stop: Stop): () => void {
    const waits = (this.#waits ??= new Set());
    waits.add(stop);
    return () => void waits.delete(stop);
  }

  takeInterruption(): TaskCancelledError | undefined {
    if (!this.#isToInterrupt) return undefined;
    this.#isToInterrupt = false;
    return this.#reason();
  }

  /** Called when its code has ended. */
  ended(): void {
    if (this.#isCancelled) this.answerWith("cancelled");
  }

  exitActor(message: string): void {
    this.#exits = true;
    this.actor?.exit({ kind: "exit-actor", message });
  }

  consumed(count: number): void {
    if (count === noMoreItems) {
      if (this.#isLeft) return;
      this.#isLeft = true;
      return this.#stop();
    }
    this.#taken = count;
    this.#wake?.();
  }

  /** The AbortSignals among its arguments, which stay connected until it is answered. */
  get signals(): ReceivedSignals {
    this.#signals ??= new ReceivedSignals(this.#site.caller.values.codec, this.#signalCount);
    return this.#signals;
  }

  /** Whether its caller may still abort one of them. */
  get hasSignals(): boolean {
    return this.#signals?.isConnected === true;
  }

  aborted(index: number, reason: Encoded): void {
    this.signals.aborted(index, reason);
  }

  callerLost(): void {
    this.#wake?.();
    for (const leave of this.#leaves?.splice(0) ?? []) leave();
  }

  whenCallerLost(leave: () => void): void {
    if (this.session.isOpen) (this.#leaves ??= []).push(leave);
    else leave();
  }

  /** Waits until the item at that index may be made. Returns whether it is still wanted. */
  async wanted(index: number): Promise<boolean> {
    const ahead = this.route.shape?.ahead ?? unlimitedItems;
    const isOver = (): boolean => this.#isCancelled || this.#isLeft || !this.session.isOpen;
    while (!isOver() && index >= this.#taken + ahead) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    this.#wake = undefined;
    return !isOver();
  }

  answer(value: unknown): void {
    if (this.#isAnswered) return;
    if (this.#isCancelled) return this.answerWith("cancelled");
    if (this.#exits) return this.answerWith("gone");
    const answer = answerOf(this, this.#site, value);
    this.#end(answer.kind !== "failure");
    this.session.answer(answer);
  }

  answerFailure(error: unknown): void {
    if (this.#isAnswered) return;
    if (this.#isCancelled) return this.answerWith("cancelled");
    if (this.#exits) return this.answerWith("gone");
    this.#traced?.failed(error);
    this.#end(false);
    this.session.answer(failureOf(this, this.#site, error));
  }

  /** Answers that its actor ended, that it never began, or that it was cancelled. */
  answerWith(kind: "gone" | "absent" | "cancelled"): void {
    if (this.#isAnswered) return;
    this.#traced?.failed(new RaySystemError(`the call is ${kind}`));
    this.#end(false);
    this.session.answer({ kind, id: this.id });
  }

  /** Answers "gone", because its actor was ended, and stops the running code. */
  discard(): void {
    this.answerWith("gone");
    this.#isCancelled = true;
    this.#stop();
  }

  /** Begins the call's span, if a context of its caller came with it. */
  trace(call: CallMessage): void {
    const { taskName: name, actor } = this;
    const place = { name, actorId: actor?.info.actorId };
    this.#traced = beginTraced(call, this.#site.caller.values.codec, place);
  }

  /** Runs code of the call: all that it starts belongs to it. */
  run<T>(work: () => T): T {
    const traced = this.#traced;
    return asTask(this, traced === undefined ? work : () => traced.run(work));
  }

  /** Records the start time of the call; its arguments are decoded now. */
  begun(startMs: number): void {
    this.#startMs = startMs;
    this.#decodedMs = clockMs();
  }

  /** Interrupts everything that waits inside the call. */
  #stop(): void {
    this.#interrupt();
    this.#abort();
  }

  #abort(): void {
    this.#controller?.abort(this.#reason());
    this.#wake?.();
  }

  /** Ends the waits of its code for the runtime, or else the next one. */
  #interrupt(): void {
    const waits = [...(this.#waits ?? [])];
    this.#isToInterrupt = waits.length === 0;
    for (const stop of waits) stop(this.#reason());
  }

  #end(ok: boolean): void {
    const { events } = this.#site.caller;
    if (events !== undefined && this.#startMs > 0) {
      noteExecution(events, {
        call: this,
        session: this.session,
        functionName: this.functionName,
        startMs: this.#startMs,
        decodedMs: this.#decodedMs,
        ok,
      });
    }
    this.#traced?.end();
    this.#isAnswered = true;
    this.#signals?.end();
    this.session.calls.untrack(this.id);
    if (this.queued === undefined) return;
    // Its arguments no longer count towards its peer's credit.
    this.queued = undefined;
    this.#site.withdrawn?.(this);
  }

  #reason(): TaskCancelledError {
    return new TaskCancelledError(this.taskId, this.taskName);
  }
}

/** The answer to a call that returned `value`: a failure if the value cannot travel. */
export function answerOf(
  { id, route }: CallMessage | Execution,
  site: ExecutionSite,
  value: unknown,
): Answer {
  const returns = route.shape?.returns;
  const { codec } = site.caller.values;
  const small = returns === undefined ? codec.encodeSmall(value) : undefined;
  if (small !== undefined) return { kind: "result", id, value: small };
  const functionName = site.functionName(route);
  const label = `result of ${functionName}`;
  try {
    if (returns === undefined || returns === "streaming") {
      const encoded = codec.encode(value, label, true);
      return { kind: "result", id, value: site.caller.objects.placed(encoded, functionName) };
    }
    const values =
      value instanceof SeveralValues
        ? value.encoded
        : severalOf(value, returns, label).map((one, index) =>
            codec.encode(one, `${label}[${index}]`),
          );
    return { kind: "results", id, values };
  } catch (error) {
    return failureOf({ id, route }, site, error);
  }
}

/** The answer to a call that threw `error`. */
export function failureOf(
  { id, route }: Pick<CallMessage, "id" | "route">,
  site: ExecutionSite,
  error: unknown,
): Answer {
  const { caller, actor } = site;
  const where: RemoteSite = {
    functionName: site.functionName(route),
    hostId: caller.id,
    ...(actor === undefined ? {} : { actorId: actor.info.actorId }),
  };
  return { kind: "failure", id, error: caller.values.codec.encodeFailure(error, where) };
}

/** All the values of a call whose generator has given them. */
export class SeveralValues {
  readonly encoded: readonly Encoded[];

  constructor(encoded: readonly Encoded[]) {
    this.encoded = encoded;
  }
}

function severalOf(value: unknown, count: number, label: string): readonly unknown[] {
  if (count === 0) return [];
  const isIterable =
    typeof value === "object" &&
    value !== null &&
    typeof (value as Iterable<unknown>)[Symbol.iterator] === "function";
  const values = isIterable ? [...(value as Iterable<unknown>)] : undefined;
  if (values?.length === count) return values;
  const found = values === undefined ? typeof value : `${values.length} values`;
  throw new RangeError(
    `${label} must be a list of ${count} values, as its numReturns says; it is ${found}`,
  );
}

/** A call that was run, with times as of clockMs(). */
interface Executed {
  readonly call: CallMessage | Execution;
  readonly session: Session;
  readonly functionName: string;
  readonly startMs: number;
  /** When its arguments were decoded. */
  readonly decodedMs: number;
  /** It did not throw. */
  readonly ok: boolean;
}

/** Records a call with its start and end. */
export function noteExecution(
  events: TaskEvents,
  { call, session, functionName, startMs, decodedMs, ok }: Executed,
): void {
  const { sequence, route } = call;
  const name = route.shape?.name ?? functionName;
  const owner = session.peerId;
  events.add({ kind: "execute", owner, sequence, name, startMs, decodedMs, endMs: clockMs(), ok });
}
