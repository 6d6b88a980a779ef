/** A task for each of many values, few of them under way at a time. */
import { availableParallelism } from "node:os";
import { currentCaller } from "../../caller/current.ts";
import { InvalidOptionError } from "../../shared/errors.ts";
import { checkOptions, count } from "../../shared/options.ts";
import { show } from "../../shared/text/show.ts";
import { entryOf, ObjectRef } from "../../store/object-ref.ts";
import { get, wait } from "../objects.ts";
import { cancel } from "../tasks.ts";

export interface MapOptions {
  /** How many calls are under way, or done and not taken, at a time. Default: twice the processors of this machine. */
  readonly inFlight?: number;
}

/** Whatever makes a ref of a value: a remote function, a method of a handle, or a function that calls one. */
export type Mapped<Value, Result> =
  | { remote(value: Value): ObjectRef<Result> }
  | ((value: Value) => ObjectRef<Result>);

/**
 * The results of a call for each of the values, in their order. Values are taken as calls end, so that there may be any number of them, and nothing happens before
 * the first result is asked for. The first failure ends the iteration; whoever leaves it cancels what is under way.
 *
 * Throws InvalidOptionError for what makes no ref; rejects with what the calls reject with, and with SessionEndedError when the session ends.
 */
export function map<Value, Result>(
  fn: Mapped<Value, Result>,
  values: Iterable<Value> | AsyncIterable<Value>,
  options: MapOptions = {},
): AsyncGenerator<Result, void, undefined> {
  return mapped("map", fn, values, options, (under) => Promise.resolve(under[0]));
}

/** The same in the order in which the results are ready. */
export function mapUnordered<Value, Result>(
  fn: Mapped<Value, Result>,
  values: Iterable<Value> | AsyncIterable<Value>,
  options: MapOptions = {},
): AsyncGenerator<Result, void, undefined> {
  return mapped("mapUnordered", fn, values, options, async (under) => {
    const { ready } = await wait(under);
    return ready[0];
  });
}

function mapped<Value, Result>(
  where: string,
  fn: Mapped<Value, Result>,
  values: Iterable<Value> | AsyncIterable<Value>,
  options: MapOptions,
  choose: (under: readonly ObjectRef<Result>[]) => Promise<ObjectRef<Result> | undefined>,
): AsyncGenerator<Result, void, undefined> {
  checkOptions(where, options, { inFlight: count(1) });
  const { inFlight = 2 * availableParallelism() } = options;
  const call = callOf(where, fn);
  // A value that comes late must not start another session for itself.
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
      // One that failed, or is done, is not changed by it.
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
