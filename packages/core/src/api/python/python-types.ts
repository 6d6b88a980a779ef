/** The types of Python actors at their callers: methods as users write them down. */
import type { ObjectRef } from "../../store/object-ref.ts";
import type { RemoteArgument, RemoteArguments } from "../handle-types.ts";
import type { Keywords } from "./keywords.ts";

type AnyFunction = (...args: never[]) => unknown;

/** The first arguments of a method, as many as the caller likes. */
type Leading<Arguments extends readonly unknown[]> = Arguments extends readonly [
  infer First,
  ...infer Rest,
]
  ? [] | [RemoteArgument<First>, ...Leading<Rest>]
  : Arguments;

/** Positional arguments, or some of them and keywords at the end. */
type PythonArguments<Arguments extends readonly unknown[]> =
  | RemoteArguments<Arguments>
  | [...Leading<Required<Arguments>>, Keywords];

declare const pythonActor: unique symbol;

/** The common part of all handles of Python actors. */
export interface PythonHandle {
  /** Carries the type only; it is never set. */
  readonly [pythonActor]: true;
}

/** A method of a Python actor. */
export interface PythonMethod<Method extends AnyFunction> {
  /**
   * Calls the method and returns at once. Refs among the arguments are replaced by their values.
   *
   * @throws TypeError for an argument that Python cannot have
   */
  remote(...args: PythonArguments<Parameters<Method>>): ObjectRef<Awaited<ReturnType<Method>>>;
}

/** A handle of a Python actor: `handle.method.remote(...)`. */
export type PythonActor<Instance> = {
  readonly [
    Name in keyof Instance as Instance[Name] extends AnyFunction ? Name : never
  ]: Instance[Name] extends AnyFunction ? PythonMethod<Instance[Name]> : never;
} & PythonHandle;

/** Options of Python actors, which are Ray's. */
export interface PythonActorOptions {
  /** CPUs that it holds while it lives. Default: none. */
  readonly numCpus?: number | undefined;
  /** GPUs that it holds while it lives. Default: none. */
  readonly numGpus?: number | undefined;
  /** Bytes of memory that it holds while it lives. Default: none. */
  readonly memory?: number | undefined;
  /** Amounts of custom resources. Default: none. */
  readonly resources?: Readonly<Record<string, number>> | undefined;
  /** Labels of the node. Default: any node. */
  readonly labelSelector?: Readonly<Record<string, string>> | undefined;
  /** The name by which all drivers of the namespace find it. Default: none. */
  readonly name?: string | undefined;
  /** The namespace of its name. Default: that of the session. */
  readonly namespace?: string | undefined;
  /** Whether to return the existing actor of that name, if there is one. Default false. */
  readonly getIfExists?: boolean | undefined;
  /**
   * "detached" lives until it is killed, also after the session. Default: it ends with the session.
   */
  readonly lifetime?: "detached" | "non_detached" | undefined;
  /** How often Ray restarts it; -1 without limit. Default 0. */
  readonly maxRestarts?: number | undefined;
  /** How often Ray retries a call after the actor was lost; -1 without limit. Default 0. */
  readonly maxTaskRetries?: number | undefined;
  /** The most calls that run at a time. Default: Ray's. */
  readonly maxConcurrency?: number | undefined;
  /** A folder here whose files Python finds there, beside what the cluster has. */
  readonly workingDir?: string | undefined;
}

/** A Python class by its import path: `remote` makes an actor of it. */
export interface PythonActorClass<Instance> {
  /**
   * Makes an actor and returns its handle at once. Errors of the constructor reject its calls.
   *
   * @throws TypeError for an argument that Python cannot have
   */
  remote(...args: readonly unknown[]): PythonActor<Instance>;
  /**
   * Returns the class with options.
   *
   * @throws InvalidOptionError
   */
  options(options: PythonActorOptions): PythonActorClass<Instance>;
}
