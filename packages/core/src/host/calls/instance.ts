/**
 * One living actor: the user's object, its mailbox and its concurrency.
 *
 * Calls start in order of arrival, at most `limit` of a concurrency group at a time (1 for a sync
 * actor). A method that returns a thenable or a stream holds its place until that settles; any
 * other is answered at once. Only public methods of the class can be called: not fields, not the
 * constructor. Once the actor exits, no call starts: queued calls are answered "gone", or "absent"
 * if the actor goes on elsewhere. Running calls may end, and then the shutdown hook runs.
 */
import type { Caller } from "../../caller/caller.ts";
import {
  type ActorScope,
  asTask,
  currentTask,
  enterScope,
  leaveScope,
  setSyncTask,
  type SyncTask,
  type TaskScope,
} from "../../caller/waits/task-scope.ts";
import type { Codec, Encoded } from "../../protocol/codec.ts";
import type { CallMessage } from "../../rpc/session/incoming-calls.ts";
import type { Session } from "../../rpc/session/session.ts";
import type { Assignment } from "../../rpc/demand.ts";
import type { ActorInfo, RemoteKey } from "../../rpc/directory.ts";
import { functionDataOf } from "../../caller/calls/function-ref.ts";
import { type DeathCause, MethodNotFoundError, RaySystemError } from "../../shared/errors.ts";
import { clockMs } from "../../shared/clock.ts";
import { Fifo } from "../../shared/fifo.ts";
import { type Method, methodsOf, notMethodOf, shutdownHook } from "../../shared/methods.ts";
import { warn } from "../../shared/text/warning.ts";
import {
  answerOf,
  failureOf,
  type CallHead,
  Execution,
  type ExecutionSite,
  noteExecution,
} from "./execution.ts";
import type { Idleness } from "./idleness.ts";
import { countSignals, ReceivedSignals } from "./received-signals.ts";
import { runStream } from "./streaming.ts";

/** The settings that the host gives an actor. */
export interface InstanceSettings {
  readonly info: ActorInfo;
  readonly name: string | undefined;
  readonly namespace: string;
  readonly incarnation: number;
  readonly assignment: Assignment;
  readonly caller: Caller;
  readonly idleness: Idleness;
  /** The number of AbortSignals among the arguments of its constructor. */
  readonly signalCount: number;
  readonly findFunction: (key: RemoteKey) => Promise<unknown>;
  /** Whether other actors live in this host, so that it must be able to end alone. */
  readonly isShared: boolean;
  /**
   * Called when the actor ends by itself and for good as soon as its running calls have ended,
   * which may take long.
   */
  readonly onExiting: (cause: DeathCause) => void;
  /** Called when the actor has ended by itself and its hook has run. */
  readonly onExit: (cause: DeathCause) => void;
}

/**
 * A method that held the thread longer than this, in ms, is expected to do so again; so is a method
 * that never ran.
 */
const slowMs = 0.5;

interface KnownMethod {
  readonly run: Method;
  slow: boolean;
  /**
   * Whether the call is over when the method returns: whatever the method starts belongs to the
   * actor.
   */
  plain: boolean;
  /** Whether the method has returned a promise, or is about to. */
  isAsync: boolean;
}

/** Calls that share a limit. */
interface Group {
  readonly limit: number;
  readonly queue: Fifo<Execution>;
  /** The number of queued calls that already have their answer. */
  withdrawn: number;
  running: number;
}

/** This many answered calls may stay in a queue, however short it is. */
const mostWithdrawn = 1024;

export class Instance implements ExecutionSite, ActorScope, SyncTask {
  readonly info: ActorInfo;
  readonly name: string | undefined;
  readonly namespace: string;
  readonly incarnation: number;
  readonly assignment: Assignment;
  readonly caller: Caller;
  readonly #idleness: Idleness;
  readonly #onExiting: (cause: DeathCause) => void;
  readonly #onExit: (cause: DeathCause) => void;
  readonly #findFunction: (key: RemoteKey) => Promise<unknown>;
  #object: object = {};
  #methods: ReadonlyMap<string, KnownMethod> = new Map();
  #hook: Method | undefined;
  readonly #group: Group;
  readonly #groups: ReadonlyMap<string, Group>;
  #executed = 0;
  readonly #signals: ReceivedSignals;
  /** Calls under way in an actor that may end alone. */
  readonly #awaited: Set<Execution> | undefined;
  /**
   * The scope of code outside of calls: the constructor, the hook, and what a plain method left
   * behind.
   */
  readonly #own: TaskScope;
  #exiting: DeathCause | undefined;
  #hasExited = false;
  #isDiscarded = false;
  /** The plain call on the stack, and its scope once that was requested. */
  #call: CallMessage | undefined;
  #session: Session | undefined;
  #scope: Execution | undefined;

