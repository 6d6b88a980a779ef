/**
 * The proxy a user holds of an actor: `handle.method.remote(...args)`.
 *
 * Handles are plain objects with one prototype per class, so that a call costs property lookups and
 * no Proxy trap; a Proxy at the end of the prototype chain only names a method that does not exist.
 * A handle knows method names, not the class, and so travels anywhere.
 */
import { inspect } from "node:util";
import type { CallShape, Route } from "../protocol/message.ts";
import { InvalidOptionError, MethodNotFoundError } from "../shared/errors.ts";
import { builtInMethods } from "../shared/methods.ts";
import { checkOptions, errorNames, withoutUndefined } from "../shared/options.ts";
import { refuseJson } from "../shared/text/no-json.ts";
import { show } from "../shared/text/show.ts";
import type { ActorInfo, Directory, MethodOptions } from "../rpc/directory.ts";
import type { ObjectEntry } from "../store/object-entry.ts";
import { callChecks, type CallOptions } from "./call-options.ts";
import type { Hold } from "./calls/actor/unanswered-calls.ts";
import type { CallPlan } from "./calls/call.ts";
import type { Waiting } from "./waits/waiting-tasks.ts";

/** Sends a call; the runtime implements it. */
export interface HandleCaller {
  readonly directory: Directory;
  readonly waiting: Waiting;
  /** @throws SessionEndedError when its session has ended */
  checkAlive(): void;
  callActor(info: ActorInfo, plan: CallPlan, args: readonly unknown[], hold: Hold): unknown;
}

/** How a method looks on a handle, without its types. */
export interface UntypedMethod {
  remote(...args: unknown[]): unknown;
  options(options: CallOptions): { remote(...args: unknown[]): unknown };
}

/** The actor behind a handle, and the runtime that it belongs to. */
export interface Inside extends Hold {
  readonly info: ActorInfo;
  readonly caller: HandleCaller;
  /**
   * Counts the holders of the actor: an object of its creator, which travels with every handle as
   * any other ref does. Undefined for a weak handle.
   */
  readonly life: ObjectEntry | undefined;
}

const insides: WeakMap<object, Inside> = new WeakMap();

export function isHandle(value: object): boolean {
  return insides.has(value);
}

/** The object that counts the holders of an actor, if the reference is a handle that is counted. */
export function lifeOf(reference: object): ObjectEntry | undefined {
  return insides.get(reference)?.life;
}

/** @throws InvalidOptionError for anything but a handle */
export function insideOf(handle: unknown): Inside {
  const inside = typeof handle === "object" && handle !== null ? insides.get(handle) : undefined;
  if (inside === undefined) {
    throw new InvalidOptionError("actor", `an actor handle is expected, not ${show(handle)}`);
  }
  return inside;
}

/** @param life none for a handle that does not keep its actor alive */
export function makeHandle(
  info: ActorInfo,
  caller: HandleCaller,
  life: ObjectEntry | undefined,
): object {
  const handle: object = Object.create(prototypeFor(info));
  insides.set(handle, { info, caller, life, handle, isCounted: life !== undefined });
  return handle;
}

/** One prototype for each class that handles were made of, by its name and methods. */
const prototypes: Map<string, object> = new Map();

function prototypeFor(info: ActorInfo): object {
  const key = JSON.stringify([info.className, info.methods, info.getters, info.methodOptions]);
  let prototype = prototypes.get(key);
  if (prototype === undefined) {
    prototype = makePrototype(info);
    prototypes.set(key, prototype);
  }
  return prototype;
}

function makePrototype({ className, methods, getters = [] }: ActorInfo): object {
  const toText = function (this: object): string {
    return `ActorHandle(${className}, ${insides.get(this)?.info.actorId ?? "prototype"})`;
  };
  const ActorHandle = (): never => {
    throw new TypeError("handles come from Class.remote() and getActor");
  };
  const prototype: object = Object.create(unknownMethods(className, methods, getters));
  const valueOf = function (this: object): object {
    return this;
  };
  Object.defineProperties(prototype, {
    constructor: {
      value: noMethod(className, methods, "constructor", ActorHandle),
      configurable: true,
    },
    toString: { value: noMethod(className, methods, "toString", toText), configurable: true },
    valueOf: { value: noMethod(className, methods, "valueOf", valueOf), configurable: true },
    [inspect.custom]: { value: toText },
    [Symbol.asyncDispose]: {
      async value(this: object): Promise<void> {
        const { info, caller } = insideOf(this);
        await caller.waiting.during(caller.directory.kill(info, true));
      },
    },
  });
  refuseJson(prototype, `a handle of ${className} may be passed to calls; it`);
  for (const method of [...methods, ...builtInMethods]) {
    Object.defineProperty(prototype, method, {
      configurable: true,
      get(this: object): UntypedMethod | undefined {
        const inside = insides.get(this);
        if (inside === undefined) return undefined;
        // Made on first use and kept on the handle itself.
        const stub = makeMethod(inside, method);
        Object.defineProperty(this, method, { value: stub, enumerable: false });
        return stub;
      },
    });
  }
  return prototype;
}

