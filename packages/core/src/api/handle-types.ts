/**
 * The types that describe classes and functions at their callers: handles, refs as arguments,
 * values of lists of refs.
 */
import type { CallOptions } from "../caller/call-options.ts";
import type { ObjectRefGenerator } from "../caller/stream.ts";
import type { ObjectRef } from "../store/object-ref.ts";

type AnyFunction = (...args: never[]) => unknown;

/** Any class: its instances become actors. */
export type Constructor = new (...args: never[]) => object;

/**
 * Arguments of a remote call: at the top level a ref may stand for its value. The method gets that
 * value, so a parameter that is itself a ref takes a ref to one, or has it nested in an object.
 */
export type RemoteArguments<Arguments extends readonly unknown[]> = {
  [Index in keyof Arguments]: RemoteArgument<Arguments[Index]>;
};

/** An argument at the top level of a remote call, for a parameter of that type. */
export type RemoteArgument<Value> = Exclude<Value, ObjectRef> | ObjectRef<Value>;

/**
 * Refuses names that no option has. A type parameter is inferred from what is given, so the
 * compiler does not look for misspelt names by itself.
 */
export type OnlyOptions<Given, Known> = {
  readonly [Name in UnknownNames<Given, keyof Known>]: never;
};

/** A record may have any names; its own values are looked at when they are given. */
type UnknownNames<Given, Known> = Given extends unknown
  ? { [Name in keyof Given]-?: string extends Name ? never : Exclude<Name, Known> }[keyof Given]
  : never;

/** `any` and `unknown`, which extend every type or none, stay as they are. */
type ItemOf<Returned> = unknown extends Returned
  ? Returned
  : Returned extends AsyncIterable<infer Item> | AsyncIterator<infer Item, unknown, never>
    ? Item
    : Returned extends Iterable<infer Item> | Iterator<infer Item, unknown, never>
      ? Awaited<Item>
      : never;

/** Whether generators, or async ones, are assignable to that type. */
type TakesGenerators<Returned> =
  Generator<never, never, unknown> extends Returned
    ? true
    : AsyncGenerator<never, never, unknown> extends Returned
      ? true
      : false;

/**
 * Whether a generator method may have that result: any type of iterator that a generator has. An
 * `Iterable` may be a list, so it is no stream, and an object of a class with iterators is itself.
 */
type IsStream<Returned> = unknown extends Returned
  ? false
  : [Returned] extends [never]
    ? false
    : Returned extends
          | Iterator<unknown, unknown, never>
          | AsyncIterator<unknown, unknown, never>
          | AsyncIterable<unknown>
      ? TakesGenerators<Returned>
      : false;

/**
 * The result of a call: a ref to the value that the method returns or resolves with; for a
 * generator method, a generator of refs.
 */
export type ResultRef<Method extends AnyFunction> =
  IsStream<ReturnType<Method>> extends true
    ? ObjectRefGenerator<ItemOf<ReturnType<Method>>>
    : ObjectRef<Awaited<ReturnType<Method>>>;

/**
 * The result of a call with options, which depends on `numReturns`: the union of all shapes that it
 * may have where the type of the options leaves that open, as `CallOptions` itself does.
 */
export type ShapedResult<Method extends AnyFunction, Options> = Options extends {
  readonly numReturns?: infer Count;
}
  ? "numReturns" extends keyof Options
    ? ShapeOf<Method, Options extends { readonly numReturns: unknown } ? Count : Count | undefined>
    : ResultRef<Method>
  : ResultRef<Method>;

type ShapeOf<Method extends AnyFunction, Count> = Count extends undefined
  ? ResultRef<Method>
  : Count extends 0
    ? undefined
    : Count extends 1
      ? ObjectRef<Awaited<ReturnType<Method>>>
      : Count extends "streaming"
        ? ObjectRefGenerator<ItemOf<Awaited<ReturnType<Method>>>>
        : number extends Count
          ? ShapeOf<Method, 0 | 1> | RefsOf<Awaited<ReturnType<Method>>>
          : RefsOf<Awaited<ReturnType<Method>>>;

