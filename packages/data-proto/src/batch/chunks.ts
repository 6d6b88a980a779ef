/**
 * How rows and columns divide: the sizes of chunks, per-row repeats, and columns cut into parts.
 * Pure functions over counts and columns; must not know the DataProto class.
 */
import { DataProtoError, describe, requireInteger } from "../errors.ts";
import { isTensor, reshape } from "../tensor/tensor.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { mapColumns } from "./columns.ts";
import type { NonTensors, Tensors } from "./columns.ts";

/**
 * Returns the rows of each chunk. Without auto padding all are equal. With it, batches with tensors
 * have torch.chunk's sizes (ceil(rows / chunks), the last one smaller), and others have
 * numpy.array_split's (the first ones larger by one). torch makes fewer chunks than requested when
 * its sizes run out (5 rows in 4); verl fails there, and so does this function, with UNEQUAL_CHUNK.
 */
export function chunkSizes(
  rows: number,
  chunks: number,
  mode: { readonly autoPadding: boolean; readonly asTensors: boolean },
): number[] {
  requireInteger("chunks", chunks, 1);
  if (!mode.autoPadding && rows % chunks !== 0)
    throw unequalError(
      `only support equal chunk: ${rows} rows do not divide by ${chunks}`,
      chunks,
      rows,
    );
  if (!mode.asTensors)
    return Array.from(
      { length: chunks },
      (_, i) => Math.floor(rows / chunks) + (i < rows % chunks ? 1 : 0),
    );
  const size = Math.ceil(rows / chunks);
  const filled = size === 0 ? chunks : Math.ceil(rows / size);
  if (filled !== chunks) {
    throw unequalError(
      `${rows} rows in parts of ${size} fill ${filled} chunks, ${chunks} were asked for: pad the batch first`,
      chunks,
      rows,
    );
  }
  return Array.from({ length: chunks }, (_, i) => Math.min(size, rows - i * size));
}

/** Returns row numbers with row i named counts[i] times. */
export function repeatCounts(counts: ArrayLike<number> | Tensor, rows: number): Int32Array {
  const list = isTensor(counts) ? counts.data : counts;
  const shape = isTensor(counts) ? counts.shape : [counts.length];
  if (shape.length !== 1 || list.length !== rows) {
    const message = `repeatTimes must have one count per row, got shape [${shape.join(", ")}] for ${rows} rows`;
    throw new DataProtoError("BAD_ARGUMENT", message, {
      key: "repeatTimes",
      expected: rows,
      actual: shape,
    });
  }
  const picked: number[] = [];
  for (let row = 0; row < rows; row++) {
    const times = list[row] ?? 0;
    requireInteger("repeatTimes", times, 0);
    for (let i = 0; i < times; i++) picked.push(row);
  }
  return Int32Array.from(picked);
}

/**
 * Cuts the columns named by `keys` along dimension 1; the others are left out. Tensors share their
 * memory under another shape.
 */
export function splitColumns(
  tensors: Tensors,
  nonTensors: NonTensors,
  keys: ReadonlySet<string>,
  parts: number,
): { tensors: Tensors; nonTensors: NonTensors } {
  const isSplit = ([key]: readonly [string, unknown]): boolean => keys.has(key);
  return {
    tensors: mapColumns(
      Object.fromEntries(Object.entries(tensors).filter(isSplit)),
      (tensor, key) => splitTensor(tensor, key, parts),
    ),
    nonTensors: mapColumns(
      Object.fromEntries(Object.entries(nonTensors).filter(isSplit)),
      (values, key) => values.flatMap((row) => splitValue(row, key, parts)),
    ),
  };
}

/**
 * Reshapes [B, C, ...] to [B * parts, C / parts, ...]: the parts of a row lie side by side in
 * memory.
 */
function splitTensor(tensor: Tensor, key: string, parts: number): Tensor {
  const [rows = 0, width, ...rest] = tensor.shape;
  return reshape(tensor, [rows * parts, divisibleWidth(key, width, parts), ...rest]);
}

function splitValue(row: unknown, key: string, parts: number): unknown[] {
  const cells: readonly unknown[] = Array.isArray(row) ? row : [];
  const width = divisibleWidth(key, Array.isArray(row) ? row.length : undefined, parts);
  return Array.from({ length: parts }, (_, i) => cells.slice(i * width, (i + 1) * width));
}

function divisibleWidth(key: string, width: number | undefined, parts: number): number {
  if (width !== undefined && width % parts === 0) return width / parts;
  const message = `"${key}" cannot be split into ${parts} column chunks: ${width === undefined ? "it has no columns" : `it has ${describe(width)}`}`;
  throw new DataProtoError("UNEQUAL_CHUNK", message, { key, expected: parts, actual: width });
}

function unequalError(message: string, expected: number, actual: number): DataProtoError {
  return new DataProtoError("UNEQUAL_CHUNK", message, { expected, actual });
}
