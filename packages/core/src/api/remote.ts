/**
 * `remote`: makes an actor class of a class, or a task of a function, identified by the place of
 * this call in its module.
 */
import { isAbsolute } from "node:path";
import { pathToFileURL } from "node:url";
import { noteSame, noteTarget, type Registration, registerRemote } from "../host/code/registry.ts";
import { taskTarget } from "../host/calls/task-runner.ts";
import { assignmentOf, type Demand } from "../rpc/demand.ts";
import type {
  ActorInfo,
  ActorSpec,
  Isolation,
  MethodOptions,
  ExportName,
  RestartIntensity,
  RuntimeEnv,
  TaskIsolation,
  WorkerRequest,
} from "../rpc/directory.ts";
import type { CallPlan } from "../caller/calls/call.ts";
import { currentTask } from "../caller/waits/task-scope.ts";
import { noteFunctionRef, setFunctionMaker } from "../caller/calls/function-ref.ts";
import type { CallOptions } from "../caller/handle.ts";
import { driversOf } from "../shared/code-roots.ts";
import { ActorAlreadyExistsError, InvalidOptionError } from "../shared/errors.ts";
import { newId } from "../shared/ids.ts";
import {
  builtInMethods,
  gettersOf,
  type Method,
  methodsOf,
  shutdownHook,
} from "../shared/methods.ts";
import {
  type Check,
  errorNames,
  checkOptions,
  count,
  oneOf,
  returnCount,
  flag,
  isolationKind,
  taskIsolation,
  retryPolicy,
  nameText,
  text,
} from "../shared/options.ts";
import { environment } from "../shared/runtime-env.ts";
import { show } from "../shared/text/show.ts";
import {
  actorDemand,
  inCurrentGroup,
  schedulingChecks,
  type SchedulingOptions,
  taskDemand,
} from "./scheduling/scheduling.ts";
import { useCaller } from "./session.ts";
import type {
  ActorHandle,
  Constructor,
  FunctionHandle,
  RemoteArguments,
  ShapedResult,
} from "./types.ts";
import { withWholePath } from "./working-dir.ts";

/** Options of a method for all of its calls; the options of a call override them. */
export type CallOptionsOfMethod = Omit<CallOptions, "name">;

/** Options of an actor class. */
export interface ActorOptions extends SchedulingOptions {
  /** The name by which `getActor` finds it; unique in its namespace. Default: none. */
  readonly name?: string;
  /** The namespace of its name. Default: the namespace of the session. */
  readonly namespace?: string;
  /** Whether to return the existing actor of that name, if there is one. Default false. */
  readonly getIfExists?: boolean;
  /** How often it restarts after it lost its host; -1 without limit. Default 0. */
  readonly maxRestarts?: number;
  /**
   * The most restarts within a time, whatever `maxRestarts` says; one more ends the actor for good.
   * Default: no such limit.
   */
  readonly restartIntensity?: RestartIntensity;
  /**
   * "detached" lives until it is killed or the session ends. Default "non_detached": it ends when
   * no handle of it is left, or its creator dies. Handles of `getActor` do not count.
   */
  readonly lifetime?: "detached" | "non_detached";
  /** How often a call is retried after such a loss; -1 without limit. Default 0: at most once. */
  readonly maxTaskRetries?: number;
  /**
   * Whether a call is retried when its method throws: always, or for these error classes (or names
   * of them). Default false.
   */
  readonly retryExceptions?: CallOptions["retryExceptions"];
  /**
   * The most calls outside of groups that run at a time. Default: 1000 if the class has an async
   * method, else 1.
   */
  readonly maxConcurrency?: number;
  /** Groups of calls with a limit and an order of their own, by name: `{ io: 2, compute: 4 }`. */
  readonly concurrencyGroups?: Readonly<Record<string, number>>;
  /** Options of methods, by name. */
  readonly methods?: Readonly<Record<string, CallOptionsOfMethod>>;
  /**
   * Whether later calls may pass a call whose argument is not ready. Default: true for async actors
   * and those with a maxConcurrency above 1, else false.
   */
  readonly allowOutOfOrderExecution?: boolean;
  /**
   * The most unanswered calls of one caller; one more throws PendingCallsLimitExceeded. Default -1:
   * no limit.
   */
  readonly maxPendingCalls?: number;
  /**
   * The isolation of the actor: a "thread" of its own; a "process" of its own, for native code,
   * hard limits and code that may crash; or "shared": a thread with other actors, for many that
   * mostly wait. Default: the `isolation` of `init`.
   */
  readonly isolation?: Isolation;
  /** Settings of its thread or process. Default: those of `init`. */
  readonly runtimeEnv?: RuntimeEnv;
}

