/**
 * The parts of an error, wherever clients put them: causes, the last of several attempts (ai:
 * RetryError), all of them (AggregateError), the response. Nothing here throws, whatever the error
 * is.
 */

import { isList } from "@rayling/reward-manager-registry/values";

/** The most errors that are looked at, the nearest first: chains may be circular. */
const most = 32;

/** The names under which clients keep what happened. */
const links = ["response", "cause", "lastError", "error", "originalError"] as const;

/** The error itself, and then what is within it, level by level. */
export function withinError(thrown: unknown): readonly object[] {
  const found = new Set<object>();
  if (isObject(thrown)) found.add(thrown);
  for (const one of found) {
    const errors = partOf(one, "errors");
    const inner = [...links.map((name) => partOf(one, name)), ...(isList(errors) ? errors : [])];
    for (const within of inner) {
      if (found.size >= most) break;
      if (isObject(within)) found.add(within);
    }
  }
  return [...found];
}

/** Undefined also where a getter of the user's throws. */
export function partOf(value: unknown, name: string): unknown {
  try {
    return isObject(value) ? Reflect.get(value, name) : undefined;
  } catch {
    return undefined;
  }
}

export function textPartOf(value: unknown, name: string): string {
  const part = partOf(value, name);
  return typeof part === "string" ? part : "";
}

export function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
