/**
 * Groups rows into a second batch dimension and ungroups them: [B, ...] <-> [G, B / G, ...].
 * Tensors share their memory under another shape; values go into or come out of nested arrays.
 * Neither function changes its argument. A folded batch is an ordinary DataProto with G rows.
 */
import { DataProtoError, describe, requireInteger } from "../errors.ts";
import { reshape } from "../tensor/tensor.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { mapColumns } from "./columns.ts";
import { DataProto } from "./data-proto.ts";

/**
 * Folds neighbouring rows into `newBatchSize` groups. Throws UNEQUAL_CHUNK unless that divides the
 * rows.
 */
export function foldBatchDim(data: DataProto, newBatchSize: number): DataProto {
  requireInteger("newBatchSize", newBatchSize, 1);
  const rows = data.length;
  const size = rows / newBatchSize;
  if (!Number.isInteger(size)) {
    throw new DataProtoError(
      "UNEQUAL_CHUNK",
      `${rows} rows do not fold into ${newBatchSize} groups`,
      { expected: newBatchSize, actual: rows },
    );
  }
  return new DataProto({
    batch:
      data.batch &&
      mapColumns(data.batch, (tensor) =>
        reshape(tensor, [newBatchSize, size, ...tensor.shape.slice(1)]),
      ),
    nonTensorBatch: mapColumns(data.nonTensorBatch, (values) =>
      Array.from({ length: newBatchSize }, (_, group) =>
        values.slice(group * size, (group + 1) * size),
      ),
    ),
    metaInfo: data.metaInfo,
    batchSize: newBatchSize,
  });
}

/**
 * Unfolds the first `batchDims` dimensions into one. Throws BAD_SHAPE for a column with fewer
 * dimensions; columns that differ in them throw BATCH_SIZE_MISMATCH.
 */
export function unfoldBatchDim(data: DataProto, batchDims = 2): DataProto {
  requireInteger("batchDims", batchDims, 1);
  const { batch, nonTensorBatch, metaInfo } = data;
  if (batch !== null && Object.keys(batch).length === 0) {
    throw new DataProtoError(
      "BAD_SHAPE",
      "cannot unfold a batch without tensors: nothing says how large its groups are",
    );
  }
  return new DataProto({
    batch: batch && mapColumns(batch, (tensor, key) => unfoldTensor(tensor, key, batchDims)),
    nonTensorBatch: mapColumns(nonTensorBatch, (values, key) =>
      unfoldValues(values, key, batchDims),
    ),
    metaInfo,
  });
}

function unfoldTensor(tensor: Tensor, key: string, batchDims: number): Tensor {
  const folded = tensor.shape.slice(0, batchDims);
  if (folded.length < batchDims)
    throw shallowError(key, batchDims, `has shape [${tensor.shape.join(", ")}]`, tensor.shape);
  return reshape(tensor, [
    folded.reduce((rows, size) => rows * size, 1),
    ...tensor.shape.slice(batchDims),
  ]);
}

function unfoldValues(
  values: readonly unknown[],
  key: string,
  batchDims: number,
): readonly unknown[] {
  let rows = values;
  for (let depth = 1; depth < batchDims; depth++) {
    const flat = rows.find((row) => !Array.isArray(row));
    if (flat !== undefined)
      throw shallowError(key, batchDims, `has ${describe(flat)} at depth ${depth}`, flat);
    rows = rows.flat(1);
  }
  return rows;
}

function shallowError(
  key: string,
  batchDims: number,
  found: string,
  actual: unknown,
): DataProtoError {
  return new DataProtoError(
    "BAD_SHAPE",
    `cannot unfold ${batchDims} batch dimensions: "${key}" ${found}`,
    { key, expected: batchDims, actual },
  );
}