/** The options of a call that has more than its own: their `numReturns` counts if there is one. */
export type Reshaped<Own, More> = More extends { readonly numReturns?: infer Count }
  ? "numReturns" extends keyof More
    ? More extends { readonly numReturns: {} }
      ? More
      : (unknown extends Own ? NoReturns : Own) | { readonly numReturns: Exclude<Count, undefined> }
    : Own
  : Own;

interface NoReturns {
  readonly numReturns?: undefined;
}

type RefsOf<Values> = [Values] extends [never]
  ? ObjectRef<never>[]
  : unknown extends Values
    ? ObjectRef<Values>[]
    : Values extends readonly unknown[]
      ? { -readonly [Index in keyof Values]: ObjectRef<Values[Index]> }
      : ObjectRef<ItemOf<Values>>[];

/** A method of an actor, as its callers see it. */
export interface RemoteMethod<Method extends AnyFunction, Own = unknown> {
  /**
   * Calls the method and returns at once.
   *
   * @throws NotEncodableError when an argument cannot travel, naming its path;
   * PendingCallsLimitExceeded
   */
  remote(...args: RemoteArguments<Parameters<Method>>): ShapedResult<Method, Own>;
  /**
   * Returns the method with options for one call.
   *
   * @throws InvalidOptionError
   */
  options<const More extends CallOptions>(
    options: More & OnlyOptions<More, CallOptions>,
  ): {
    remote(...args: RemoteArguments<Parameters<Method>>): ShapedResult<Method, Reshaped<Own, More>>;
  };
}

declare const actorType: unique symbol;

declare const taskType: unique symbol;

/** A remote function as a value: it may be an argument. */
export interface FunctionHandle<Task extends AnyFunction> {
  /** Carries the type only; it is never set. */
  readonly [taskType]?: Task;
}

/** Methods that every actor has besides its own, by Ray's names. */
interface BuiltInMethods<Instance> {
  /**
   * Calls a remote function with the actor's object and the arguments, in the actor, as one of its
   * calls.
   */
  readonly __ray_call__: {
    remote<Arguments extends readonly unknown[], Result>(
      task: FunctionHandle<(instance: Instance, ...args: Arguments) => Result>,
      ...args: RemoteArguments<Arguments>
    ): ObjectRef<Awaited<Result>>;
  };
  /** Returns true when the constructor has run. */
  readonly __ray_ready__: RemoteMethod<() => true>;
  /** Ends the actor when the earlier calls have ended; its ref rejects with ActorDiedError. */
  readonly __ray_terminate__: RemoteMethod<() => void>;
  /** Kills it, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The method that an actor runs at its end is nobody's to call. */
type Hook = "__ray_shutdown__";

/**
 * An actor as its callers hold it: its public methods. It may be passed to other actors and
 * returned from them.
 *
 * @typeParam Methods the `methods` option of its class, whose `numReturns` change the results of
 * its calls
 */
export type ActorHandle<Instance, Methods = unknown> = {
  readonly [
    Name in keyof Instance as Instance[Name] extends AnyFunction ? Exclude<Name, Hook> : never
  ]: Instance[Name] extends AnyFunction
    ? RemoteMethod<Instance[Name], Name extends keyof Methods ? Methods[Name] : unknown>
    : never;
} & BuiltInMethods<Instance> & { readonly [actorType]?: Instance };

/** The value of a ref. */
export type RefValue<Ref extends ObjectRef> = Ref extends ObjectRef<infer Value> ? Value : never;

/** The values of a list of refs; a tuple stays a tuple. */
export type RefValues<Refs extends readonly ObjectRef[]> = {
  -readonly [Index in keyof Refs]: Refs[Index] extends ObjectRef<infer Value> ? Value : never;
};
