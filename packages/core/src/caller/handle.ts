/**
 * The proxy a user holds of an actor: `handle.method.remote(...args)`.
 *
 * Plain objects with one prototype per class, so that a call costs property lookups and no Proxy trap; a Proxy sits at the end of the prototype
 * chain only to name a method that does not exist. A handle knows method names, not the class, and so travels anywhere.
 */
import { inspect } from "node:util";
import type { Route } from "../protocol/messages.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { checkOptions, count, type RetryPolicy, retryPolicy } from "../shared/options.ts";
import { show } from "../shared/show.ts";
import type { ObjectRef } from "../store/object-ref.ts";
import type { ActorInfo, Directory } from "../rpc/directory.ts";

/** Per-call options, stronger than those of the actor. */
export interface CallOptions {
  /** How often this call is tried again when the actor's host dies; -1 without limit. */
  readonly maxTaskRetries?: number;
  /** Try again when the method throws: always, or for these error classes (or names of them). */
  readonly retryExceptions?: RetryPolicy;
}

/** Sends a call; the runtime implements it. */
export interface HandleCaller {
  readonly directory: Directory;
  callActor(
    info: ActorInfo,
    route: Route,
    args: readonly unknown[],
    options: CallOptions | undefined,
  ): ObjectRef;
}

/** How a method looks on a handle, without its types. */
export interface UntypedMethod {
  remote(...args: unknown[]): ObjectRef;
  options(options: CallOptions): { remote(...args: unknown[]): ObjectRef };
}

/** The actor behind a handle, and the runtime that it belongs to. */
export interface Inside {
  readonly info: ActorInfo;
  readonly caller: HandleCaller;
}

const insides: WeakMap<object, Inside> = new WeakMap();

export function isHandle(value: object): boolean {
  return insides.has(value);
}

/** @throws InvalidOptionError for anything but a handle */
export function insideOf(handle: unknown): Inside {
  const inside = typeof handle === "object" && handle !== null ? insides.get(handle) : undefined;
  if (inside === undefined) {
    throw new InvalidOptionError("actor", `an actor handle is expected, not ${show(handle)}`);
  }
  return inside;
}

export function makeHandle(info: ActorInfo, caller: HandleCaller): object {
  const handle = Object.create(prototypeFor(info)) as object;
  insides.set(handle, { info, caller });
  return handle;
}

/** One for each class that handles were made of, by its name and methods: as many as there are classes. */
const prototypes: Map<string, object> = new Map();

function prototypeFor(info: ActorInfo): object {
  const key = [info.className, ...info.methods].join();
  let prototype = prototypes.get(key);
  if (prototype === undefined) {
    prototype = makePrototype(info);
    prototypes.set(key, prototype);
  }
  return prototype;
}

function makePrototype({ className, methods }: ActorInfo): object {
  const text = function (this: object): string {
    return `ActorHandle(${className}, ${insides.get(this)?.info.actorId ?? "prototype"})`;
  };
  const prototype = Object.create(unknownMethods(className, methods)) as object;
  Object.defineProperties(prototype, {
    toString: { value: text, configurable: true },
    [inspect.custom]: { value: text },
  });
  for (const method of methods) {
    Object.defineProperty(prototype, method, {
      configurable: true,
      get(this: object): UntypedMethod | undefined {
        const inside = insides.get(this);
        if (inside === undefined) return undefined;
        // Made on first use and kept on the handle itself.
        const route = {
          target: inside.info.actorId,
          method,
          label: `${className}.${method}`,
        };
        const stub = makeMethod(inside.info, route, inside.caller);
        Object.defineProperty(this, method, { value: stub, enumerable: false });
        return stub;
      },
    });
  }
  return prototype;
}

function makeMethod(info: ActorInfo, route: Route, caller: HandleCaller): UntypedMethod {
  const direct = (): never => {
    throw new TypeError(
      `${info.className}.${route.method} is remote: call ${route.method}.remote(...) in place of ${route.method}(...)`,
    );
  };
  return Object.assign(direct, {
    remote: (...args: unknown[]): ObjectRef => caller.callActor(info, route, args, undefined),
    options: (options: CallOptions) => {
      checkOptions(`${info.className}.${route.method}`, options, {
        maxTaskRetries: count(-1),
        retryExceptions: retryPolicy,
      });
      return {
        remote: (...args: unknown[]): ObjectRef => caller.callActor(info, route, args, options),
      };
    },
  });
}

/** What others ask of any object they are given: promises, JSON, matchers of test runners. They must hear "no", not an error. */
const probed: ReadonlySet<string> = new Set([
  "then",
  "toJSON",
  "constructor",
  "valueOf",
  "inspect",
  "nodeType",
  "tagName",
  "href",
  "asymmetricMatch",
  "$$typeof",
]);

function unknownMethods(className: string, methods: readonly string[]): object {
  return new Proxy(Object.create(null) as object, {
    get(_target, key): undefined {
      if (typeof key === "symbol" || probed.has(key) || key.startsWith("@@")) return undefined;
      throw new TypeError(
        `${className} has no method "${key}"; it has: ${methods.join(", ") || "none"} (fields are not methods)`,
      );
    },
    has: () => false,
  });
}
