/** The types that carry a class or function across: handles, refs as arguments, values of lists of refs. */
import type { CallOptions } from "../caller/handle.ts";
import type { ObjectRef } from "../store/object-ref.ts";

type AnyFunction = (...args: never[]) => unknown;

/** Any class: its instances become actors. */
export type Constructor = new (...args: never[]) => object;

/** Arguments as they may be given to a remote call: a ref stands for its value at the top level. */
export type RemoteArguments<Arguments extends readonly unknown[]> = {
  [Index in keyof Arguments]: Arguments[Index] | ObjectRef<Arguments[Index]>;
};

/** What a call gives back: a ref to what the method returns or resolves with. */
export type ResultRef<Method extends AnyFunction> = ObjectRef<Awaited<ReturnType<Method>>>;

export interface RemoteMethod<Method extends AnyFunction> {
  /**
   * Calls the method and returns at once.
   * @throws NotEncodableError when an argument cannot travel, naming its path
   */
  remote(...args: RemoteArguments<Parameters<Method>>): ResultRef<Method>;
  /** The same method with options for this call. */
  options(options: CallOptions): {
    remote(...args: RemoteArguments<Parameters<Method>>): ResultRef<Method>;
  };
}

declare const actorType: unique symbol;

/** An actor as its callers hold it: its public methods. It may be passed to other actors and returned from them. */
export type ActorHandle<Instance> = {
  readonly [
    Name in keyof Instance as Instance[Name] extends AnyFunction ? Name : never
  ]: Instance[Name] extends AnyFunction ? RemoteMethod<Instance[Name]> : never;
} & { readonly [actorType]?: Instance };

/** The value of a ref. */
export type RefValue<Ref extends ObjectRef> = Ref extends ObjectRef<infer Value> ? Value : never;

/** The values of a list of refs; a tuple stays a tuple. */
export type RefValues<Refs extends readonly ObjectRef[]> = {
  -readonly [Index in keyof Refs]: Refs[Index] extends ObjectRef<infer Value> ? Value : never;
};
