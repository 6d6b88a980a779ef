/**
 * The user's object of an actor, and its methods: those of its class, and Ray's. Only public
 * methods can be called: not fields, not the constructor.
 */
import { functionDataOf } from "../../../caller/calls/function-ref.ts";
import {
  type ActorScope,
  asTask,
  currentTask,
  type TaskScope,
} from "../../../caller/waits/task-scope.ts";
import type { Assignment } from "../../../rpc/resource-demand.ts";
import type { ActorInfo } from "../../../rpc/directory.ts";
import type { RemoteKey } from "../../../rpc/remote-key.ts";
import { MethodNotFoundError } from "../../../shared/errors.ts";
import {
  type Method,
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
  readonly scope: TaskScope;
  readonly #info: ActorInfo;
  readonly #findFunction: FindFunction;
  #object: object = {};
  #methods: ReadonlyMap<string, KnownMethod> = new Map();
  #hook: Method | undefined;

  constructor(actor: ActorScope, assignment: Assignment, findFunction: FindFunction) {
    const { info, incarnation } = actor;
    this.#info = info;
    this.#findFunction = findFunction;
    const name = `${info.className}.constructor`;
    this.scope = {
      taskId: `${info.actorId}:create:${incarnation}`,
      taskName: name,
      functionName: name,
      actor,
      assignment,
      signal: new AbortController().signal,
      isCancelled: () => false,
      waits: () => () => undefined,
      takeInterruption: () => undefined,
      exitActor: (message) => actor.exit({ kind: "exit-actor", message }),
    };
  }

  /** The user's object; an empty one until it is made. */
  get value(): object {
    return this.#object;
  }

  /**
   * Makes the user's object.
   *
   * @throws the error of the constructor
   */
  construct(ActorClass: new (...args: unknown[]) => object, args: readonly unknown[]): void {
    this.#object = asTask(this.scope, () => new ActorClass(...args));
    const methods = methodsOf(prototypeOf(this.#object));
    this.#hook = methods.get(shutdownHook);
    methods.delete(shutdownHook);
    this.#methods = new Map(
      [...methods, ...this.#builtIns()].map(([name, run]) => [
        name,
        { run, slow: true, plain: false, isAsync: tagOf(run) !== "Function" },
      ]),
    );
  }

  method(name: string): KnownMethod | undefined {
    return this.#methods.get(name);
  }

  /** The class here differs from the one that the caller knows, or a peer made the name up. */
  noMethod(name: string): MethodNotFoundError {
    const { className, methods } = this.#info;
    return new MethodNotFoundError(className, name, methods, notMethodOf(this.#object, name));
  }

  /** Runs the shutdown hook. Never rejects. */
  async shutDown(): Promise<void> {
    try {
      await asTask(this.scope, () => this.#hook?.apply(this.#object, []));
    } catch (error) {
      warn(`${this.#info.className}.${shutdownHook} threw: ${String(error)}`);
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
          const run = await this.#findFunction(data.key);
          return run(this.#object, ...args);
        },
      ],
    ];
  }
}