const noOptions: MethodOptions = {};

function makeMethod(inside: Inside, method: string): UntypedMethod {
  const { info, caller } = inside;
  const direct = (): never => {
    const where = `${info.className}.${method}`;
    throw new TypeError(
      `${where} is remote: call ${method}.remote(...) in place of ${method}(...)`,
    );
  };
  const own = info.methodOptions[method] ?? noOptions;
  const plan = planOf(info, method, own, undefined);
  /** Calls with the same options go the same route, so that it is named once. */
  let plans: Map<string, CallPlan> | undefined;
  return Object.assign(direct, {
    remote: (...args: unknown[]): unknown => caller.callActor(info, plan, args, inside),
    options: (some: CallOptions) => {
      const where = `${info.className}.${method}`;
      const options = checkOptions(where, some, callChecks);
      const group = options.concurrencyGroup;
      if (group !== undefined && !Object.hasOwn(info.concurrencyGroups, group)) {
        throw new InvalidOptionError(
          "concurrencyGroup",
          `${where}: ${info.className} has no concurrency group "${group}"; it has: ${Object.keys(info.concurrencyGroups).join(", ") || "none"}`,
        );
      }
      const { name, retryExceptions, ...rest } = withoutUndefined(options);
      const more: MethodOptions =
        retryExceptions === undefined
          ? rest
          : { ...rest, retryExceptions: errorNames(retryExceptions) };
      const key = JSON.stringify(more);
      let special = plans?.get(key);
      if (special === undefined || name !== undefined) {
        special = planOf(info, method, { ...own, ...more }, name);
        if (name === undefined) (plans ??= new Map()).set(key, special);
      }
      const chosen = special;
      return { remote: (...args: unknown[]) => caller.callActor(info, chosen, args, inside) };
    },
  });
}

function planOf(
  info: ActorInfo,
  method: string,
  options: MethodOptions,
  name: string | undefined,
): CallPlan {
  const { concurrencyGroup, numReturns = 1, generatorBackpressureNumObjects: ahead } = options;
  const shape: CallShape = {
    ...(concurrencyGroup === undefined ? {} : { group: concurrencyGroup }),
    ...(numReturns === 1 ? {} : { returns: numReturns }),
    ...(ahead === undefined ? {} : { ahead }),
    ...(name === undefined ? {} : { name }),
  };
  const route: Route = {
    target: info.actorId,
    method,
    label: `${info.className}.${method}`,
    ...(Object.keys(shape).length === 0 ? {} : { shape }),
  };
  return {
    route,
    maxRetries: options.maxTaskRetries ?? info.maxTaskRetries,
    retryExceptions: options.retryExceptions ?? info.retryExceptions,
    ...(options.detached === true ? { isDetached: true } : {}),
  };
}

/**
 * Properties that tools look up on any object: promises, JSON, matchers of test runners. They must
 * find nothing, not an error.
 */
const probed: ReadonlySet<string> = new Set([
  "then",
  "inspect",
  "nodeType",
  "tagName",
  "href",
  "asymmetricMatch",
  "$$typeof",
]);

/**
 * A property that every object has, and no actor: it is there, and cannot be called as a method.
 */
function noMethod<Value extends object>(
  className: string,
  methods: readonly string[],
  name: string,
  value: Value,
): Value {
  const refuse = (): never => {
    throw new MethodNotFoundError(className, name, methods);
  };
  return Object.assign(value, { remote: refuse, options: refuse });
}

function unknownMethods(
  className: string,
  methods: readonly string[],
  getters: readonly string[],
): object {
  return new Proxy(Object.create(null) as object, {
    get(_target, key): undefined {
      if (typeof key === "symbol" || probed.has(key) || key.startsWith("@@")) return undefined;
      const kind = getters.includes(key) ? "getter" : undefined;
      throw new MethodNotFoundError(className, key, methods, kind);
    },
    set(_target, key): never {
      throw new TypeError(
        `a handle has no fields of its own: ${String(key)} cannot be set on that of ${className}, whose object is elsewhere. Call a method that sets it there`,
      );
    },
    has: () => false,
  });
}
