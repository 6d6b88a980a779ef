/** Actor classes: what `remote` makes of a class, and how they create actors. */
import { noteSame, received, type Registration } from "../../host/code/registry.ts";
import { isOnEngine } from "../../caller/current.ts";
import { type ClassData, noteRemote } from "../../caller/remote-value.ts";
import { currentTask } from "../../caller/waits/task-scope.ts";
import type { Demand } from "../../rpc/resource-demand.ts";
import type { ActorInfo, ActorSpec, MethodOptions } from "../../rpc/directory.ts";
import { ActorAlreadyExistsError, InvalidOptionError } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import {
  builtInMethods,
  type ClassMembers,
  isGenerator,
  shutdownHook,
} from "../../shared/methods.ts";
import { errorNames, withErrorNames, withoutUndefined } from "../../shared/options.ts";
import { actorDemand, inCurrentGroup } from "../scheduling/scheduling.ts";
import { useCaller } from "../session.ts";
import type { ActorHandle, Constructor, RemoteArguments } from "../handle-types.ts";
import { createDetached } from "./detached.ts";
import { checkedActor } from "./option-checks.ts";
import { actorDefaults, type ActorOptions, asyncConcurrency } from "./options.ts";

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

/** An actor class as `remote` returns it, without the types of its actors. */
interface MadeClass {
  readonly options: (more: ActorOptions) => MadeClass;
  readonly remote: (...args: readonly unknown[]) => object;
}

export function actorClass(
  members: ClassMembers,
  registration: Registration,
  options: ActorOptions,
): MadeClass {
  checkMethods(registration.name, members, options);
  const demand = actorDemand(`actor class ${registration.name}`, options);
  const facts = factsOf(registration.name, members, options);
  const made: MadeClass = {
    options: (more) => {
      const checked = checkedActor(registration.name, more, true);
      for (const name of ["concurrencyGroups", "methods"]) {
        if (!(name in checked)) continue;
        throw new InvalidOptionError(
          name,
          `actor class ${registration.name}: ${name} can only be given to remote(), not to options()`,
        );
      }
      const all = checkedActor(registration.name, { ...options, ...withoutUndefined(checked) });
      const other = actorClass(members, registration, all);
      noteSame(other, made);
      return other;
    },
    remote: (...args) => create({ registration, members, options, demand, facts }, args),
  };
  noteRemote(made, "class", () => {
    const { methods, ...rest } = withErrorNames(options);
    const named = Object.entries(methods ?? {}).map(([name, one]) => [name, withErrorNames(one)]);
    const written = methods === undefined ? rest : { ...rest, methods: Object.fromEntries(named) };
    return ["class", { key: registration.key(), members, options: written }];
  });
  return made;
}

/** The stub of a class that arrived in a value. */
export function receivedClass({ key, members, options }: ClassData): object {
  return actorClass(members, received(key), options);
}

/** An actor class with its options, as `remote` or `options` gave it. */
interface ActorStub {
  readonly registration: Registration;
  readonly members: ClassMembers;
  readonly options: ActorOptions;
  readonly demand: Demand;
  readonly facts: ClassFacts;
}

/** The facts that all actors of a class with the same options share. */
type ClassFacts = Omit<ActorInfo, "actorId" | "owner">;

function create(stub: ActorStub, args: readonly unknown[]): object {
  const { registration, options, demand } = stub;
  const caller = useCaller();
  if (options.lifetime === "detached" && isOnEngine()) {
    const maxConcurrency = concurrencyOf(stub.members, options);
    return createDetached({ ...stub, options: { ...options, maxConcurrency } }, args);
  }
  const info: ActorInfo = { actorId: newId("actor"), owner: caller.id, ...stub.facts };
  const creator = currentTask()?.actor;
  const spec: ActorSpec = {
    info,
    key: registration.key(),
    name: options.name,
    namespace: options.namespace,
    getIfExists: options.getIfExists ?? actorDefaults.getIfExists,
    creator: creator && { actorId: creator.info.actorId, incarnation: creator.incarnation },
    maxRestarts: options.maxRestarts ?? actorDefaults.maxRestarts,
    restartIntensity: options.restartIntensity,
    demand: inCurrentGroup(`actor class ${registration.name}`, options, demand),
    isolation: options.isolation,
    threadName: options.threadName,
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
    const registered = answer.then((outcome) => {
      pending.resolve(outcome.state === "new");
      if (outcome.state === "taken") {
        throw new ActorAlreadyExistsError(outcome.name, outcome.namespace);
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

function factsOf(className: string, members: ClassMembers, options: ActorOptions): ClassFacts {
  const { getters } = members;
  const maxConcurrency = concurrencyOf(members, options);
  const methods = members.methods.filter(([name]) => name !== shutdownHook);
  const methodOptions: Record<string, MethodOptions> = {};
  for (const [name, kind] of methods) {
    const known: MethodOptions = {
      ...(isGenerator(kind) ? { numReturns: "streaming" } : {}),
      ...withErrorNames(withoutUndefined(options.methods?.[name] ?? {})),
    };
    if (Object.keys(known).length > 0) methodOptions[name] = known;
  }
  return {
    className,
    methods: methods.map(([name]) => name),
    ...(getters.length === 0 ? {} : { getters }),
    methodOptions,
    maxConcurrency,
    concurrencyGroups: options.concurrencyGroups ?? {},
    isOrdered: !(options.allowOutOfOrderExecution ?? maxConcurrency > 1),
    maxPendingCalls: options.maxPendingCalls ?? actorDefaults.maxPendingCalls,
    isDetached: options.lifetime === "detached" || options.lifetime === "session",
    maxTaskRetries: options.maxTaskRetries ?? actorDefaults.maxTaskRetries,
    retryExceptions: errorNames(options.retryExceptions ?? actorDefaults.retryExceptions),
  };
}

/** Returns the concurrency; a class with an async method is an async actor. */
function concurrencyOf({ methods }: ClassMembers, { maxConcurrency }: ActorOptions): number {
  const isAsync = methods.some(([, kind]) => kind.startsWith("Async"));
  return maxConcurrency ?? (isAsync ? asyncConcurrency : 1);
}

/**
 * Refuses method names that mean something else on a handle: it must not look like a promise, and
 * the runtime's own methods have theirs.
 */
function checkMethods(
  className: string,
  members: ClassMembers,
  { methods: options = {}, concurrencyGroups = {}, ...actor }: ActorOptions,
): void {
  const concurrency = concurrencyOf(members, actor);
  const methods = members.methods.map(([name]) => name);
  if (actor.allowOutOfOrderExecution === false && concurrency > 1) {
    throw new InvalidOptionError(
      "allowOutOfOrderExecution",
      `actor class ${className}: up to ${concurrency} calls run at the same time, in no order; allowOutOfOrderExecution cannot be false`,
    );
  }
  for (const name of methods) {
    const isTaken = name === "then" || builtInMethods.includes(name);
    if (!isTaken && (!name.startsWith("__ray_") || name === shutdownHook)) continue;
    throw new InvalidOptionError(
      name,
      `actor class ${className}: a method cannot be called ${name}, that name is reserved`,
    );
  }
  for (const [name, option] of Object.entries(options)) {
    if (!methods.includes(name)) {
      throw new InvalidOptionError(
        `methods.${name}`,
        `actor class ${className} has no method "${name}"; it has: ${methods.join(", ")}`,
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
