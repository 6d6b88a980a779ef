/**
 * One living actor: the user's object, its mailbox and its concurrency.
 *
 * Calls start in order of arrival, at most `limit` of a concurrency group at a time (1 for a sync
 * actor). A method that returns a thenable or a stream holds its place until that settles; any
 * other is answered at once. Once the actor exits, no call starts: queued calls are answered
 * "gone", or "absent" if the actor goes on elsewhere. Running calls may end, and then the shutdown
 * hook runs.
 */
import type { Caller } from "../../../caller/caller.ts";
import {
  type ActorScope,
  enterScope,
  leaveScope,
  setSyncTask,
} from "../../../caller/waits/task-scope.ts";
import type { Assignment } from "../../../rpc/resource-demand.ts";
import type { ActorInfo } from "../../../rpc/directory.ts";
import type { CallMessage, Route } from "../../../protocol/message.ts";
import type { Session } from "../../../rpc/session/session.ts";
import { clockMs } from "../../../shared/clock.ts";
import { type DeathCause, RaySystemError } from "../../../shared/errors.ts";
import { argumentsOf } from "../arguments.ts";
import { answerOf, Execution, type ExecutionSite, failureOf, noteExecution } from "../execution.ts";
import type { Idleness } from "../idleness.ts";
import { isPlainCall, ReceivedSignals } from "../received-signals.ts";
import { answerItems, givesItems } from "../streaming.ts";
import { ActorObject, type FindFunction, type KnownMethod } from "./actor-object.ts";
import { ConcurrencyGroups, type Group } from "./mailbox.ts";
import { CallOnStack } from "./call-on-stack.ts";
import { timers } from "../../../shared/machine/timers.ts";

/** All that the actors of a host share. */
export interface ActorHome {
  readonly caller: Caller;
  readonly idleness: Idleness;
  readonly findFunction: FindFunction;
  /** Whether there may be several, so that each must be able to end alone. */
  readonly isShared: boolean;
  /**
   * An actor ends by itself and for good as soon as its running calls have ended, which may take
   * long.
   */
  exiting(actor: Instance, cause: DeathCause): void;
  /** An actor has ended by itself, and its hook has run. */
  exited(actor: Instance, cause: DeathCause): void;
}

export interface InstanceSettings {
  readonly info: ActorInfo;
  readonly name: string | undefined;
  readonly namespace: string;
  readonly incarnation: number;
  readonly assignment: Assignment;
  /** The number of AbortSignals among the arguments of its constructor. */
  readonly signalCount: number;
}

/**
 * A method that held the thread longer than this, in ms, is expected to do so again; so is a method
 * that never ran.
 */
const slowMs = 0.5;

export class Instance implements ExecutionSite, ActorScope {
  readonly info: ActorInfo;
  readonly name: string | undefined;
  readonly namespace: string;
  readonly incarnation: number;
  readonly assignment: Assignment;
  /** Its mailbox. */
  readonly groups: ConcurrencyGroups;
  readonly object: ActorObject;
  /** The AbortSignals among the arguments of its constructor, connected as long as it lives. */
  readonly signals: ReceivedSignals;
  readonly #home: ActorHome;
  readonly #plain: CallOnStack;
  /** Calls under way in an actor that may end alone. */
  #awaited: Set<Execution> | undefined;
  /** The number of calls that have begun. */
  executed = 0;
  #exiting: DeathCause | undefined;
  #hasExited = false;
  #isDiscarded = false;

  constructor(home: ActorHome, settings: InstanceSettings) {
    this.info = settings.info;
    this.name = settings.name;
    this.namespace = settings.namespace;
    this.incarnation = settings.incarnation;
    this.assignment = settings.assignment;
    this.#home = home;
    this.groups = new ConcurrencyGroups(settings.info);
    this.object = new ActorObject(this, settings.assignment, home.findFunction);
    this.signals = new ReceivedSignals(home.caller.values.codec, settings.signalCount);
    this.#plain = new CallOnStack(this);
  }

  get caller(): Caller {
    return this.#home.caller;
  }

  get actor(): ActorScope {
    return this;
  }

  /** Whether no call starts any more. */
  get isExiting(): boolean {
    return this.#exiting !== undefined;
  }

  functionName({ method }: Route): string {
    return `${this.info.className}.${method}`;
  }

