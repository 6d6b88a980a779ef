/**
 * Tensors as rows along dimension 0: count, view, gather, concatenate. Pure functions; a contiguous
 * range is a view of the same memory, everything else a copy. Must not know that rows belong to
 * samples.
 */
import { DataProtoError } from "../errors.ts";
import { resolveRow } from "./row-index.ts";
import { allocate, elementCount } from "./tensor.ts";
import type { Dtype, Tensor, TensorData } from "./tensor.ts";

/** Returns the size of the first dimension. Throws BAD_SHAPE for a tensor without dimensions. */
export function rowCount(source: Tensor): number {
  const rows = source.shape[0];
  if (rows === undefined)
    throw new DataProtoError("BAD_SHAPE", "a tensor without dimensions has no rows", {
      actual: source.shape,
    });
  return rows;
}

/** Returns one row without its batch dimension, as a view. Negative counts from the end. */
export function rowAt<D extends Dtype>(source: Tensor<D>, index: number): Tensor<D> {
  const row = resolveRow(index, rowCount(source));
  const { data } = sliceRows(source, row, row + 1);
  return { dtype: source.dtype, shape: source.shape.slice(1), data };
}

/**
 * Returns rows start .. stop - 1 as a view. Bounds are exact here; row-index implements Python's
 * clamping.
 */
export function sliceRows<D extends Dtype>(
  source: Tensor<D>,
  start: number,
  stop: number,
): Tensor<D> {
  const rows = rowCount(source);
  if (!(start >= 0 && start <= stop && stop <= rows)) {
    throw new DataProtoError("BAD_INDEX", `rows ${start}..${stop} are not within ${rows} rows`, {
      expected: rows,
      actual: [start, stop],
    });
  }
  const size = rowSize(source);
  return {
    dtype: source.dtype,
    shape: [stop - start, ...source.shape.slice(1)],
    data: view(source, start * size, stop * size),
  };
}

/**
 * Returns a copy of the named rows, in that order; repeats are allowed, and negative counts from
 * the end.
 */
export function gatherRows<D extends Dtype>(
  source: Tensor<D>,
  indices: ArrayLike<number>,
): Tensor<D> {
  const rows = rowCount(source);
  const size = rowSize(source);
  const data = allocate(source.dtype, indices.length * size);
  for (let i = 0; i < indices.length;) {
    const first = resolveRow(indices[i], rows);
    let run = 1;
    // Neighbours are copied together: repeats and orders of groups are mostly runs.
    while (first + run < rows && indices[i + run] === first + run) run++;
    data.set(view(source, first * size, (first + run) * size), i * size);
    i += run;
  }
  return { dtype: source.dtype, shape: [indices.length, ...source.shape.slice(1)], data };
}

/**
 * Returns the rows of all tensors, one after the other. dtypes and the shapes of a row must agree;
 * at least one tensor is necessary.
 */
export function concatRows(list: readonly Tensor[]): Tensor {
  const [first] = list;
  if (first === undefined)
    throw new DataProtoError("BAD_ARGUMENT", "concatRows needs at least one tensor, got none");
  let rows = 0;
  for (const part of list) {
    rows += rowCount(part);
    if (part.dtype !== first.dtype) {
      const message = `cannot append rows of dtype ${part.dtype} to ${first.dtype}`;
      throw new DataProtoError("BAD_DTYPE", message, { expected: first.dtype, actual: part.dtype });
    }
    if (
      part.shape.length !== first.shape.length ||
      part.shape.some((size, i) => i > 0 && size !== first.shape[i])
    ) {
      const message = `cannot append rows of shape [${part.shape.slice(1).join(", ")}] to rows of shape [${first.shape.slice(1).join(", ")}]`;
      throw new DataProtoError("BAD_SHAPE", message, { expected: first.shape, actual: part.shape });
    }
  }
  const data = allocate(first.dtype, rows * rowSize(first));
  let offset = 0;
  for (const part of list) {
    data.set(part.data, offset);
    offset += part.data.length;
  }
  return { dtype: first.dtype, shape: [rows, ...first.shape.slice(1)], data };
}

function rowSize(source: Tensor): number {
  return elementCount(source.shape.slice(1));
}

function view<D extends Dtype>(source: Tensor<D>, start: number, stop: number): TensorData<D> {
  return source.data.subarray(start, stop) as TensorData<D>;
}
