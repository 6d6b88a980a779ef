/**
 * Details that an error of a service's client carries besides its message, wherever clients put
 * them. Nothing here throws, whatever the error is.
 */

import { isObject, partOf, withinError } from "./error-tree.ts";
import { resetAfterMs, retryAfterIn } from "@rayling/reward-manager-registry/values";

export interface HttpDetails {
  /** The status of HTTP, or the one that stands for gRPC's code. */
  readonly status?: number;
  /**
   * How long the server asks to be left alone: its retry-after, or the time until its exhausted
   * limit is reset.
   */
  readonly retryAfterMs?: number;
  /** Whether the server wants the call again (`x-should-retry`), whatever its status is. */
  readonly shouldRetry?: boolean;
}

/** @param nowMs the time of this machine, for answers with dates and without the server's time */
export function httpDetailsOf(error: unknown, nowMs: number = Date.now()): HttpDetails {
  const within = withinError(error);
  const status = firstOf(within, statusIn);
  const headers = firstOf(within, headersIn);
  const named = (name: string): string | undefined => headerOf(headers, name);
  const resets = (): number | undefined => resetAfterMs(named, nowMs);
  const retryAfterMs = retryAfterIn(named, nowMs) ?? (status === 429 ? resets() : undefined);
  const should = { true: true, false: false }[named("x-should-retry") ?? ""];
  return {
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(should === undefined ? {} : { shouldRetry: should }),
  };
}

/** Reads the status on the error itself, on AWS's metadata, or from gRPC's code. */
function statusIn(place: object): number | undefined {
  const places = [place, partOf(place, "$metadata")];
  for (const one of places) {
    for (const name of ["status", "statusCode", "httpStatusCode"]) {
      const value = partOf(one, name);
      if (isStatus(value)) return value;
    }
  }
  return grpcStatusIn(place);
}

/**
 * Google's map of its codes to HTTP (google/rpc/code.proto). Errors of gRPC have `details` or
 * `metadata` beside the code.
 */
const grpcStatuses: Readonly<Record<number, number>> = {
  1: 499,
  2: 500,
  3: 400,
  4: 504,
  5: 404,
  6: 409,
  7: 403,
  8: 429,
  9: 400,
  10: 409,
  11: 400,
  12: 501,
  13: 500,
  14: 503,
  15: 500,
  16: 401,
};

function grpcStatusIn(place: object): number | undefined {
  const code = partOf(place, "code");
  const isGrpc =
    typeof partOf(place, "details") === "string" || isObject(partOf(place, "metadata"));
  return isGrpc && typeof code === "number" ? grpcStatuses[code] : undefined;
}

function isStatus(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 100 && value <= 599;
}

function headersIn(place: object): object | undefined {
  for (const name of ["headers", "responseHeaders"]) {
    const value = partOf(place, name);
    if (isObject(value)) return value;
  }
  return undefined;
}

function firstOf<Value>(
  places: readonly object[],
  of: (place: object) => Value | undefined,
): Value | undefined {
  for (const place of places) {
    const value = of(place);
    if (value !== undefined) return value;
  }
  return undefined;
}

function headerOf(headers: object | undefined, name: string): string | undefined {
  if (headers === undefined) return undefined;
  const get: unknown = Reflect.get(headers, "get");
  try {
    const value: unknown =
      typeof get === "function"
        ? Reflect.apply(get, headers, [name])
        : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
    if (Array.isArray(value)) return value.join(", ");
    return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
  } catch {
    return undefined;
  }
}
