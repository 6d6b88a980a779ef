/**
 * Runs a task for each of many values, with few of them under way at a time.
 */
import { availableParallelism } from "node:os";
import { currentCaller } from "../../caller/current.ts";
import { InvalidOptionError } from "../../shared/errors.ts";
import { checkOptions, count } from "../../shared/options.ts";
import { show } from "../../shared/text/show.ts";
import { entryOf, ObjectRef } from "../../store/object-ref.ts";
import { get, wait } from "../objects.ts";
import { cancel } from "../tasks.ts";

/** Options of `map` and `mapUnordered`. */
export interface MapOptions {
  /**
   * The most calls that are under way, or done and not taken. Default: twice the processors of this
   * machine.
   */
  readonly inFlight?: number | undefined;
}

/** A source of refs: a remote function, a method of a handle, or a function that calls one. */
export type Mapped<Value, Result> =
  | { remote(value: Value): ObjectRef<Result> }
  | ((value: Value) => ObjectRef<Result>);

/**
 * Yields the results of a call for each value, in the order of the values. Values are taken as
 * calls end, so there may be any number of them, and nothing happens before the first result is
 * requested. The first failure ends the iteration; an early exit from the loop cancels the calls
 * under way.
 *
 * Throws InvalidOptionError for a function that returns no ref. Rejects with the errors of the
 * calls, and with SessionEndedError when the session ends.
 */
export function map<Value, Result>(
  fn: Mapped<Value, Result>,
  values: Iterable<Value> | AsyncIterable<Value>,
  options: MapOptions = {},
): AsyncGenerator<Result, void, undefined> {
  return mapped("map", { fn, values, options }, (under) => Promise.resolve(under[0]));
}

/** Yields results like `map`, but in the order in which they become ready. */
export function mapUnordered<Value, Result>(
  fn: Mapped<Value, Result>,
  values: Iterable<Value> | AsyncIterable<Value>,
  options: MapOptions = {},
): AsyncGenerator<Result, void, undefined> {
  return mapped("mapUnordered", { fn, values, options }, async (under) => {
    const { ready } = await wait(under);
    return ready[0];
  });
}

interface MapWork<Value, Result> {
  readonly fn: Mapped<Value, Result>;
  readonly values: Iterable<Value> | AsyncIterable<Value>;
  readonly options: MapOptions;
}

function mapped<Value, Result>(
  where: string,
  { fn, values, options }: MapWork<Value, Result>,
  choose: (under: readonly ObjectRef<Result>[]) => Promise<ObjectRef<Result> | undefined>,
): AsyncGenerator<Result, void, undefined> {
  checkOptions(where, options, { inFlight: count(1) });
  const { inFlight = 2 * availableParallelism() } = options;
  const call = callOf(where, fn);
  // A late value must not start another session for itself.
  let session = currentCaller();
  return run();

  async function* run(): AsyncGenerator<Result, void, undefined> {
    let under: ObjectRef<Result>[] = [];
    const next = async (): Promise<Result> => {
      const chosen = (await choose(under)) as ObjectRef<Result>;
      const value = await get(chosen);
      under = under.filter((one) => one !== chosen);
      return value;
    };
    try {
      for await (const value of values) {
        session?.life.check(where);
        under.push(call(value));
        session ??= currentCaller();
        while (under.length >= inFlight) yield await next();
      }
      while (under.length > 0) yield await next();
    } finally {
      // A call that failed, or is done, does not change by it.
      for (const ref of under) {
        const entry = entryOf(ref);
        if (entry.isStale) continue;
        entry.overlook();
        cancel(ref);
      }
    }
  }
}

function callOf<Value, Result>(
  where: string,
  fn: Mapped<Value, Result>,
): (value: Value) => ObjectRef<Result> {
  const isRemote = typeof (fn as { remote?: unknown } | null)?.remote === "function";
  if (!isRemote && typeof fn !== "function") {
    throw new InvalidOptionError(
      "fn",
      `${where} takes a remote function, a method of a handle, or a function that returns a ref, not ${show(fn)}`,
    );
  }
  return (value) => {
    const made: unknown = "remote" in fn ? fn.remote(value) : fn(value);
    if (made instanceof ObjectRef) return made;
    throw new InvalidOptionError("fn", `${where}: the function gave ${show(made)}, not a ref`);
  };
}
