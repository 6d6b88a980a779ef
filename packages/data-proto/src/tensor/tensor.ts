/**
 * Tensor: plain readonly data, a typed array with a dtype and a shape, rows contiguous in C order.
 * Owns the dtypes, the constructors, shapes and bitwise equality. Must not know batches, keys or
 * files; the owner of a formula does its own arithmetic.
 *
 * Invariants: data.length is the product of shape; bool data contains only 0 and 1. Data may be a
 * view of a larger or of a shared buffer, so this package never writes into the data of a tensor
 * that it was given.
 *
 * There is no int64. verl's int64 columns are token ids, masks, positions and lengths, all far
 * below 2^31: as int32 they take half the bytes, and every tensor's elements stay `number` (a
 * BigInt64Array would make each consumer handle bigint). A value that does not fit is refused,
 * never wrapped; ids beyond 2^31 go into float64 (exact up to 2^53) or into nonTensorBatch.
 */
import { DataProtoError, describe } from "../errors.ts";

interface DataOf {
  readonly float32: Float32Array;
  readonly float64: Float64Array;
  readonly int32: Int32Array;
  readonly uint8: Uint8Array;
  readonly bool: Uint8Array;
}

/** Names of the element types. */
export type Dtype = keyof DataOf;

/** The typed array that holds elements of the dtype. */
export type TensorData<D extends Dtype = Dtype> = DataOf[D];

/** A tensor as plain data. No operation of this package writes to its elements. */
export interface Tensor<D extends Dtype = Dtype> {
  /** The type of the elements. */
  readonly dtype: D;
  /** The size of each dimension; [] for a single number. */
  readonly shape: readonly number[];
  /** The elements, row-major: the last dimension varies fastest. */
  readonly data: TensorData<D>;
}

/** Numbers or booleans in arrays of equal lengths, as deep as the shape has dimensions. */
export type Nested = number | boolean | readonly Nested[];

const constructors = {
  float32: Float32Array,
  float64: Float64Array,
  int32: Int32Array,
  uint8: Uint8Array,
  bool: Uint8Array,
} as const;

/**
 * Copies nested arrays. The dtype is given, not guessed: 1 and 1.0 are one value here. Throws
 * BAD_DTYPE (there is no such one), BAD_SHAPE (ragged), BAD_VALUE (out of range).
 */
export function tensor<D extends Dtype>(values: Nested, dtype: D): Tensor<D> {
  const shape: number[] = [];
  for (let level: Nested | undefined = values; isLevel(level); level = level[0])
    shape.push(level.length);
  const data = allocate(dtype, elementCount(shape));
  let filled = 0;
  const fill = (level: Nested, depth: number): void => {
    if (!isLevel(level)) {
      if (depth !== shape.length) throw raggedError(shape, depth, level);
      data[filled++] = storable(level, dtype);
      return;
    }
    if (level.length !== shape[depth]) throw raggedError(shape, depth, level);
    for (const next of level) fill(next, depth + 1);
  };
  fill(values, 0);
  return { dtype, shape, data };
}

/**
 * Wraps a typed array without a copy. A Uint8Array is uint8 unless dtype says "bool"; the shape
 * defaults to one dimension.
 */
export function asTensor(data: Float32Array, shape?: readonly number[]): Tensor<"float32">;
export function asTensor(data: Int32Array, shape?: readonly number[]): Tensor<"int32">;
export function asTensor(data: TensorData, shape?: readonly number[], dtype?: Dtype): Tensor;
export function asTensor(data: TensorData, shape?: readonly number[], dtype?: Dtype): Tensor {
  if (dtype !== undefined) requireDtype(dtype);
  if (shape !== undefined) requireShape(shape);
  const made = { dtype: dtype ?? dtypeOf(data), shape: [...(shape ?? [data.length])], data };
  const problem = tensorProblem(made);
  if (problem !== null) {
    const code = data instanceof constructors[made.dtype] ? "BAD_SHAPE" : "BAD_DTYPE";
    throw new DataProtoError(code, `asTensor: ${problem}`, {
      expected: made.shape,
      actual: data.length,
    });
  }
  if (made.dtype === "bool") for (const value of data) storable(value, "bool");
  return made;
}

/** Creates a tensor of zeros. Throws BAD_SHAPE unless the shape has integers from 0, BAD_DTYPE. */
export function zeros<D extends Dtype>(shape: readonly number[], dtype: D): Tensor<D> {
  requireShape(shape);
  return { dtype, shape: [...shape], data: allocate(dtype, elementCount(shape)) };
}

/**
 * The inverse of `tensor`: bool elements come back as booleans, a tensor without dimensions as one
 * element.
 */
export function toNested(source: Tensor): Nested {
  const { data, dtype, shape } = source;
  const read = (depth: number, offset: number, span: number): Nested => {
    const size = shape[depth];
    if (size === undefined) return dtype === "bool" ? data[offset] !== 0 : (data[offset] ?? 0);
    const step = size === 0 ? 0 : span / size;
    return Array.from({ length: size }, (_, i) => read(depth + 1, offset + i * step, step));
  };
  return read(0, 0, data.length);
}

