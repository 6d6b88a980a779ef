/**
 * The runtime of this thread, which the API speaks to.
 *
 * The driver's is set by `init`, a host's by its entry point. Code that runs because a host imports
 * a module is driver code: it is recognised by its async context, however late it runs, and must
 * not get a runtime (see host/code/loader.ts).
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { threadSlot } from "../shared/thread-slot.ts";
import type { Caller } from "./caller.ts";

/** One import by a host. */
export interface Loading {
  readonly moduleUrl: string;
  /** Driver code was reached: what has registered by now is all there is. */
  readonly onDriverCode: () => void;
  /** The module ends the process: a usage error, or the end of a script. */
  readonly onExit: (code: number) => void;
  /** Whether code that it started may still run. */
  readonly isOver: () => boolean;
}

interface Current {
  caller: Caller | undefined;
  readonly loading: AsyncLocalStorage<Loading>;
  namespace: string;
  hasEngine: boolean;
}

const current: Current = threadSlot("current", () => ({
  caller: undefined,
  loading: new AsyncLocalStorage<Loading>(),
  namespace: "",
  hasEngine: false,
}));

export function currentCaller(): Caller | undefined {
  return current.caller;
}

export function setCurrentCaller(
  caller: Caller | undefined,
  namespace: string,
  hasEngine: boolean,
): void {
  current.caller = caller;
  current.namespace = namespace;
  current.hasEngine = hasEngine;
}

/** Whether the session runs on the cluster of an engine, where actors may live on after it. */
export function isOnEngine(): boolean {
  return current.hasEngine;
}

export function currentNamespace(): string {
  return current.namespace;
}

/**
 * The error for driver code that a host has reached by importing its module: the code goes no
 * further, and nobody else hears of it.
 */
export class DriverCodeStopped extends Error {
  readonly code: string = "DRIVER_CODE_STOPPED";
  constructor(moduleUrl: string) {
    super(
      `not a failure of the program: a worker loads ${moduleUrl} to find its classes, and the driver code in it stops here. Put "await ray.init()" at the top level, above the try, the function or the catch that has got this, or in CommonJS as the first line of that function: workers stop there, and run nothing behind it`,
    );
    this.name = "DriverCodeStopped";
    this.stack = `${this.name}: ${this.message}`;
  }
}

/** Runs `load` so that all code it starts, now or later, is known as part of this import. */
export function asLoading<T>(loading: Loading, load: () => T): T {
  return current.loading.run(loading, load);
}

/** The import that the calling code belongs to, if it is one. */
export function currentLoading(): Loading | undefined {
  return current.loading.getStore();
}