  receive(call: CallMessage, session: Session): void {
    const name = call.route.shape?.group;
    const group = this.groups.of(name);
    if (this.#exiting !== undefined) {
      const kind = isElsewhere(this.#exiting) ? "absent" : "gone";
      return session.answer({ kind, id: call.id });
    }
    if (group === undefined) {
      const error = new RaySystemError(
        `${this.info.className} has no concurrency group "${name ?? ""}"`,
      );
      return session.answer(failureOf(call, this, error));
    }
    if (group.running < group.limit) this.#start(call, session, group, undefined);
    else {
      const execution = new Execution(call, session, this);
      execution.queued = call;
      group.queue.push(execution);
    }
  }

  withdrawn(execution: Execution): void {
    this.groups.withdrawn(execution);
  }

  exit(cause: DeathCause): void {
    const before = this.#exiting;
    if (before !== undefined && !isElsewhere(before)) return;
    this.#exiting = cause;
    if (!isElsewhere(cause)) this.#home.exiting(this, cause);
    // The actor was to go on elsewhere, and now is not.
    if (before !== undefined) return;
    for (const execution of this.groups.drain()) {
      execution.answerWith(isElsewhere(cause) ? "absent" : "gone");
    }
    // The method that exits may still be on the stack.
    timers.queueMicrotask(() => this.#exitIfIdle());
  }

  /** Ends the actor at once: no hook, and no answers but "gone". */
  discard(): void {
    this.#exiting ??= { kind: "killed", message: "it was killed" };
    this.#hasExited = true;
    this.signals.end();
    for (const execution of this.groups.drain()) execution.answerWith("gone");
    // Nobody waits for the calls that go on there.
    if (!this.#isDiscarded) this.#home.idleness.ended(this.groups.load.running);
    this.#isDiscarded = true;
    for (const awaited of this.#awaited ?? []) awaited.discard();
    this.object.ended(this.#exiting);
  }

  #start(call: CallMessage, session: Session, group: Group, queued: Execution | undefined): void {
    const method = this.object.method(call.route.method);
    if (method === undefined) {
      const error = this.object.noMethod(call.route.method);
      return queued === undefined
        ? session.answer(failureOf(call, this, error))
        : queued.answerFailure(error);
    }
    // Ready answers do not wait for a method that may take long.
    if (method.slow) session.flush();
    this.executed += 1;
    const isPlain = method.plain && queued === undefined && isPlainCall(call.dependencies);
    if (isPlain) this.#runPlain(call, session, group, method);
    else this.#run(call, queued ?? new Execution(call, session, this), group, method);
  }

  /**
   * Runs a call the short way: no object is made for the call unless it asks for its context, and
   * all calls of a batch share the actor's own scope. The first promise that such a method returns
   * continues in that scope, too; from then on each call has its own.
   */
  #runPlain(call: CallMessage, session: Session, group: Group, method: KnownMethod): void {
    const hasEntered = enterScope(this.object.scope);
    this.#plain.begin(call, session);
    setSyncTask(this.#plain);
    let result: unknown;
    let error: unknown;
    let threw = false;
    let goesOn = false;
    const { events } = this.caller;
    const startMs = events === undefined ? 0 : clockMs();
    let decodedMs = 0;
    try {
      const args = argumentsOf(call, session, this.caller.values.codec);
      if (events !== undefined) decodedMs = clockMs();
      result = method.run.apply(this.object.value, args);
      goesOn = isThenable(result) || givesItems(call.route, result);
    } catch (thrown) {
      error = thrown;
      threw = true;
    }
    setSyncTask(undefined);
    if (hasEntered) session.afterBatch(leaveScope);
    const scope = this.#plain.end();
    method.slow = session.lap() > slowMs;
    if (method.slow) session.poll();
    if (goesOn) {
      method.plain = false;
      method.isAsync = true;
      const execution = scope ?? new Execution(call, session, this);
      if (events !== undefined) execution.begun(startMs);
      return this.#await(execution, group, result);
    }
    if (events !== undefined) {
      const functionName = this.functionName(call.route);
      noteExecution(events, { call, session, functionName, startMs, decodedMs, ok: !threw });
    }
    if (scope !== undefined) return threw ? scope.answerFailure(error) : scope.answer(result);
    const { id } = call;
    if (session.calls.isCancelled(id)) return session.answer({ kind: "cancelled", id });
    session.answer(threw ? failureOf(call, this, error) : answerOf(call, this, result));
  }

  /** Runs a call in a scope of its own: all that the method starts belongs to its execution. */
  #run(call: CallMessage, execution: Execution, group: Group, method: KnownMethod): void {
    const { session } = execution;
    this.#home.idleness.look();
    let result: unknown;
    let goesOn: boolean;
    const { events } = this.caller;
    const startMs = events === undefined ? 0 : clockMs();
    try {
      const args = argumentsOf(call, session, this.caller.values.codec, () => execution.signals);
      if (events !== undefined) execution.begun(startMs);
      execution.trace(call);
      result = execution.run(() => method.run.apply(this.object.value, args));
      goesOn = isThenable(result) || givesItems(call.route, result);
    } catch (error) {
      return execution.answerFailure(error);
    }
    method.slow = session.lap() > slowMs;
    if (method.slow) session.poll();
    if (goesOn) {
      method.isAsync = true;
      return this.#await(execution, group, result);
    }
    method.plain = !method.isAsync;
    execution.answer(result);
  }

  #await(execution: Execution, group: Group, result: unknown): void {
    group.running += 1;
    this.#home.idleness.begun();
    if (this.#home.isShared) (this.#awaited ??= new Set()).add(execution);
    const isOne = execution.route.shape?.returns === undefined;
    const ended = isOne
      ? Promise.resolve(result)
      : execution.run(async () => answerItems(await result, execution, this.caller));
    ended.then(
      (value) => {
        if (isOne) execution.answer(value);
        this.#finish(execution, group);
      },
      (error: unknown) => {
        execution.answerFailure(error);
        this.#finish(execution, group);
      },
    );
  }

  #finish(ended: Execution, group: Group): void {
    group.running -= 1;
    if (!this.#isDiscarded) this.#home.idleness.ended(1);
    this.#awaited?.delete(ended);
    if (this.#exiting !== undefined) return this.#exitIfIdle();
    while (group.running < group.limit) {
      const next = group.queue.shift();
      if (next === undefined) return;
      const call = next.queued;
      next.queued = undefined;
      next.sinceMs = clockMs();
      if (call === undefined) group.withdrawn -= 1;
      else this.#start(call, next.session, group, next);
    }
  }

  #exitIfIdle(): void {
    const cause = this.#exiting;
    if (cause === undefined || this.#hasExited || this.groups.load.running > 0) return;
    this.#hasExited = true;
    void this.object.shutDown().then(() => {
      this.#home.exited(this, cause);
      this.object.ended(cause);
    });
  }
}

/** Whether the next incarnation gets the calls that this one has not begun. */
function isElsewhere({ kind }: DeathCause): boolean {
  return kind === "drained";
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    "then" in value &&
    typeof value.then === "function"
  );
}
