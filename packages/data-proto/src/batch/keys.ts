/**
 * The key operations of a batch: select, pop, rename and union. Pure functions from parts to parts:
 * they do not change their arguments, so that an operation that fails half way leaves its batch
 * unchanged. Must not know rows or the DataProto class.
 */
import { deepEqual } from "../deep-equal.ts";
import { DataProtoError, describe } from "../errors.ts";
import { tensorEquals } from "../tensor/tensor.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { mapColumns, omitColumns, pickColumns } from "./columns.ts";
import type { Tensors } from "./columns.ts";
import type { DataProtoData, DataProtoKeys } from "./data.ts";
import { checkMetaUnion } from "./meta-info.ts";

type Parts = Pick<DataProtoData, "batch" | "nonTensorBatch" | "metaInfo">;

export function hasColumns({ batch, nonTensorBatch }: Parts): boolean {
  return batch !== null || Object.keys(nonTensorBatch).length > 0;
}

export function selectKeys({ batch, nonTensorBatch, metaInfo }: Parts, keys: DataProtoKeys): Parts {
  const { batchKeys, nonTensorBatchKeys, metaInfoKeys } = keys;
  const keepsBatch = batchKeys === undefined || (batch === null && batchKeys.length === 0);
  return {
    batch: keepsBatch ? batch : pickColumns(batch ?? {}, batchKeys, "batch"),
    nonTensorBatch:
      nonTensorBatchKeys === undefined
        ? nonTensorBatch
        : pickKnown(nonTensorBatch, nonTensorBatchKeys),
    metaInfo: metaInfoKeys === undefined ? metaInfo : pickKnown(metaInfo, metaInfoKeys),
  };
}

export function copyParts({ batch, nonTensorBatch, metaInfo }: Parts): Parts {
  return {
    batch: batch && mapColumns(batch, copyTensor),
    nonTensorBatch: structuredClone(nonTensorBatch),
    metaInfo: structuredClone(metaInfo),
  };
}

/**
 * Pops keys. metaInfo stays out of `rest`: a batch shares it with others, so its owner changes it
 * in place.
 */
export function popKeys(
  parts: Parts,
  keys: DataProtoKeys,
): { popped: Parts; rest: Omit<Parts, "metaInfo"> } {
  const { batchKeys = [], nonTensorBatchKeys = [], metaInfoKeys = [] } = keys;
  const { batch, nonTensorBatch, metaInfo } = parts;
  return {
    popped: {
      batch: batchKeys.length === 0 ? null : pickColumns(batch ?? {}, batchKeys, "batch"),
      nonTensorBatch: pickColumns(nonTensorBatch, nonTensorBatchKeys, "nonTensorBatch"),
      metaInfo: pickColumns(metaInfo, metaInfoKeys, "metaInfo"),
    },
    rest: {
      batch: batch && omitColumns(batch, batchKeys),
      nonTensorBatch: omitColumns(nonTensorBatch, nonTensorBatchKeys),
    },
  };
}

export function renameKeys(
  batch: Tensors | null,
  oldKeys: unknown,
  newKeys: unknown,
): Tensors | null {
  const from = keyList("oldKeys", oldKeys);
  const to = keyList("newKeys", newKeys);
  if (
    from.length !== to.length ||
    new Set(from).size !== from.length ||
    new Set(to).size !== to.length
  ) {
    const message = `rename needs as many newKeys as oldKeys and each only once, got [${from.join(", ")}] and [${to.join(", ")}]`;
    throw new DataProtoError("BAD_ARGUMENT", message, { expected: from, actual: to });
  }
  const picked = pickColumns(batch ?? {}, from, "batch");
  const renamed = Object.fromEntries(
    Object.entries(picked).map(([key, tensor]) => [to[from.indexOf(key)] ?? key, tensor]),
  );
  return batch && { ...omitColumns(batch, from), ...renamed };
}

/** Checks metaInfo, too, but the caller merges it in place. */
export function unionKeys(mine: Parts, theirs: Parts): Omit<Parts, "metaInfo"> {
  const batch = unionColumns<Tensor>(mine.batch ?? {}, theirs.batch ?? {}, "tensor", tensorEquals);
  const nonTensorBatch = unionColumns<readonly unknown[]>(
    mine.nonTensorBatch,
    theirs.nonTensorBatch,
    "non-tensor",
    deepEqual,
  );
  checkMetaUnion(mine.metaInfo, theirs.metaInfo);
  return { batch: mine.batch === null && theirs.batch === null ? null : batch, nonTensorBatch };
}

/**
 * Returns all columns of both. Values under a shared key must be equal, else CONFLICT; `theirs` is
 * kept.
 */
function unionColumns<T>(
  mine: Readonly<Record<string, T>>,
  theirs: Readonly<Record<string, T>>,
  kind: string,
  equal: (a: T, b: T) => boolean,
): Record<string, T> {
  for (const [key, actual] of Object.entries(theirs)) {
    if (!Object.hasOwn(mine, key)) continue;
    const expected = mine[key] as T;
    if (!equal(expected, actual))
      throw new DataProtoError("CONFLICT", `${kind} "${key}" differs between the two batches`, {
        key,
        expected,
        actual,
      });
  }
  return { ...mine, ...theirs };
}

function copyTensor({ dtype, shape, data }: Tensor): Tensor {
  return { dtype, shape: [...shape], data: data.slice() };
}

function pickKnown<T>(
  columns: Readonly<Record<string, T>>,
  keys: readonly string[],
): Record<string, T> {
  return Object.fromEntries(
    keys.filter((key) => Object.hasOwn(columns, key)).map((key) => [key, columns[key] as T]),
  );
}

function keyList(name: string, keys: unknown): readonly string[] {
  const list: readonly unknown[] =
    typeof keys === "string" ? [keys] : Array.isArray(keys) ? keys : [null];
  if (list.every((key) => typeof key === "string")) return list;
  throw new DataProtoError(
    "BAD_ARGUMENT",
    `${name} must be a string or a list of strings, got ${describe(keys)}`,
    { key: name, actual: keys },
  );
}
