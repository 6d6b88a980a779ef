/**
 * `remote`: makes a class into an actor class, or a function into a task, by the place of this very call in its module.
 */
import { registerRemote } from "../host/registry.ts";
import { taskTarget } from "../host/task-runner.ts";
import type { Demand } from "../rpc/demand.ts";
import type { ActorInfo, ActorSpec, RemoteKey, ResourceLimits } from "../rpc/directory.ts";
import type { CallOptions } from "../caller/handle.ts";
import { ActorAlreadyExistsError, InvalidOptionError } from "../shared/errors.ts";
import { newId } from "../shared/ids.ts";
import { methodsOf } from "../shared/methods.ts";
import {
  errorNames,
  checkOptions,
  count,
  environment,
  flag,
  retryPolicy,
  text,
} from "../shared/options.ts";
import { show } from "../shared/show.ts";
import { actorDemand, schedulingChecks, type SchedulingOptions, taskDemand } from "./scheduling.ts";
import { useCaller } from "./session.ts";
import type { ActorHandle, Constructor, RemoteArguments, ResultRef } from "./types.ts";

/** Settings of the thread that an actor gets for itself. */
export interface RuntimeEnv {
  /** Added to the environment of the process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Limits of its heap; reaching one ends the actor with cause "out-of-memory". */
  readonly resourceLimits?: ResourceLimits;
}

export interface ActorOptions extends SchedulingOptions {
  /** Found by `getActor`; unique in its namespace. */
  readonly name?: string;
  readonly namespace?: string;
  /** With a name: give the actor of that name if there is one. */
  readonly getIfExists?: boolean;
  /** How often it is started again after it lost its host; -1 without limit. Default 0. */
  readonly maxRestarts?: number;
  /** How often a call is tried again after such a loss; -1 without limit. Default 0: at most once. */
  readonly maxTaskRetries?: number;
  readonly retryExceptions?: CallOptions["retryExceptions"];
  /** Calls that may run at the same time. Default: 1000 if the class has an async method, else 1. */
  readonly maxConcurrency?: number;
  readonly runtimeEnv?: RuntimeEnv;
}

export interface TaskOptions extends SchedulingOptions {
  /** A name for messages to people. Default: the function's. */
  readonly name?: string;
  /** How often it is tried again when its worker dies. Default 3. */
  readonly maxRetries?: number;
  readonly retryExceptions?: CallOptions["retryExceptions"];
}

export interface ActorClass<Class extends Constructor> {
  /**
   * Creates an actor and returns at once; what goes wrong in its constructor rejects its calls with ActorDiedError.
   * @throws NotEncodableError, ActorAlreadyExistsError
   */
  remote(...args: RemoteArguments<ConstructorParameters<Class>>): ActorHandle<InstanceType<Class>>;
  options(options: ActorOptions): ActorClass<Class>;
}

export interface RemoteFunction<Task extends (...args: never[]) => unknown> {
  /** @throws NotEncodableError when an argument cannot travel, naming its path */
  remote(...args: RemoteArguments<Parameters<Task>>): ResultRef<Task>;
  options(options: TaskOptions): RemoteFunction<Task>;
}

/** Call it at the top level of a module, above any driver code: workers import the module to find the class. */
export function remote<Class extends Constructor>(
  target: Class,
  options?: ActorOptions,
): ActorClass<Class>;
export function remote<Task extends (...args: never[]) => unknown>(
  target: Task,
  options?: TaskOptions,
): RemoteFunction<Task>;
export function remote(target: unknown, options: ActorOptions & TaskOptions = {}): unknown {
  if (typeof target !== "function") {
    throw new InvalidOptionError(
      "target",
      `remote takes a class or a function, not ${show(target)}`,
    );
  }
  const key = registerRemote(target, target.name === "" ? "anonymous" : target.name, 1);
  return isClass(target)
    ? actorClass(target as Constructor, key, checkedActor(key.name, options))
    : remoteFunction(key, checkedTask(key.name, options));
}

