/**
 * `get`, `put` and `wait`: from refs to values and back.
 */
import { appendLocalStack } from "../protocol/failure.ts";
import { dueCollection } from "../protocol/shared-memory.ts";
import { getValues, valuesHere, waitReady } from "../caller/waits/get-and-wait.ts";
import { type LookedAt, lookedAt, noteLeft } from "../caller/waits/looked-at.ts";
import { Wait, type WaitLimits } from "../caller/waits/stuck-watch.ts";
import { checkInterrupted } from "../caller/waits/task-scope.ts";
import type { Waitable } from "../caller/waits/waitable.ts";
import { ObjectRefGenerator, streamOf } from "../caller/stream.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import type { ObjectEntry } from "../store/object-entry.ts";
import { live, liveEntryOf, ObjectRef } from "../store/object-ref.ts";
import { show } from "../shared/text/show.ts";
import { checkOptions, count } from "../shared/options.ts";
import { isDriverCode, never, useCaller } from "./session.ts";
import type { RefValue, RefValues } from "./handle-types.ts";
import { asError } from "../shared/errors/thrown.ts";

/** Options of `get`. */
export interface GetOptions {
  /**
   * The time in ms after which `get` rejects with GetTimeoutError; the work goes on. Default: no
   * limit.
   */
  readonly timeoutMs?: number | undefined;
  /**
   * The time in ms after which a warning names the awaited work, in place of the session's
   * `stuckWarningMs`; 0: never. Set it for work that is known to be slow.
   */
  readonly stuckWarningMs?: number | undefined;
  /** A signal whose abort rejects the wait with its reason; the work goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of `wait`. */
export interface WaitOptions {
  /** The number of refs that must be ready. Default 1. */
  readonly numReturns?: number | undefined;
  /** The time in ms after which `wait` returns the ready refs. Default: no limit. */
  readonly timeoutMs?: number | undefined;
  /** The time in ms after which a warning names the awaited work, as for `get`. */
  readonly stuckWarningMs?: number | undefined;
  /** A signal whose abort rejects the wait with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The result of `wait`. */
export interface WaitResult<Ref> {
  /** At most `numReturns` refs, the first ready ones in input order; failed ones count as ready. */
  readonly ready: Ref[];
  /** The other refs, in input order. */
  readonly pending: Ref[];
}

const waitOptions = {
  timeoutMs: count(0, "fraction"),
  stuckWarningMs: count(0, "fraction"),
  signal: (value: unknown) => (value instanceof AbortSignal ? undefined : "must be an AbortSignal"),
} as const;

/**
 * Returns the value of a ref, the values of a list in its order, or those of an object by their
 * names. Each call decodes afresh: values have no identity.
 *
 * Rejects with the error of the remote code, ActorDiedError, ActorUnavailableError,
 * WorkerCrashedError, GetTimeoutError, or the reason of the signal. Several refs reject with the
 * first failure, at once. Rejects with SessionEndedError when the session ends, and for a ref of an
 * ended session.
 */
export function get<Ref extends ObjectRef>(ref: Ref, options?: GetOptions): Promise<RefValue<Ref>>;
export function get<const Refs extends readonly ObjectRef[]>(
  refs: Refs,
  options?: GetOptions,
): Promise<RefValues<Refs>>;
export function get<const Refs extends object>(
  refs: Refs & { readonly [Name in keyof Refs]: ObjectRef },
  options?: GetOptions,
): Promise<{ [Name in keyof Refs]: RefValue<Extract<Refs[Name], ObjectRef>> }>;
/** Returns a value of a given type: `get<Answer>(ref)`. */
// The last one, because compilers tell what is wrong by the last: an option, not the ref.
export function get<Value>(ref: ObjectRef, options?: GetOptions): Promise<Value>;
export function get(
  refs: ObjectRef | readonly ObjectRef[] | Readonly<Record<string, ObjectRef>>,
  options: GetOptions = none,
): Promise<unknown> {
  const asked = new Wait("get");
  asked.answer = getOrReject(refs, options, asked);
  return asked.answer;
}

/**
 * Returns the value as `get` does, also in a task that is cancelled meanwhile: its next wait
 * rejects.
 */
export function getToTheEnd(ref: ObjectRef): Promise<unknown> {
  const asked = new Wait("get");
  asked.isToTheEnd = true;
  asked.answer = getOrReject(ref, none, asked);
  return asked.answer;
}

/** The options of most calls. */
const none: GetOptions = {};

/** Not a literal, which V8 may put into the old generation (store/object-entry.ts). */
function listOf(...entries: readonly ObjectEntry[]): readonly ObjectEntry[] {
  return entries;
}

async function getOrReject(
  refs: ObjectRef | readonly ObjectRef[] | Readonly<Record<string, ObjectRef>>,
  options: GetOptions,
  asked: Wait,
): Promise<unknown> {
  if (isDriverCode()) return never();
  if (options !== none) {
    checkOptions("get", options, waitOptions);
    asked.limit(options);
  }
  // The check precedes the start of a runtime, because the refs may belong to an ended one.
  const names = isRecord(refs) ? Object.keys(refs) : undefined;
  const entries =
    refs instanceof ObjectRef
      ? listOf(liveEntryOf(refs))
      : names === undefined
        ? entriesOf("get", refs)
        : namedEntries(refs as Readonly<Record<string, unknown>>);
  const caller = useCaller();
  try {
    checkInterrupted();
    const values = valuesHere(caller, entries, asked) ?? (await getValues(caller, entries, asked));
    const collection = dueCollection();
    if (collection !== undefined) await collection;
    if (names !== undefined) {
      return Object.fromEntries(names.map((name, index) => [name, values[index]]));
    }
    return refs instanceof ObjectRef ? values[0] : values;
  } catch (error) {
    // The reason belongs to the owner of the signal, and may reject many waits.
    if (options.signal?.aborted === true && error === options.signal.reason) throw error;
    // Here, after the await, the stack names the code that awaits this call; a get that succeeds
    // pays nothing for it.
    const trace: { stack?: string } = {};
    Error.captureStackTrace(trace, getOrReject);
    appendLocalStack(asError(error), trace.stack ?? "");
    throw error;
  }
}

/**
 * Stores a snapshot of `value` and returns a ref to it; later changes of `value` do not show.
 * Buffers of 64 KiB and more are copied once into shared memory and read in place: treat the result
 * of `get` as read-only.
 *
 * @throws NotEncodableError naming the path of a part that cannot travel; InvalidOptionError for a
 * ref; ObjectStoreFullError, OutOfDiskError when the value has no room
 */
export function put<T>(value: T): ObjectRef<T> {
  const caller = useCaller();
  if (value instanceof ObjectRef) {
    throw new InvalidOptionError(
      "value",
      "put takes a value, not an ObjectRef: pass the ref itself on",
    );
  }
  return caller.objects.put(value) as ObjectRef<T>;
}

/**
 * Waits until `numReturns` of the refs are ready, or until `timeoutMs`. Never rejects because of a
 * failed ref. A generator is ready when its next item is, or its end.
 *
 * Rejects with InvalidOptionError for a duplicate ref, a count out of range or a negative time, and
 * with SessionEndedError when the session ends, or for a ref of an ended session.
 */
export function wait<Ref extends ObjectRef | ObjectRefGenerator>(
  refs: readonly Ref[],
  options: WaitOptions = {},
): Promise<WaitResult<Ref>> {
  const asked = new Wait("wait");
  const answer = waitOrReject(refs, options, asked);
  asked.answer = answer;
  return answer;
}

async function waitOrReject<Ref extends ObjectRef | ObjectRefGenerator>(
  refs: readonly Ref[],
  options: WaitOptions,
  asked: Wait,
): Promise<WaitResult<Ref>> {
  if (isDriverCode()) return never();
  // The check precedes the start of a runtime: if none runs, all refs belong to an ended one.
  if (Array.isArray(refs) && refs.length > 0) waitableOf(refs[0], 0);
  const caller = useCaller();
  checkOptions("wait", options, { numReturns: count(1), ...waitOptions });
  asked.limit(options);
  checkInterrupted();
  options.signal?.throwIfAborted();
  const numReturns = options.numReturns ?? 1;
  const known = lookedAt(refs);
  if (known === undefined) checkList(refs, caller.waiting.nextWave());
  if (refs.length === 0) return { ready: [], pending: [] };
  if (numReturns > refs.length) {
    throw new InvalidOptionError(
      "numReturns",
      `wait: numReturns is ${numReturns}, the list has ${refs.length}`,
    );
  }
  const places = placesOfReady(refs, numReturns);
  if (places.length === numReturns) return split(refs, places, known);
  await waitReady(caller, refs.map(waitableOf), numReturns, asked);
  // Another wait may have been given the same list meanwhile.
  return split(refs, placesOfReady(refs, numReturns), lookedAt(refs));
}

/**
 * Waits as `wait` does until one of the refs is ready, or for `timeoutMs`; they need no check, and
 * one may stand twice. Rejects with SessionEndedError as `wait` does.
 *
 * @param beside ends the wait, too, when it is ready; the wait needs a limit then, because it may
 * end by what no other runtime sees
 */
export function waitForOne(
  refs: readonly ObjectRef[],
  limits: WaitLimits,
  beside?: Waitable,
): Promise<void> {
  const asked = new Wait("wait");
  asked.limit(limits);
  const answer = waitForEntries(refs, asked, beside);
  asked.answer = answer;
  return answer;
}

async function waitForEntries(
  refs: readonly ObjectRef[],
  asked: Wait,
  beside: Waitable | undefined,
): Promise<void> {
  if (isDriverCode()) return never();
  const entries: readonly Waitable[] = refs.map(liveEntryOf);
  const caller = useCaller();
  checkInterrupted();
  const all = beside === undefined ? entries : [...entries, beside];
  const ready = waitReady(caller, all, 1, asked);
  // A report of a wait that lasts names only objects.
  asked.waitables = entries;
  await ready;
}

/** Returns the places of the first ready refs, so many at most. */
function placesOfReady(refs: readonly unknown[], most: number): number[] {
  const places: number[] = [];
  for (let index = 0; index < refs.length; index++) {
    if (!waitableOf(refs[index], index).isReady) continue;
    places.push(index);
    if (places.length === most) break;
  }
  return places;
}

/** Checks the list without a table or a copy. */
function checkList(refs: unknown, wave: number): void {
  if (!Array.isArray(refs)) return void entriesOf("wait", refs);
  for (let index = 0; index < refs.length; index++) {
    const waitable = waitableOf(refs[index], index);
    // The list is searched, too: a ref of an earlier session may have the same wave number.
    if (
      waitable.wave === wave &&
      refs.findIndex((one, at) => waitableOf(one, at) === waitable) < index
    ) {
      throw new InvalidOptionError(
        "refs",
        `wait: a ref stands twice in the list: ${show(refs[index])}`,
      );
    }
    waitable.wave = wave;
  }
}

function waitableOf(ref: unknown, index: number): Waitable {
  if (ref instanceof ObjectRef) return liveEntryOf(ref);
  if (!(ref instanceof ObjectRefGenerator)) return notARef("wait", ref, index);
  live(streamOf(ref).completion);
  return streamOf(ref);
}

/** @param places of the refs that are ready, in order */
function split<Ref>(
  refs: readonly Ref[],
  places: readonly number[],
  known: LookedAt | undefined,
): WaitResult<Ref> {
  const ready = places.map((place) => refs[place] as Ref);
  const pending = without(refs, places);
  noteLeft(known, places, pending);
  return { ready, pending };
}

/** @param places in order */
function without<Item>(list: readonly Item[], places: readonly number[]): Item[] {
  // One copy of what follows the first ones; those before the last place are written over it.
  const left = list.slice(places.length);
  const last = places.at(-1) ?? -1;
  let next = 0;
  let at = 0;
  for (let index = 0; index < last; index++) {
    if (places[next] === index) next += 1;
    else left[at++] = list[index] as Item;
  }
  return left;
}

function entriesOf(where: string, refs: unknown): ReturnType<typeof liveEntryOf>[] {
  if (refs instanceof ObjectRefGenerator) return entriesOf(where, [refs]);
  if (!Array.isArray(refs)) {
    throw new InvalidOptionError(
      "refs",
      `${where} takes ${where === "get" ? "an ObjectRef, an object of them or " : ""}a list of ObjectRefs, not ${show(refs)}`,
    );
  }
  return refs.map((ref: unknown, index) => {
    if (ref instanceof ObjectRefGenerator) {
      throw new InvalidOptionError(
        "refs",
        `${where} takes refs, not a generator of them: iterate over it, or get its completed()`,
      );
    }
    return ref instanceof ObjectRef ? liveEntryOf(ref) : notARef(where, ref, index);
  });
}

/** Whether it is an object without a class. */
function isRecord(refs: unknown): boolean {
  if (typeof refs !== "object" || refs === null) return false;
  const prototype: unknown = Object.getPrototypeOf(refs);
  return prototype === Object.prototype || prototype === null;
}

function namedEntries(refs: Readonly<Record<string, unknown>>): ReturnType<typeof liveEntryOf>[] {
  return Object.entries(refs).map(([name, ref]) => {
    if (ref instanceof ObjectRef) return liveEntryOf(ref);
    throw new InvalidOptionError("refs", `get: refs.${name} is not an ObjectRef but ${show(ref)}`);
  });
}

function notARef(where: string, ref: unknown, index: number): never {
  throw new InvalidOptionError(
    "refs",
    `${where}: refs[${index}] is not an ObjectRef but ${show(ref)}`,
  );
}
