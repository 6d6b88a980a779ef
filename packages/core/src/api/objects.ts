/** `get`, `put` and `wait`: from refs to values and back. */
import { appendLocalStack } from "../protocol/failure.ts";
import { getValues, waitSettled } from "../caller/get.ts";
import type { Waitable } from "../caller/waitable.ts";
import { ObjectRefGenerator, streamOf } from "../caller/stream.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { entryOf, ObjectRef } from "../store/object-ref.ts";
import { show } from "../shared/show.ts";
import { checkOptions, count } from "../shared/options.ts";
import { isDriverCode, never, useCaller } from "./session.ts";
import type { RefValue, RefValues } from "./types.ts";

export interface GetOptions {
  /** Reject with GetTimeoutError after this; the work goes on. Default: wait as long as it takes. */
  readonly timeoutMs?: number;
}

export interface WaitOptions {
  /** How many are to be ready. Default 1. */
  readonly numReturns?: number;
  /** Answer with what is ready after this. Default: wait as long as it takes. */
  readonly timeoutMs?: number;
}

export interface WaitResult<Ref> {
  /** At most `numReturns`, the first ready ones in input order; failed ones count as ready. */
  readonly ready: Ref[];
  readonly pending: Ref[];
}

/**
 * The value of a ref, or the values of a list in its order. Each call decodes afresh: values have no identity.
 *
 * Rejects with what the remote code threw, ActorDiedError, ActorUnavailableError, WorkerCrashedError, GetTimeoutError; of a list with the
 * first failure, at once.
 */
export function get<Ref extends ObjectRef>(ref: Ref, options?: GetOptions): Promise<RefValue<Ref>>;
export function get<const Refs extends readonly ObjectRef[]>(
  refs: Refs,
  options?: GetOptions,
): Promise<RefValues<Refs>>;
export async function get(
  refs: ObjectRef | readonly ObjectRef[],
  options: GetOptions = {},
): Promise<unknown> {
  if (isDriverCode()) return never();
  const caller = useCaller();
  checkOptions("get", options, { timeoutMs: count(0, "fraction") });
  const { timeoutMs } = options;
  try {
    if (!(refs instanceof ObjectRef)) {
      return await getValues(caller, entriesOf("get", refs), timeoutMs);
    }
    const [value] = await getValues(caller, [entryOf(refs)], timeoutMs);
    return value;
  } catch (error) {
    // Here, after the await, the stack names who awaits this call; a get that succeeds pays nothing for it.
    const trace: { stack?: string } = {};
    Error.captureStackTrace(trace, get);
    appendLocalStack(error as Error, trace.stack ?? "");
    throw error;
  }
}

/**
 * Stores a snapshot of `value` and returns a ref to it; later changes of `value` are not seen.
 * Buffers of 64 KiB and more are copied once into shared memory and read in place: treat what `get` returns as read-only.
 *
 * @throws NotEncodableError naming the path of what cannot travel; InvalidOptionError for a ref
 */
export function put<T>(value: T): ObjectRef<T> {
  const caller = useCaller();
  if (value instanceof ObjectRef) {
    throw new InvalidOptionError(
      "value",
      "put takes a value, not an ObjectRef: pass the ref itself on",
    );
  }
  return caller.put(value) as ObjectRef<T>;
}

/**
 * Waits until `numReturns` of the refs are ready, or until `timeoutMs`. Never rejects because of a failed ref.
 * A generator is ready when its next item is, or its end.
 * Rejects with InvalidOptionError for a duplicate ref, a count out of range or a negative time.
 */
export async function wait<Ref extends ObjectRef | ObjectRefGenerator>(
  refs: readonly Ref[],
  options: WaitOptions = {},
): Promise<WaitResult<Ref>> {
  if (isDriverCode()) return never();
  const caller = useCaller();
  checkOptions("wait", options, { numReturns: count(1), timeoutMs: count(0, "fraction") });
  const entries = waitablesOf(refs);
  const numReturns = options.numReturns ?? 1;
  if (new Set(entries).size !== entries.length) {
    const twice = refs.find((ref, index) => refs.indexOf(ref) !== index);
    throw new InvalidOptionError("refs", `wait: a ref stands twice in the list: ${show(twice)}`);
  }
  if (refs.length === 0) return { ready: [], pending: [] };
  if (numReturns > refs.length) {
    throw new InvalidOptionError(
      "numReturns",
      `wait: numReturns is ${numReturns}, the list has ${refs.length}`,
    );
  }
  const settled = await waitSettled(caller, entries, numReturns, options.timeoutMs);
  const isReady = (_: Ref, index: number): boolean => settled.has(entries[index] as Waitable);
  return {
    ready: refs.filter(isReady),
    pending: refs.filter((ref, index) => !isReady(ref, index)),
  };
}

function waitablesOf(refs: unknown): Waitable[] {
  if (!Array.isArray(refs)) return entriesOf("wait", refs);
  return refs.flatMap((ref: unknown): Waitable | Waitable[] =>
    ref instanceof ObjectRefGenerator ? streamOf(ref) : entriesOf("wait", [ref]),
  );
}

function entriesOf(where: string, refs: unknown): ReturnType<typeof entryOf>[] {
  if (refs instanceof ObjectRefGenerator) return entriesOf(where, [refs]);
  if (!Array.isArray(refs)) {
    throw new InvalidOptionError(
      "refs",
      `${where} takes ${where === "get" ? "an ObjectRef or " : ""}a list of ObjectRefs, not ${show(refs)}`,
    );
  }
  return refs.map((ref: unknown, index) => {
    if (ref instanceof ObjectRefGenerator) {
      throw new InvalidOptionError(
        "refs",
        `${where} takes refs, not a generator of them: iterate over it, or get its completed()`,
      );
    }
    if (!(ref instanceof ObjectRef)) {
      throw new InvalidOptionError(
        "refs",
        `${where}: refs[${index}] is not an ObjectRef but ${show(ref)}`,
      );
    }
    return entryOf(ref);
  });
}
