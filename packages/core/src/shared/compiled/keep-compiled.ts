/** Keeps what V8 has compiled of this package, where kept-code.ts has found nothing kept. */

import type { HandedCode } from "./handed-code.ts";
import { timers } from "../machine/timers.ts";

/** There where kept-code.ts has loaded all code of the package, of which it is a parameter. */
declare const loadedCode: LoadedCode | undefined;

export interface LoadedCode {
  /**
   * There if nothing is kept yet, or not much.
   *
   * @param isEarly whether the program ends before it has run much
   */
  readonly keep?: (isEarly: boolean) => void;
  /** A thread of this program begins with it, in place of the entry of the package's modules. */
  readonly threadEntry?: URL;
  /** Returns what a thread of this program gets of it. */
  readonly forThreads?: () => HandedCode | undefined;
}

/** Whether this code was read from the package's own file. */
export const isReadFromFile: boolean = typeof loadedCode === "object";

const loaded: LoadedCode = typeof loadedCode === "object" ? loadedCode : {};

let { keep } = loaded;

let isAsked = false;

/** Returns what a thread that is started now gets of it. */
export function compiledForThreads(): HandedCode | undefined {
  return loaded.forThreads?.();
}

/** Threads begin with it, where they take compiled code. */
export const threadEntry: URL | undefined = loaded.threadEntry;

/** Keeps it so much later, or at the end of the thread or process, if that is before. */
export function keepCompiledAfter(ms: number): void {
  if (keep === undefined || isAsked) return;
  isAsked = true;
  timers.setTimeout(keepNow, ms, false).unref();
  process.once("exit", keepAtExit);
}

function keepAtExit(): void {
  keepNow(true);
}

function keepNow(isEarly: boolean): void {
  process.removeListener("exit", keepAtExit);
  keep?.(isEarly);
  keep = undefined;
}