/**
 * The module that a worker imports to find a class or function, and the export's name: the class or
 * function itself, or the result of `remote`. It is needed where the place of the `remote()` call
 * does not identify the remote: in a loop over external data, in a decorator, in a library that
 * calls it for others.
 */
export interface RemoteName {
  /** The module: its `import.meta.url`, or its path. */
  readonly module?: string | URL;
  /** The name of the export. */
  readonly exportName?: string;
}

/** Options of a task. */
export interface TaskOptions extends SchedulingOptions {
  /** A name for messages to people. Default: the function's name. */
  readonly name?: string;
  /** The isolation of the task: a "thread" or a "process". Default: the `isolation` of `init`. */
  readonly isolation?: TaskIsolation;
  /** Settings of its worker; tasks with equal settings share workers. */
  readonly runtimeEnv?: RuntimeEnv;
  /** How often it is retried when its worker dies. Default 3. */
  readonly maxRetries?: number;
  /**
   * Whether it is retried when its function throws: always, or for these error classes (or names of
   * them). Default false.
   */
  readonly retryExceptions?: CallOptions["retryExceptions"];
  /** The number of values that the function returns, or "streaming", as for a method. */
  readonly numReturns?: CallOptions["numReturns"];
  /** A generator pauses while this many of its items are not taken. Default: no limit. */
  readonly generatorBackpressureNumObjects?: number;
  /** Whether a generator runs to its end when nobody takes its items any more. Default false. */
  readonly detached?: CallOptions["detached"];
}

/** The `methods` of a class's options. */
type MethodsOf<Options> = Options extends { readonly methods: infer Methods } ? Methods : unknown;

/** A class whose instances are actors. */
export interface ActorClass<Class extends Constructor, Methods = unknown> {
  /**
   * Creates an actor and returns at once; an error in its constructor rejects its calls with
   * ActorDiedError.
   *
   * @throws NotEncodableError, ActorAlreadyExistsError
   */
  remote(
    ...args: RemoteArguments<ConstructorParameters<Class>>
  ): ActorHandle<InstanceType<Class>, Methods>;
  /**
   * Returns the class with other options; `concurrencyGroups` and `methods` belong to the class and
   * stay unchanged.
   *
   * @throws InvalidOptionError
   */
  options(options: Omit<ActorOptions, "concurrencyGroups" | "methods">): ActorClass<Class, Methods>;
}

/** A function whose calls are tasks. */
export interface RemoteFunction<
  Task extends (...args: never[]) => unknown,
  Own = unknown,
> extends FunctionHandle<Task> {
  /**
   * Starts the task and returns at once.
   *
   * @throws NotEncodableError when an argument cannot travel, naming its path
   */
  remote(...args: RemoteArguments<Parameters<Task>>): ShapedResult<Task, Own>;
  /**
   * Returns the task with other options; these override the current ones.
   *
   * @throws InvalidOptionError
   */
  options<const More extends TaskOptions>(
    options: More,
  ): RemoteFunction<Task, "numReturns" extends keyof More ? More : Own>;
}

