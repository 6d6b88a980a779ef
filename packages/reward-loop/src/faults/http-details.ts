/** What an error of an HTTP client says besides its message, wherever clients put it. Nothing here throws, whatever the error is. */

import { resetAfterMs, retryAfterIn } from "./rate-limit-headers.ts";

export interface HttpDetails {
  readonly status?: number;
  /** How long the server wants to be left alone: as it says itself, or by when the limit that is used up begins anew. */
  readonly retryAfterMs?: number;
}

/** @param nowMs of the date, for servers that name one */
export function httpDetailsOf(error: unknown, nowMs: number = Date.now()): HttpDetails {
  const status = firstOf(error, ["status", "statusCode"], isStatus);
  const headers = firstOf(error, ["headers", "responseHeaders"], isObject);
  const named = (name: string): string | undefined => headerOf(headers, name);
  const resets = (): number | undefined => resetAfterMs(named, nowMs);
  const retryAfterMs = retryAfterIn(named, nowMs) ?? (status === 429 ? resets() : undefined);
  return {
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

function isStatus(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 100 && (value as number) <= 599;
}

/** On the error itself, on its response, on its cause, or on the last one of several tries of the client's own (ai: RetryError). */
function firstOf<Value>(
  error: unknown,
  names: readonly string[],
  fits: (value: unknown) => value is Value,
): Value | undefined {
  const within = ["response", "cause", "lastError"].map((name) => partOf(error, name));
  const places = [error, ...within];
  for (const place of places) {
    for (const name of names) {
      const value = partOf(place, name);
      if (fits(value)) return value;
    }
  }
  return undefined;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function headerOf(headers: object | undefined, name: string): string | undefined {
  if (headers === undefined) return undefined;
  const { get } = headers as { readonly get?: unknown };
  try {
    const value: unknown =
      typeof get === "function"
        ? (get as (name: string) => unknown).call(headers, name)
        : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
    return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
  } catch {
    return undefined;
  }
}

function partOf(value: unknown, name: string): unknown {
  try {
    return isObject(value) ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
  } catch {
    // A getter of the user's that throws.
    return undefined;
  }
}