/** Returns the data under another shape with as many elements. */
export function reshape<D extends Dtype>(source: Tensor<D>, shape: readonly number[]): Tensor<D> {
  requireShape(shape);
  if (elementCount(shape) !== source.data.length) {
    const message = `cannot see a tensor of shape [${source.shape.join(", ")}] as [${shape.join(", ")}]`;
    throw new DataProtoError("BAD_SHAPE", message, { expected: shape, actual: source.shape });
  }
  return { dtype: source.dtype, shape: [...shape], data: source.data };
}

/**
 * Whether dtype, shape and bits are equal: NaN equals a NaN with equal bits, and 0 differs from -0.
 */
export function tensorEquals(a: Tensor, b: Tensor): boolean {
  if (a.dtype !== b.dtype || a.shape.length !== b.shape.length) return false;
  return a.shape.every((size, i) => size === b.shape[i]) && bytesOf(a.data).equals(bytesOf(b.data));
}

/** Returns whether a value is a tensor whose data fits its dtype and shape. */
export function isTensor(value: unknown): value is Tensor {
  return tensorProblem(value) === null;
}

/**
 * Returns the reason why a value is not a tensor, or null if it is one. The elements of a bool
 * tensor are not checked: that would cost a pass over the data.
 */
export function tensorProblem(value: unknown): string | null {
  if (
    typeof value !== "object" ||
    value === null ||
    !("dtype" in value && "shape" in value && "data" in value)
  ) {
    return `${describe(value)} is not a tensor {dtype, shape, data}`;
  }
  const { dtype, shape, data } = value;
  if (!isDtype(dtype)) return dtypeProblem(dtype);
  if (!isShape(shape)) return shapeProblem(shape);
  if (!(data instanceof constructors[dtype]))
    return `data of dtype ${dtype} must be a ${constructors[dtype].name}, got ${describe(data)}`;
  if (data.length === elementCount(shape)) return null;
  return `shape [${shape.join(", ")}] needs ${elementCount(shape)} elements, data has ${data.length}`;
}

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

/** Returns zeroed memory. Throws BAD_DTYPE. */
export function allocate<D extends Dtype>(dtype: D, length: number): TensorData<D> {
  requireDtype(dtype);
  return new constructors[dtype](length) as TensorData<D>;
}

function isLevel(level: Nested | undefined): level is readonly Nested[] {
  return Array.isArray(level);
}

function isDtype(value: unknown): value is Dtype {
  return typeof value === "string" && Object.hasOwn(constructors, value);
}

function dtypeProblem(dtype: unknown): string {
  const known = Object.keys(constructors).join(", ");
  const hint = dtype === "int64" ? "; int64 is held as int32 here" : "";
  return `dtype must be one of ${known}, got ${describe(dtype)}${hint}`;
}

function requireDtype(dtype: unknown): void {
  if (isDtype(dtype)) return;
  throw new DataProtoError("BAD_DTYPE", dtypeProblem(dtype), {
    key: "dtype",
    expected: Object.keys(constructors),
    actual: dtype,
  });
}

function isShape(shape: unknown): shape is readonly number[] {
  return (
    Array.isArray(shape) && shape.every((size) => Number.isSafeInteger(size) && Number(size) >= 0)
  );
}

function shapeProblem(shape: unknown): string {
  const got = Array.isArray(shape) ? `[${shape.join(", ")}]` : describe(shape);
  return `shape must be an array of sizes, got ${got}`;
}

function requireShape(shape: unknown): void {
  if (isShape(shape)) return;
  throw new DataProtoError("BAD_SHAPE", shapeProblem(shape), { key: "shape", actual: shape });
}

function dtypeOf(data: unknown): Dtype {
  if (data instanceof Float32Array) return "float32";
  if (data instanceof Float64Array) return "float64";
  if (data instanceof Int32Array) return "int32";
  if (data instanceof Uint8Array) return "uint8";
  const hint = data instanceof BigInt64Array ? "; int64 is held as int32 here" : "";
  throw new DataProtoError("BAD_DTYPE", `no dtype is held as ${describe(data)}${hint}`, {
    actual: data,
  });
}

function storable(value: unknown, dtype: Dtype): number {
  const number = typeof value === "boolean" ? Number(value) : value;
  if (typeof number === "number" && fits(number, dtype)) return number;
  throw new DataProtoError("BAD_VALUE", `${describe(value)} is not a value of dtype ${dtype}`, {
    expected: dtype,
    actual: value,
  });
}

/** float32 accepts every number and rounds it. */
function fits(value: number, dtype: Dtype): boolean {
  if (dtype === "int32") return value === (value | 0);
  if (dtype === "uint8") return value === (value & 255);
  return dtype !== "bool" || value === 0 || value === 1;
}

function raggedError(shape: readonly number[], depth: number, found: Nested): DataProtoError {
  const wanted = depth < shape.length ? `an array of length ${String(shape[depth])}` : "a number";
  const message = `nested arrays are ragged: at depth ${depth} the first row has ${wanted}, another has ${describe(found)}`;
  return new DataProtoError("BAD_SHAPE", message, { expected: shape, actual: found });
}

function bytesOf(data: TensorData): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