/**
 * Makes an actor class of a class, or a task of a function. Call it at the top level of a module,
 * above any driver code: workers import the module to find the class.
 *
 * @throws InvalidOptionError for a bad option; RemoteNotRegisteredError when the call stands in no
 * file
 */
export function remote<Class extends Constructor, const Options extends ActorOptions>(
  target: Class,
  options?: Options & RemoteName,
): ActorClass<Class, MethodsOf<Options>>;
export function remote<
  Task extends (...args: never[]) => unknown,
  const Options extends TaskOptions,
>(target: Task, options?: Options & RemoteName): RemoteFunction<Task, Options>;
export function remote(
  target: unknown,
  given: ActorOptions & TaskOptions & RemoteName = {},
): unknown {
  if (typeof target !== "function") {
    throw new InvalidOptionError(
      "target",
      `remote takes a class or a function, not ${show(target)}`,
    );
  }
  const name = target.name === "" ? "anonymous" : target.name;
  const { module, exportName, ...rest } = given;
  // A value that is no object of options is refused with them.
  const options = typeof given === "object" ? rest : given;
  const named = exportNameOf(name, { module, exportName });
  const registration = registerRemote(target, name, 1, named);
  if (isClass(target)) {
    return actorClass(target as Constructor, registration, checkedActor(name, options));
  }
  const made = remoteFunction(registration, isGenerator(target), checkedTask(name, options));
  noteTarget(made, target);
  return made;
}

function exportNameOf(
  name: string,
  { module, exportName }: { [Part in keyof RemoteName]: RemoteName[Part] | undefined },
): ExportName | undefined {
  if (module === undefined && exportName === undefined) return undefined;
  if (typeof exportName !== "string" || exportName === "") {
    throw new InvalidOptionError(
      "exportName",
      `remote ${name}: exportName must be the name of an export, not ${show(exportName)}`,
    );
  }
  const given = module instanceof URL ? module.href : module;
  const url =
    typeof given === "string" && isAbsolute(given) ? pathToFileURL(given).href : String(given);
  if (!url.startsWith("file:")) {
    throw new InvalidOptionError(
      "module",
      `remote ${name}: module must be the import.meta.url of a file, or its path, not ${show(module)}`,
    );
  }
  return { moduleUrl: driversOf(url), exportName };
}

function actorClass<Class extends Constructor>(
  target: Class,
  registration: Registration,
  options: ActorOptions,
): ActorClass<Class> {
  const methods = methodsOf(target.prototype as object);
  const getters = gettersOf(target.prototype as object);
  checkMethods(registration.name, methods, options);
  const demand = actorDemand(`actor class ${registration.name}`, options);
  const made: ActorClass<Class> = {
    options: (more) => {
      const checked = checkedActor(registration.name, more, true);
      for (const name of ["concurrencyGroups", "methods"]) {
        if (!(name in more)) continue;
        throw new InvalidOptionError(
          name,
          `actor class ${registration.name}: ${name} can only be given to remote(), not to options()`,
        );
      }
      const all = checkedActor(registration.name, { ...options, ...checked });
      return actorClass(target, registration, all);
    },
    remote: (...args) =>
      create({ registration, methods, getters, options, demand }, args) as ActorHandle<
        InstanceType<Class>
      >,
  };
  noteTarget(made, target);
  return made;
}

/** The members on the prototypes of a class. */
interface Members {
  readonly methods: ReadonlyMap<string, Method>;
  readonly getters: readonly string[];
}

/** An actor class with its options, as `remote` or `options` gave it. */
interface ActorStub extends Members {
  readonly registration: Registration;
  readonly options: ActorOptions;
  readonly demand: Demand;
}

