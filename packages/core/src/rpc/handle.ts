/**
 * The proxy a user holds of an actor: `handle.method.remote(...args)`.
 *
 * Plain objects with one prototype per class, so that a call costs property lookups and no Proxy trap; a Proxy sits at the end of the prototype
 * chain only to name a method that does not exist. A handle knows method names, not the class, and so travels anywhere.
 */
import type { Route } from "../protocol/messages.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import type { ObjectRef } from "../store/object-ref.ts";
import type { ActorInfo } from "./directory.ts";

/** Per-call options, stronger than those of the actor. */
export interface CallOptions {
  /** How often this call is tried again when the actor's host dies; -1 without limit. */
  readonly maxTaskRetries?: number;
  /** Try again when the method throws: always, or for these error classes (or names of them). */
  readonly retryExceptions?: boolean | readonly (string | (new (...args: never[]) => Error))[];
}

/** Sends a call; the runtime implements it. */
export interface HandleCaller {
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

interface Inside {
  readonly info: ActorInfo;
  readonly caller: HandleCaller;
}

const insides: WeakMap<object, Inside> = new WeakMap();

export function isHandle(value: object): boolean {
  return insides.has(value);
}

/** @throws InvalidOptionError for anything but a handle */
export function infoOf(handle: unknown): ActorInfo {
  const inside = typeof handle === "object" && handle !== null ? insides.get(handle) : undefined;
  if (inside === undefined) {
    throw new InvalidOptionError("actor", `an actor handle is expected, not ${describe(handle)}`);
  }
  return inside.info;
}

export function makeHandle(info: ActorInfo, caller: HandleCaller): object {
  const handle = Object.create(unknownMethods(info)) as object;
  const prototype = Object.create(Object.getPrototypeOf(handle) as object) as object;
  for (const method of info.methods) {
    Object.defineProperty(prototype, method, {
      get(this: object): UntypedMethod {
        // Made on first use and kept on the handle itself.
        const stub = makeMethod(info, { target: info.actorId, method }, caller);
        Object.defineProperty(this, method, { value: stub, enumerable: false });
        return stub;
      },
    });
  }
  Object.setPrototypeOf(handle, prototype);
  insides.set(handle, { info, caller });
  return handle;
}

function makeMethod(info: ActorInfo, route: Route, caller: HandleCaller): UntypedMethod {
  const direct = (): never => {
    throw new TypeError(
      `${info.className}.${route.method} is remote: call ${route.method}.remote(...) in place of ${route.method}(...)`,
    );
  };
  return Object.assign(direct, {
    remote: (...args: unknown[]): ObjectRef => caller.callActor(info, route, args, undefined),
    options: (options: CallOptions) => ({
      remote: (...args: unknown[]): ObjectRef => caller.callActor(info, route, args, options),
    }),
  });
}

function unknownMethods(info: ActorInfo): object {
  return new Proxy(Object.create(null) as object, {
    get(_target, key): unknown {
      if (typeof key === "symbol") {
        return key === Symbol.toStringTag ? `ActorHandle(${info.className})` : undefined;
      }
      // What JavaScript itself asks of any object: await, JSON and printing.
      if (
        [
          "then",
          "toJSON",
          "constructor",
          "toString",
          "valueOf",
          "inspect",
          "nodeType",
          "asymmetricMatch",
          "$$typeof",
        ].includes(key)
      ) {
        return key === "toString"
          ? () => `ActorHandle(${info.className}, ${info.actorId})`
          : undefined;
      }
      throw new TypeError(
        `${info.className} has no method "${key}"; it has: ${info.methods.join(", ") || "none"}`,
      );
    },
    has: () => false,
  });
}

function describe(value: unknown): string {
  if (typeof value === "object" && value !== null)
    return `an instance of ${value.constructor?.name ?? "an unnamed class"}`;
  return `${typeof value} ${String(value)}`;
}
