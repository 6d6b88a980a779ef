/**
 * Runs a task for each of many values, with few of them under way at a time.
 */
import { availableParallelism } from "node:os";
import { currentCaller } from "../../caller/current.ts";
import { InvalidOptionError } from "../../shared/errors.ts";
import { checkOptions, count } from "../../shared/options.ts";
import { show } from "../../shared/text/show.ts";
import { entryOf, ObjectRef } from "../../store/object-ref.ts";
import type { Waitable } from "../../caller/waits/waitable.ts";
import { get, wait, waitForOne } from "../objects.ts";
import { cancel } from "../tasks.ts";
import { ValueSource } from "./value-source.ts";

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
 * requested. While the next value is not there yet, results are yielded all the same. The first
 * failure ends the iteration; an early exit from the loop cancels the calls under way and ends the
 * values.
 *
 * Throws InvalidOptionError for a function that returns no ref. Rejects with the errors of the
 * calls and of the values, and with SessionEndedError when the session ends.
 */
export function map<Value, Result>(
  fn: Mapped<Value, Result>,
  values: Iterable<Value> | AsyncIterable<Value>,
  options: MapOptions = {},
): AsyncGenerator<Result, void, undefined> {
  return mapped("map", { fn, values, options }, inOrder);
}

/** Yields results like `map`, but in the order in which they become ready. */
export function mapUnordered<Value, Result>(
  fn: Mapped<Value, Result>,
  values: Iterable<Value> | AsyncIterable<Value>,
  options: MapOptions = {},
): AsyncGenerator<Result, void, undefined> {
  return mapped("mapUnordered", { fn, values, options }, asTheyCome);
}

interface MapWork<Value, Result> {
  readonly fn: Mapped<Value, Result>;
  readonly values: Iterable<Value> | AsyncIterable<Value>;
  readonly options: MapOptions;
}

/** Which of the calls under way may be next. There is at least one. */
interface Order {
  readonly candidates: <Ref>(under: readonly Ref[]) => readonly Ref[];
  /** The call whose result is next. It may be waited for. */
  readonly next: <Ref extends ObjectRef>(under: readonly Ref[]) => Promise<Ref | undefined>;
}

const inOrder: Order = {
  candidates: (under) => under.slice(0, 1),
  next: (under) => Promise.resolve(under[0]),
};

const asTheyCome: Order = {
  candidates: (under) => under,
  next: async (under) => (await wait(under)).ready[0],
};

function mapped<Value, Result>(
  where: string,
  { fn, values, options }: MapWork<Value, Result>,
  order: Order,
): AsyncGenerator<Result, void, undefined> {
  checkOptions(where, options, { inFlight: count(1) });
  const { inFlight = 2 * availableParallelism() } = options;
  const call = callOf(where, fn);
  // A late value must not start another session for itself.
  let session = currentCaller();
  let under: ObjectRef<Result>[] = [];
  const leaving = new AbortController();
  const results = run();
  const end = results.return.bind(results);
  // A generator hears of it only when its own wait is over.
  results.return = (value) => {
    leaving.abort();
    drop(under);
    return end(value);
  };
  return results;

  async function* run(): AsyncGenerator<Result, void, undefined> {
    const source = new ValueSource(values);
    let isFailed = false;
    try {
      for (;;) {
        fill(source);
        if (leaving.signal.aborted || (under.length === 0 && source.isOver)) return;
        const chosen = source.isReady
          ? await order.next(under)
          : await nextBeside(order.candidates(under), source, leaving.signal);
        if (chosen === undefined) continue;
        const value = await get(chosen);
        under = under.filter((one) => one !== chosen);
        yield value;
      }
    } catch (error) {
      // The calls were cancelled, and nobody asks for their results.
      if (leaving.signal.aborted) return;
      isFailed = true;
      throw error;
    } finally {
      drop(under);
      // An error of the values as they end does not hide the one that ended them.
      await (isFailed ? source.close().catch(() => undefined) : source.close());
    }
  }

  /** Begins calls until enough are under way, or the next value is not there. */
  function fill(source: ValueSource<Value>): void {
    while (under.length < inFlight && !leaving.signal.aborted) {
      const next = source.take();
      if (next === undefined) return;
      session?.life.check(where);
      under.push(call(next.value));
      session ??= currentCaller();
    }
  }
}

/**
 * Waits until one of the calls is over, or the source has its next value, or for the signal.
 * Returns the call; undefined: none is over.
 */
async function nextBeside<Ref extends ObjectRef>(
  candidates: readonly Ref[],
  source: Waitable,
  signal: AbortSignal,
): Promise<Ref | undefined> {
  signal.throwIfAborted();
  const isOver = (ref: Ref): boolean => entryOf(ref).isReady;
  const ready = candidates.find(isOver);
  if (ready !== undefined) return ready;
  if (candidates.length > 0) {
    await waitForOne(candidates, { signal }, source);
    return candidates.find(isOver);
  }
  // Nothing of the session is waited for: the wait keeps no process alive.
  await new Promise<void>((resolve) => {
    const go = (): void => {
      signal.removeEventListener("abort", go);
      source.unwatch(go);
      resolve();
    };
    signal.addEventListener("abort", go);
    source.watch(go);
  });
  return undefined;
}

/** Cancels calls whose results nobody takes. */
function drop(refs: readonly ObjectRef[]): void {
  for (const ref of refs) {
    const entry = entryOf(ref);
    if (entry.isStale) continue;
    // A call that failed, or is done, does not change by it.
    entry.overlook();
    cancel(ref);
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