function create(stub: ActorStub, args: readonly unknown[]): object {
  const { registration, options, demand } = stub;
  const caller = useCaller();
  const info = infoOf(registration.name, stub, options, caller.id);
  const spec: ActorSpec = {
    info,
    key: registration.key(),
    name: options.name,
    namespace: options.namespace,
    getIfExists: options.getIfExists ?? false,
    creator: currentTask()?.actor?.info.actorId,
    maxRestarts: options.maxRestarts ?? 0,
    restartIntensity: options.restartIntensity,
    demand: inCurrentGroup(`actor class ${registration.name}`, options, demand),
    isolation: options.isolation,
    runtimeEnv: options.runtimeEnv,
  };
  const { directory } = caller;
  // The arguments are encoded now, whatever the directory answers later.
  const pending = Promise.withResolvers<boolean>();
  const whenNew = (then: () => void): void => void pending.promise.then((isNew) => isNew && then());
  caller.starts.prepare(info.actorId, args, {
    start: (start, begun) =>
      whenNew(() => {
        directory.start(info.actorId, start);
        begun();
      }),
    fail: (cause) => whenNew(() => directory.abandon(info.actorId, cause)),
  });
  const answer = directory.register(spec);
  if (answer instanceof Promise) {
    const registered = answer.then((told) => {
      pending.resolve(told.state === "new");
      if (told.state === "taken") {
        throw new ActorAlreadyExistsError(told.name, told.namespace);
      }
    });
    // It may turn out to be another name of an existing actor, which ends with its handles.
    return caller.createHandle(info, registered, !info.isDetached || spec.getIfExists);
  }
  pending.resolve(answer.state === "new");
  if (answer.state === "taken") throw new ActorAlreadyExistsError(answer.name, answer.namespace);
  if (answer.state === "existing") return caller.handles.weak(answer.info);
  return caller.createHandle(info);
}

function infoOf(
  className: string,
  { methods, getters }: Members,
  options: ActorOptions,
  owner: string,
): ActorInfo {
  const maxConcurrency = concurrencyOf(methods, options);
  const names = [...methods.keys()].filter((name) => name !== shutdownHook);
  const methodOptions: Record<string, MethodOptions> = {};
  for (const name of names) {
    const { retryExceptions, ...rest } = options.methods?.[name] ?? {};
    const known: MethodOptions = {
      ...(isGenerator(methods.get(name)) ? { numReturns: "streaming" } : {}),
      ...rest,
      ...(retryExceptions === undefined ? {} : { retryExceptions: errorNames(retryExceptions) }),
    };
    if (Object.keys(known).length > 0) methodOptions[name] = known;
  }
  return {
    actorId: newId("actor"),
    className,
    methods: names,
    ...(getters.length === 0 ? {} : { getters }),
    methodOptions,
    maxConcurrency,
    concurrencyGroups: options.concurrencyGroups ?? {},
    isOrdered: !(options.allowOutOfOrderExecution ?? maxConcurrency > 1),
    maxPendingCalls: options.maxPendingCalls ?? -1,
    owner,
    isDetached: options.lifetime === "detached",
    maxTaskRetries: options.maxTaskRetries ?? 0,
    retryExceptions: errorNames(options.retryExceptions ?? false),
  };
}

