/**
 * A remote function as a value: it may be passed to actors and tasks, which call it as their own
 * task or on their object.
 *
 * The API sets `make`, which makes a function's stub with options; this file has only its key and
 * its options as data.
 */
import type { RemoteKey } from "../../rpc/remote-key.ts";
import { RaySystemError } from "../../shared/errors.ts";
import { threadSlot } from "../../shared/thread-slot.ts";

export interface FunctionData {
  readonly key: RemoteKey;
  readonly isGenerator: boolean;
  /** Its options, as plain data. */
  readonly options: Readonly<Record<string, unknown>>;
}

interface Functions {
  readonly data: WeakMap<object, FunctionData>;
  make: ((data: FunctionData) => object) | undefined;
}

const functions: Functions = threadSlot("functions", () => ({
  data: new WeakMap(),
  make: undefined,
}));

export function isFunctionRef(value: object): boolean {
  return functions.data.has(value);
}

export function functionDataOf(value: unknown): FunctionData | undefined {
  return typeof value === "object" && value !== null ? functions.data.get(value) : undefined;
}

/** So that it is not taken for a plain object, whose parts would be looked at. */
const prototype: object = Object.create(Object.prototype, {
  [Symbol.toStringTag]: { value: "RemoteFunction" },
}) as object;

export function noteFunctionRef(value: object, data: FunctionData): void {
  Object.setPrototypeOf(value, prototype);
  functions.data.set(value, data);
}

export function setFunctionMaker(make: (data: FunctionData) => object): void {
  functions.make ??= make;
}

/** The stub of a function that arrived in a value. */
export function makeFunctionRef(data: FunctionData): object {
  if (functions.make === undefined)
    throw new RaySystemError("remote functions are not set up here");
  return functions.make(data);
}