  constructor(settings: InstanceSettings) {
    this.info = settings.info;
    this.name = settings.name;
    this.namespace = settings.namespace;
    this.incarnation = settings.incarnation;
    this.assignment = settings.assignment;
    this.caller = settings.caller;
    this.#idleness = settings.idleness;
    this.#signals = new ReceivedSignals(settings.caller.values.codec, settings.signalCount);
    this.#onExiting = settings.onExiting;
    this.#onExit = settings.onExit;
    this.#findFunction = settings.findFunction;
    this.#awaited = settings.isShared ? new Set() : undefined;
    this.#group = newGroup(settings.info.maxConcurrency);
    this.#groups = new Map(
      Object.entries(settings.info.concurrencyGroups).map(([name, limit]) => [
        name,
        newGroup(limit),
      ]),
    );
    const name = `${this.info.className}.constructor`;
    this.#own = {
      taskId: `${this.info.actorId}:create:${this.incarnation}`,
      taskName: name,
      functionName: name,
      actor: this,
      assignment: this.assignment,
      signal: new AbortController().signal,
      isCancelled: () => false,
      waits: () => () => undefined,
      takeInterruption: () => undefined,
      exitActor: (message) => this.exit({ kind: "exit-actor", message }),
    };
  }

  get actor(): ActorScope {
    return this;
  }

  /** The AbortSignals among the arguments of its constructor, connected as long as it lives. */
  get signals(): ReceivedSignals {
    return this.#signals;
  }

  get stats(): { readonly running: number; readonly queued: number; readonly executed: number } {
    let running = 0;
    let queued = 0;
    for (const group of this.#allGroups()) {
      running += group.running;
      queued += group.queue.size - group.withdrawn;
    }
    return { running, queued, executed: this.#executed };
  }

  /**
   * Makes the user's object.
   *
   * @throws the error of the constructor
   */
  construct(ActorClass: new (...args: unknown[]) => object, args: readonly unknown[]): void {
    this.#object = asTask(this.#own, () => new ActorClass(...args));
    const methods = methodsOf(Object.getPrototypeOf(this.#object) as object);
    this.#hook = methods.get(shutdownHook);
    methods.delete(shutdownHook);
    this.#methods = new Map(
      [...methods, ...this.#builtIns()].map(([name, run]) => [
        name,
        { run, slow: true, plain: false, isAsync: isAsync(run) },
      ]),
    );
  }

  functionName(call: CallHead): string {
    return `${this.info.className}.${call.route.method}`;
  }

  scope(): TaskScope {
    const call = this.#call;
    const session = this.#session;
    if (call === undefined || session === undefined)
      throw new RaySystemError("no call is on the stack");
    return (this.#scope ??= new Execution(call, session, this));
  }

  receive(call: CallMessage, session: Session): void {
    const name = call.route.shape?.group;
    const group = this.#groupOf(name);
    if (this.#exiting !== undefined) {
      const kind = livesOn(this.#exiting) ? "absent" : "gone";
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

  /**
   * Removes answered calls from the queue, so that they do not pile up behind a call that never
   * ends.
   */
  withdrawn({ route }: Execution): void {
    const group = this.#groupOf(route.shape?.group);
    if (group === undefined) return;
    group.withdrawn += 1;
    if (group.withdrawn < mostWithdrawn || 2 * group.withdrawn < group.queue.size) return;
    group.withdrawn = 0;
    for (const execution of group.queue.drain()) {
      if (execution.isQueued) group.queue.push(execution);
    }
  }

  /** Returns the limit of the call's group; it is closed when no further call starts. */
  placesFor({ route }: Execution): { readonly limit: number; readonly isOpen: boolean } {
    const group = this.#groupOf(route.shape?.group);
    return {
      limit: group?.limit ?? 0,
      isOpen: group !== undefined && group.running === group.limit && this.#exiting === undefined,
    };
  }

  /** Whether both calls belong to this actor and to one concurrency group. */
  sharesPlaces(one: Execution, other: Execution): boolean {
    return one.actor === this && one.route.shape?.group === other.route.shape?.group;
  }

  /** Whether calls wait for the place of a running one. */
  isAwaited({ route }: Execution): boolean {
    const group = this.#groupOf(route.shape?.group);
    return group !== undefined && group.queue.size > group.withdrawn;
  }

  #groupOf(name: string | undefined): Group | undefined {
    return name === undefined ? this.#group : this.#groups.get(name);
  }

  exit(cause: DeathCause): void {
    const before = this.#exiting;
    if (before !== undefined && !livesOn(before)) return;
    this.#exiting = cause;
    if (!livesOn(cause)) this.#onExiting(cause);
    // The actor was to go on elsewhere, and now is not.
    if (before !== undefined) return;
    for (const group of this.#allGroups()) {
      for (const execution of drain(group)) {
        execution.answerWith(livesOn(cause) ? "absent" : "gone");
      }
    }
    // The method that exits may still be on the stack.
    queueMicrotask(() => this.#exitIfIdle());
  }

  /** Ends the actor at once: no hook, and no answers but "gone". */
  discard(): void {
    this.#exiting ??= { kind: "killed", message: "it was killed" };
    this.#hasExited = true;
    this.#signals.end();
    for (const group of this.#allGroups()) {
      for (const execution of drain(group)) execution.answerWith("gone");
      // Nobody waits for the calls that go on there.
      if (!this.#isDiscarded) this.#idleness.ended(group.running);
    }
    this.#isDiscarded = true;
    for (const awaited of this.#awaited ?? []) awaited.discard();
  }

  #start(call: CallMessage, session: Session, group: Group, queued: Execution | undefined): void {
    const method = this.#methods.get(call.route.method);
    if (method === undefined) {
      const error = this.#noMethod(call.route.method);
      return queued === undefined
        ? session.answer(failureOf(call, this, error))
        : queued.answerFailure(error);
    }
    // Ready answers do not wait for a method that may take long.
    if (method.slow) session.flush();
    this.#executed += 1;
    const isPlain = method.plain && queued === undefined && countSignals(call.dependencies) === 0;
    if (isPlain) this.#runPlain(call, session, group, method);
    else this.#run(call, queued ?? new Execution(call, session, this), group, method);
  }

  /** The class here differs from the one that the caller knows, or a peer made the name up. */
  #noMethod(name: string): MethodNotFoundError {
    const { className, methods } = this.info;
    return new MethodNotFoundError(className, name, methods, notMethodOf(this.#object, name));
  }

  /**
   * Runs a call the short way: no object is made for the call unless it asks for its context, and
   * all calls of a batch share the actor's own scope. The first promise that such a method returns
   * continues in that scope, too; from then on each call has its own.
   */
  #runPlain(call: CallMessage, session: Session, group: Group, method: KnownMethod): void {
    const hasEntered = enterScope(this.#own);
    this.#call = call;
    this.#session = session;
    setSyncTask(this);
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
      result = method.run.apply(this.#object, args);
      goesOn = isThenable(result) || call.route.shape?.returns === "streaming";
    } catch (thrown) {
      error = thrown;
      threw = true;
    }
    setSyncTask(undefined);
    if (hasEntered) session.afterBatch(leaveScope);
    const scope = this.#scope;
    this.#call = undefined;
    this.#session = undefined;
    this.#scope = undefined;
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
      const functionName = this.functionName(call);
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
    this.#idleness.look();
    let result: unknown;
    let goesOn: boolean;
    const { events } = this.caller;
    const startMs = events === undefined ? 0 : clockMs();
    try {
      const args = argumentsOf(call, session, this.caller.values.codec, () => execution.signals);
      if (events !== undefined) execution.begun(startMs);
      result = asTask(execution, () => method.run.apply(this.#object, args));
      goesOn = isThenable(result) || call.route.shape?.returns === "streaming";
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
    this.#idleness.begun();
    this.#awaited?.add(execution);
    const isStream = execution.route.shape?.returns === "streaming";
    const ended = isStream
      ? asTask(execution, () => this.#stream(execution, result))
      : Promise.resolve(result);
    ended.then(
      (value) => {
        // A stream has answered for itself.
        if (!isStream) execution.answer(value);
        this.#finish(execution, group);
      },
      (error: unknown) => {
        execution.answerFailure(error);
        this.#finish(execution, group);
      },
    );
  }

  async #stream(execution: Execution, result: unknown): Promise<void> {
    await runStream(await result, execution, this.caller);
  }

  #finish(ended: Execution, group: Group): void {
    group.running -= 1;
    if (!this.#isDiscarded) this.#idleness.ended(1);
    this.#awaited?.delete(ended);
    if (this.#exiting !== undefined) return this.#exitIfIdle();
    while (group.running < group.limit) {
      const next = group.queue.shift();
      if (next === undefined) return;
      const call = next.queued;
      next.queued = undefined;
      if (call === undefined) group.withdrawn -= 1;
      else this.#start(call, next.session, group, next);
    }
  }

  #exitIfIdle(): void {
    const cause = this.#exiting;
    if (cause === undefined || this.#hasExited || this.stats.running > 0) return;
    this.#hasExited = true;
    void this.#shutDown().finally(() => this.#onExit(cause));
  }

  async #shutDown(): Promise<void> {
    try {
      await asTask(this.#own, () => this.#hook?.apply(this.#object, []));
    } catch (error) {
      warn(`${this.info.className}.${shutdownHook} threw: ${String(error)}`);
    }
  }

  #builtIns(): [string, Method][] {
    return [
      ["__ray_ready__", () => true],
      ["__ray_terminate__", () => currentTask()?.exitActor("it was ended by __ray_terminate__")],
      [
        "__ray_call__",
        async (task, ...args) => {
          const data = functionDataOf(task);
          if (data === undefined) {
            throw new TypeError(
              "__ray_call__ takes a remote function, then its arguments behind the actor's object",
            );
          }
          const run = (await this.#findFunction(data.key)) as Method;
          return run(this.#object, ...args);
        },
      ],
    ];
  }

  #allGroups(): Group[] {
    return [this.#group, ...this.#groups.values()];
  }
}

/** Whether the next incarnation gets the calls that this one has not begun. */
function livesOn({ kind }: DeathCause): boolean {
  return kind === "drained";
}

/** Removes all calls from a group's queue. */
function drain(group: Group): Execution[] {
  group.withdrawn = 0;
  const executions = group.queue.drain();
  for (const execution of executions) execution.queued = undefined;
  return executions;
}

function newGroup(limit: number): Group {
  return { limit, queue: new Fifo(), withdrawn: 0, running: 0 };
}

function isAsync(method: Method): boolean {
  return Object.prototype.toString.call(method) !== "[object Function]";
}

/** @param signals returns the call's AbortSignals, if there are some */
export function decodeArguments(
  codec: Codec,
  call: { readonly arguments: Encoded; readonly dependencies: readonly Encoded[] },
  signals: () => ReceivedSignals,
): unknown[] {
  const { dependencies } = call;
  if (dependencies.length === 0) return codec.decode(call.arguments) as unknown[];
  let index = 0;
  const slots = dependencies.map((dependency): unknown =>
    dependency.isSignal === true ? signals().open(index++, dependency) : codec.decode(dependency),
  );
  return codec.decode(call.arguments, slots) as unknown[];
}

/** Decodes the arguments of a call that came over that session. */
export function argumentsOf(
  call: CallMessage,
  session: Session,
  codec: Codec,
  signals: () => ReceivedSignals = noSignals,
): unknown[] {
  const args = decodeArguments(codec, call, signals);
  session.calls.wasRead(call.id);
  return args;
}

function noSignals(): never {
  throw new RaySystemError("unexpected signals among the arguments of a call");
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof (value as { then?: unknown }).then === "function"
  );
}