function remoteFunction(
  registration: Registration,
  isStream: boolean,
  options: TaskOptions,
): RemoteFunction<(...args: never[]) => unknown, never> {
  const { name = registration.name, generatorBackpressureNumObjects: ahead } = options;
  const returns = options.numReturns ?? (isStream ? "streaming" : 1);
  const shape = {
    ...(returns === 1 ? {} : { returns }),
    ...(ahead === undefined ? {} : { ahead }),
    ...(name === registration.name ? {} : { name }),
  };
  const where = `task ${registration.name}`;
  const demand = taskDemand(where, options);
  const planFor = (chosen: Demand): CallPlan => ({
    route: {
      target: taskTarget,
      // It tells the worker which function to run, and with which resources.
      method: JSON.stringify({ ...registration.key(), assignment: assignmentOf(chosen) }),
      label: name,
      ...(Object.keys(shape).length === 0 ? {} : { shape }),
    },
    maxRetries: options.maxRetries ?? 3,
    retryExceptions: errorNames(options.retryExceptions ?? false),
    worker: workerFor(chosen),
    ...(options.detached === true ? { isDetached: true } : {}),
  });
  /** Made by the first call, when the key is complete. */
  let plan: CallPlan | undefined;
  const { isolation, runtimeEnv } = options;
  const { moduleUrl } = registration;
  // Permitted files depend on the module, so other modules cannot share the worker.
  const permitted = runtimeEnv?.permissions === undefined ? undefined : moduleUrl;
  const kind = JSON.stringify([isolation, runtimeEnv, permitted]);
  const workerFor = (chosen: Demand): WorkerRequest => ({
    key: kind + chosen.key,
    demand: chosen,
    isolation,
    runtimeEnv,
    moduleUrl,
    kind,
  });
  /**
   * Plans for placement groups that capture their tasks' tasks. They are kept, because a route is
   * named once.
   */
  const captured = new Map<string, CallPlan>();
  const made: RemoteFunction<(...args: never[]) => unknown, never> = {
    options: (more) => {
      const checked = checkedTask(registration.name, more);
      const other = remoteFunction(registration, isStream, { ...options, ...checked });
      noteSame(other, made);
      return other;
    },
    remote: (...args) => {
      const caller = useCaller();
      const here = inCurrentGroup(where, options, demand);
      if (here === demand) {
        return caller.calls.callTask((plan ??= planFor(demand)), args) as never;
      }
      const groupPlan = captured.get(here.key) ?? planFor(here);
      captured.set(here.key, groupPlan);
      return caller.calls.callTask(groupPlan, args) as never;
    },
  };
  const { retryExceptions, ...rest } = options;
  noteFunctionRef(made, {
    get key() {
      return registration.key();
    },
    isGenerator: isStream,
    // Classes of errors stay here; their names travel.
    options:
      retryExceptions === undefined
        ? rest
        : { ...rest, retryExceptions: errorNames(retryExceptions) },
  });
  return made;
}

setFunctionMaker(({ key, isGenerator: isStream, options }) => {
  const { name, moduleUrl } = key;
  return remoteFunction({ name, moduleUrl, key: () => key }, isStream, options);
});

/** Returns the concurrency; a class with an async method is an async actor. */
function concurrencyOf(
  methods: ReadonlyMap<string, Method>,
  { maxConcurrency }: ActorOptions,
): number {
  const isAsync = [...methods.values()].some((method) => tagOf(method).startsWith("Async"));
  return maxConcurrency ?? (isAsync ? 1000 : 1);
}

/**
 * Refuses method names that mean something else on a handle: it must not look like a promise, and
 * the runtime's own methods have theirs.
 */
function checkMethods(
  className: string,
  methods: ReadonlyMap<string, Method>,
  { methods: options = {}, concurrencyGroups = {}, ...actor }: ActorOptions,
): void {
  const concurrency = concurrencyOf(methods, actor);
  if (actor.allowOutOfOrderExecution === false && concurrency > 1) {
    throw new InvalidOptionError(
      "allowOutOfOrderExecution",
      `actor class ${className}: up to ${concurrency} calls run at the same time, in no order; allowOutOfOrderExecution cannot be false`,
    );
  }
  for (const name of methods.keys()) {
    const isTaken = name === "then" || builtInMethods.includes(name);
    if (!isTaken && (!name.startsWith("__ray_") || name === shutdownHook)) continue;
    throw new InvalidOptionError(
      name,
      `actor class ${className}: a method cannot be called ${name}, that name is reserved`,
    );
  }
  for (const [name, option] of Object.entries(options)) {
    if (!methods.has(name)) {
      throw new InvalidOptionError(
        `methods.${name}`,
        `actor class ${className} has no method "${name}"; it has: ${[...methods.keys()].join(", ")}`,
      );
    }
    const group = option.concurrencyGroup;
    if (group !== undefined && !Object.hasOwn(concurrencyGroups, group)) {
      throw new InvalidOptionError(
        `methods.${name}.concurrencyGroup`,
        `actor class ${className}: method ${name} is in the concurrency group "${group}"; concurrencyGroups has: ${Object.keys(concurrencyGroups).join(", ") || "none"}`,
      );
    }
  }
}