function actorClass<Class extends Constructor>(
  target: Class,
  key: RemoteKey,
  options: ActorOptions,
): ActorClass<Class> {
  const methods = methodNames(target.prototype as object);
  const demand = actorDemand(`actor class ${key.name}`, options);
  return {
    options: (more) =>
      actorClass(
        target,
        key,
        checkedActor(key.name, { ...options, ...checkedActor(key.name, more, true) }),
      ),
    remote: (...args) =>
      create(key, methods, options, demand, args) as ActorHandle<InstanceType<Class>>,
  };
}

function create(
  key: RemoteKey,
  methods: { readonly names: readonly string[]; readonly isAsync: boolean },
  options: ActorOptions,
  demand: Demand,
  args: readonly unknown[],
): object {
  const caller = useCaller();
  const retry = options.retryExceptions ?? false;
  const info: ActorInfo = {
    actorId: newId("actor"),
    className: key.name,
    methods: methods.names,
    maxConcurrency: options.maxConcurrency ?? (methods.isAsync ? 1000 : 1),
    maxTaskRetries: options.maxTaskRetries ?? 0,
    retryExceptions: errorNames(retry),
  };
  const spec: ActorSpec = {
    info,
    key,
    name: options.name,
    namespace: options.namespace,
    getIfExists: options.getIfExists ?? false,
    maxRestarts: options.maxRestarts ?? 0,
    demand,
    resourceLimits: options.runtimeEnv?.resourceLimits,
    env: options.runtimeEnv?.env,
  };
  const { directory } = caller;
  // The arguments are taken as they are now, whatever the directory answers and when.
  const pending = Promise.withResolvers<boolean>();
  const whenNew = (then: () => void): void => void pending.promise.then((isNew) => isNew && then());
  caller.prepareStart(
    args,
    (start) => whenNew(() => directory.start(info.actorId, start)),
    (cause) => whenNew(() => directory.abandon(info.actorId, cause)),
  );
  const answer = directory.register(spec);
  if (answer instanceof Promise) {
    const registered = answer.then((registration) => {
      pending.resolve(registration.state === "new");
      if (registration.state === "taken") {
        throw new ActorAlreadyExistsError(registration.name, registration.namespace);
      }
    });
    return caller.createHandle(info, registered);
  }
  pending.resolve(answer.state === "new");
  if (answer.state === "taken") throw new ActorAlreadyExistsError(answer.name, answer.namespace);
  return caller.createHandle(answer.state === "existing" ? answer.info : info);
}

function remoteFunction(
  key: RemoteKey,
  options: TaskOptions,
): RemoteFunction<(...args: never[]) => unknown> {
  const demand = taskDemand(`task ${key.name}`, options);
  const route = { target: taskTarget, method: JSON.stringify(key) };
  return {
    options: (more) => remoteFunction(key, { ...options, ...checkedTask(key.name, more) }),
    remote: (...args) =>
      useCaller().callTask(route, options.name ?? key.name, args, {
        demand,
        maxRetries: options.maxRetries ?? 3,
        retryExceptions: errorNames(options.retryExceptions ?? false),
      }),
  };
}

function checkedActor(name: string, options: ActorOptions, partial = false): ActorOptions {
  checkOptions(`actor class ${name}`, options, {
    name: text,
    namespace: text,
    getIfExists: flag,
    maxRestarts: count(-1),
    maxTaskRetries: count(-1),
    retryExceptions: retryPolicy,
    maxConcurrency: count(1),
    ...schedulingChecks,
    runtimeEnv: environment,
  });
  if (!partial && options.getIfExists === true && options.name === undefined) {
    throw new InvalidOptionError("getIfExists", `actor class ${name}: getIfExists needs a name`);
  }
  return options;
}

function checkedTask(name: string, options: TaskOptions): TaskOptions {
  checkOptions(`task ${name}`, options, {
    name: text,
    ...schedulingChecks,
    maxRetries: count(-1),
    retryExceptions: retryPolicy,
  });
  return options;
}

function isClass(target: object): boolean {
  // The prototype property of a class cannot be written; that of a function can, and arrows have none.
  return Object.getOwnPropertyDescriptor(target, "prototype")?.writable === false;
}

function methodNames(prototype: object): {
  readonly names: readonly string[];
  readonly isAsync: boolean;
} {
  const methods = methodsOf(prototype);
  const tags = [...methods.values()].map((method) => Object.prototype.toString.call(method));
  return { names: [...methods.keys()], isAsync: tags.includes("[object AsyncFunction]") };
}
