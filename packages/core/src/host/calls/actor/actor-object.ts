/**
 * The user's object of an actor, and its methods: those of its class, and Ray's. Only public
 * methods can be called: not fields, not the constructor.
 */
import { functionDataOf } from "../../../caller/remote-value.ts";
import {
  type ActorScope,
  asTask,
  currentTask,
  type TaskScope,
} from "../../../caller/waits/task-scope.ts";
import type { Assignment } from "../../../rpc/resource-demand.ts";
import type { ActorInfo } from "../../../rpc/directory.ts";
import type { RemoteKey } from "../../../rpc/remote-key.ts";
import { ActorDiedError, type DeathCause, MethodNotFoundError } from "../../../shared/errors.ts";
import {
  type Method,
  methodOf,
  methodsOf,
  notMethodOf,
  prototypeOf,
  shutdownHook,
  tagOf,
} from "../../../shared/methods.ts";
import { warn } from "../../../shared/text/warning.ts";

export interface KnownMethod {
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

/** Finds the function of a remote. */
export type FindFunction = (key: RemoteKey) => Promise<Method>;

export class ActorObject {
  /**
   * The scope of code outside of calls: the constructor, the hook, and what a plain method left
   * behind.
   */
  readonly scope: OutsideCalls;
  readonly #info: ActorInfo;
  readonly #findFunction: FindFunction;
  #object: object | undefined;
  /** Methods that were called. */
  #methods: Map<string, KnownMethod> | undefined;

  constructor(actor: ActorScope, assignment: Assignment, findFunction: FindFunction) {
    this.#info = actor.info;
    this.#findFunction = findFunction;
    this.scope = new OutsideCalls(actor, assignment);
  }

  /** The user's object; an empty one until it is made. */
  get value(): object {
    return this.#object ?? {};
  }

  /**
   * Makes the user's object.
   *
   * @throws the error of the constructor
   */
  construct(ActorClass: new (...args: unknown[]) => object, args: readonly unknown[]): void {
    this.#object = asTask(this.scope, () => new ActorClass(...args));
  }

  /** Tells code outside of calls, which may go on in a shared thread, that the actor has ended. */
  ended(cause: DeathCause): void {
    this.scope.end(cause);
  }

  method(name: string): KnownMethod | undefined {
    return this.#methods?.get(name) ?? this.#found(name);
  }

  /** The class here differs from the one that the caller knows, or a peer made the name up. */
  noMethod(name: string): MethodNotFoundError {
    const { className, methods } = this.#info;
    if (!methods.includes(name)) {
      return new MethodNotFoundError(className, name, methods, notMethodOf(this.value, name));
    }
    const own = [...methodsOf(prototypeOf(this.value)).keys()];
    return new MethodNotFoundError(className, name, own, "elsewhere");
  }

  /** Runs the shutdown hook. Never rejects. */
  async shutDown(): Promise<void> {
    try {
      const hook = methodOf(prototypeOf(this.value), shutdownHook);
      await asTask(this.scope, () => hook?.apply(this.value, []));
    } catch (error) {
      warn(`${this.#info.className}.${shutdownHook} threw: ${String(error)}`);
    }
  }

  #found(name: string): KnownMethod | undefined {
    if (this.#object === undefined || name === shutdownHook) return undefined;
    const run = this.#ofRay(name) ?? methodOf(prototypeOf(this.#object), name);
    if (run === undefined) return undefined;
    const method = { run, slow: true, plain: false, isAsync: tagOf(run) !== "Function" };
    (this.#methods ??= new Map()).set(name, method);
    return method;
  }

  #ofRay(name: string): Method | undefined {
    switch (name) {
      case "__ray_ready__":
        return () => true;
      case "__ray_terminate__":
        return () => currentTask()?.exitActor("it was ended by __ray_terminate__");
      case "__ray_call__":
        return async (task, ...args) => {
          const data = functionDataOf(task);
          if (data === undefined) {
            throw new TypeError(
              "__ray_call__ takes a remote function, then its arguments behind the actor's object",
            );
          }
          const run = await this.#findFunction(data.key);
          return run(this.value, ...args);
        };
      default:
        return undefined;
    }
  }
}

/** The scope of an actor's code outside of its calls. */
class OutsideCalls implements TaskScope {
  readonly actor: ActorScope;
  readonly assignment: Assignment;
  waitCount: number = 0;
  #controller: AbortController | undefined;
  #endCause: DeathCause | undefined;

  constructor(actor: ActorScope, assignment: Assignment) {
    this.actor = actor;
    this.assignment = assignment;
  }

  get taskId(): string {
    return `${this.actor.info.actorId}:create:${this.actor.incarnation}`;
  }

  get taskName(): string {
    return `${this.actor.info.className}.constructor`;
  }

  get functionName(): string {
    return this.taskName;
  }

  /** Aborted when the actor has ended. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    this.#abort();
    return this.#controller.signal;
  }

  end(cause: DeathCause): void {
    this.#endCause ??= cause;
    this.#abort();
  }

  /** No error is made where nobody has asked for the signal: many actors may end at once. */
  #abort(): void {
    if (this.#endCause === undefined || this.#controller?.signal.aborted !== false) return;
    this.#controller.abort(new ActorDiedError(this.actor.info, this.#endCause));
  }

  isCancelled(): boolean {
    return false;
  }

  waits(): () => void {
    return () => undefined;
  }

  /** Nobody called it. */
  whenCallerLost(): void {}

  takeInterruption(): undefined {
    return undefined;
  }

  exitActor(message: string): void {
    this.actor.exit({ kind: "exit-actor", message });
  }
}