const methodChecks = {
  maxTaskRetries: count(-1),
  retryExceptions: retryPolicy,
  numReturns: returnCount,
  concurrencyGroup: nameText,
  generatorBackpressureNumObjects: count(1),
  detached: flag,
};

/** Checks every value of a record. */
function recordOf(check: (name: string, value: unknown) => string | undefined): Check {
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      return "must be an object";
    for (const [name, one] of Object.entries(value)) {
      const problem = check(name, one);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };
}

const pendingLimit: Check = (value) =>
  value === -1 || count(1)(value) === undefined
    ? undefined
    : "must be -1 or a whole number of at least 1";

const groupSizes: Check = recordOf((name, size) =>
  count(1)(size) === undefined ? undefined : `.${name} must be greater than 0`,
);

function checkedActor(name: string, options: ActorOptions, partial = false): ActorOptions {
  checkOptions(`actor class ${name}`, options, {
    name: nameText,
    namespace: text,
    getIfExists: flag,
    maxRestarts: count(-1),
    restartIntensity: (value) => {
      checkOptions(`actor class ${name}: restartIntensity`, value as RestartIntensity, {
        restarts: count(0),
        withinMs: count(1),
      });
      const { restarts, withinMs } = value as Partial<RestartIntensity>;
      return restarts === undefined || withinMs === undefined
        ? "needs restarts and withinMs"
        : undefined;
    },
    lifetime: oneOf("detached", "non_detached"),
    maxTaskRetries: count(-1),
    retryExceptions: retryPolicy,
    maxConcurrency: count(1),
    ...schedulingChecks,
    concurrencyGroups: groupSizes,
    methods: recordOf((method, given) => {
      checkOptions(
        `actor class ${name}: methods.${method}`,
        given as CallOptionsOfMethod,
        methodChecks,
      );
      return undefined;
    }),
    allowOutOfOrderExecution: flag,
    isolation: isolationKind,
    maxPendingCalls: pendingLimit,
    runtimeEnv: environment,
  });
  if (!partial && options.isolation === "shared" && options.runtimeEnv !== undefined) {
    throw new InvalidOptionError(
      "runtimeEnv",
      `actor class ${name}: runtimeEnv needs a host of its own, and isolation "shared" gives none; use "thread" or "process"`,
    );
  }
  if (!partial && options.getIfExists === true && options.name === undefined) {
    throw new InvalidOptionError("getIfExists", `actor class ${name}: getIfExists needs a name`);
  }
  return settled(`actor class ${name}`, options);
}

function checkedTask(name: string, options: TaskOptions): TaskOptions {
  checkOptions(`task ${name}`, options, {
    name: nameText,
    ...schedulingChecks,
    isolation: taskIsolation,
    runtimeEnv: environment,
    maxRetries: count(-1),
    retryExceptions: retryPolicy,
    numReturns: returnCount,
    generatorBackpressureNumObjects: count(1),
    detached: flag,
  });
  return settled(`task ${name}`, options);
}

function settled<Options extends ActorOptions | TaskOptions>(
  where: string,
  options: Options,
): Options {
  const { runtimeEnv } = options;
  return runtimeEnv === undefined
    ? options
    : { ...options, runtimeEnv: withWholePath(where, runtimeEnv) };
}

function isClass(target: object): boolean {
  // The prototype property of a class cannot be written; that of a function can, and arrows have
  // none.
  return Object.getOwnPropertyDescriptor(target, "prototype")?.writable === false;
}

function tagOf(method: unknown): string {
  return Object.prototype.toString.call(method).slice("[object ".length, -1);
}

function isGenerator(method: unknown): boolean {
  return tagOf(method).endsWith("GeneratorFunction");
}
