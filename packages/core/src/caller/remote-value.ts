/**
 * Remote functions and actor classes as values: they may be passed to actors and tasks, which call
 * the function as their own task or on their object, and create actors of the class.
 *
 * The API sets the makers, which make a stub with its options; this file has only what a stub
 * consists of as data.
 */
import type { RemoteKey } from "../rpc/remote-key.ts";
import { RaySystemError } from "../shared/errors.ts";
import type { ClassMembers } from "../shared/methods.ts";
import { threadSlot } from "../shared/thread-slot.ts";

export interface FunctionData {
  readonly key: RemoteKey;
  readonly isGenerator: boolean;
  /** Its options, as plain data. */
  readonly options: Readonly<Record<string, unknown>>;
}

export interface ClassData {
  readonly key: RemoteKey;
  readonly members: ClassMembers;
  /** Its options, as plain data. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** A remote function or an actor class, as it is written into a value. */
export type RemoteData = readonly ["function", FunctionData] | readonly ["class", ClassData];

type Makers = { readonly [Kind in RemoteData as Kind[0]]: (data: Kind[1]) => object };

interface Remotes {
  readonly data: WeakMap<object, () => RemoteData>;
  makers: Makers | undefined;
}

const remotes: Remotes = threadSlot("functions", () => ({
  data: new WeakMap(),
  makers: undefined,
}));

export function isRemote(value: object): boolean {
  return remotes.data.has(value);
}

export function remoteDataOf(value: object): RemoteData | undefined {
  return remotes.data.get(value)?.();
}

export function functionDataOf(value: unknown): FunctionData | undefined {
  const data = typeof value === "object" && value !== null ? remoteDataOf(value) : undefined;
  return data?.[0] === "function" ? data[1] : undefined;
}

/** With them no stub is taken for a plain object, whose parts would be looked at. */
const prototypes: Readonly<Record<RemoteData[0], object>> = {
  function: tagged("RemoteFunction"),
  class: tagged("ActorClass"),
};

function tagged(tag: string): object {
  return Object.create(Object.prototype, { [Symbol.toStringTag]: { value: tag } }) as object;
}

/** @param write called whenever the stub is written, as its key is complete only on use */
export function noteRemote(stub: object, kind: RemoteData[0], write: () => RemoteData): void {
  Object.setPrototypeOf(stub, prototypes[kind]);
  remotes.data.set(stub, write);
}

export function setRemoteMakers(makers: Makers): void {
  remotes.makers ??= makers;
}

/** The stub of a function or class that arrived in a value. */
export function makeRemote(data: RemoteData): object {
  const { makers } = remotes;
  if (makers === undefined) throw new RaySystemError("remotes are not set up here");
  return data[0] === "function" ? makers.function(data[1]) : makers.class(data[1]);
}
