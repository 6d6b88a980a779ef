/**
 * The plain data of a DataProto, and the one place where an unknown value is narrowed to it. Must
 * not know the DataProto class.
 */
import { DataProtoError, describe } from "../errors.ts";
import type { OptionKinds } from "../shared/options.ts";
import { isTensor } from "../tensor/tensor.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { NonTensors, Tensors } from "./columns.ts";
import type { MetaInfo } from "./meta-info.ts";

/** One row: tensors without their batch dimension, values, and the metaInfo of the batch. */
export interface DataProtoItem {
  /** Tensors of the row by name, without the dimension of the rows; null without tensors. */
  readonly batch: Tensors | null;
  /** Values of the row by name. */
  readonly nonTensorBatch: Record<string, unknown>;
  /** Values of the whole batch by name, shared with it. */
  readonly metaInfo: MetaInfo;
}

/**
 * A DataProto as plain data, for a codec. batchSize is present only when batch is `{}`: a batch
 * whose tensors were all popped keeps its rows.
 */
export interface DataProtoData {
  /** Tensors by name, each [rows, …]; null without tensors. */
  readonly batch: Tensors | null;
  /** Lists of values by name, one value for each row. */
  readonly nonTensorBatch: NonTensors;
  /** Values of the whole batch by name. */
  readonly metaInfo: MetaInfo;
  /** The number of rows, where `batch` is `{}`. */
  readonly batchSize?: number;
}

/** Parts of a batch by kind, for `DataProto.fromDict`. */
export interface DataProtoDict {
  /** Tensors by name, each [rows, …]. Default: none. */
  readonly tensors?: Tensors;
  /** Lists of values by name, one value for each row. Default: none. */
  readonly nonTensors?: NonTensors;
  /** Values of the whole batch by name. Default: none. */
  readonly metaInfo?: MetaInfo;
  /** Marks metaInfo so that chunk() accepts row counts that do not divide. */
  readonly autoPadding?: boolean;
}

/** Keys of a batch by kind, for `select` and `pop`. */
export interface DataProtoKeys {
  /** Names of tensors. Default: all for `select`, none for `pop`. */
  readonly batchKeys?: readonly string[];
  /** Names in `nonTensorBatch`. Default: all for `select`, none for `pop`. */
  readonly nonTensorBatchKeys?: readonly string[];
  /** Names in `metaInfo`. Default: all for `select`, none for `pop`. */
  readonly metaInfoKeys?: readonly string[];
}

export const dataMembers: OptionKinds<DataProtoData> = {
  batch: "other",
  nonTensorBatch: "other",
  metaInfo: "other",
  batchSize: "other",
};

export const dictMembers: OptionKinds<DataProtoDict> = {
  tensors: "record",
  nonTensors: "record",
  metaInfo: "record",
  autoPadding: "boolean",
};

export const keyOptions: OptionKinds<DataProtoKeys> = {
  batchKeys: "list",
  nonTensorBatchKeys: "list",
  metaInfoKeys: "list",
};

/** Narrows the members; the constructor of a batch checks the contents of the columns. */
export function readData(data: unknown): Partial<DataProtoData> {
  if (!isRecord(data))
    throw new DataProtoError("BAD_VALUE", `a DataProto cannot be made of ${describe(data)}`, {
      actual: data,
    });
  const { batch, nonTensorBatch, metaInfo, batchSize } = data;
  return {
    batch: batch === null ? null : (member("batch", batch) as Tensors),
    nonTensorBatch: member("nonTensorBatch", nonTensorBatch) as NonTensors,
    metaInfo: member("metaInfo", metaInfo),
    ...(batchSize === undefined ? {} : { batchSize: batchSize as number }),
  };
}

/** Separates the tensors and the arrays of one record. */
export function separateKinds(columns: Readonly<Record<string, unknown>>): {
  tensors: Tensors;
  nonTensors: NonTensors;
} {
  const tensors: [string, Tensor][] = [];
  const nonTensors: [string, readonly unknown[]][] = [];
  for (const [key, actual] of Object.entries(columns)) {
    if (isTensor(actual)) tensors.push([key, actual]);
    else if (Array.isArray(actual)) nonTensors.push([key, actual]);
    else
      throw new DataProtoError(
        "BAD_VALUE",
        `"${key}" is neither a tensor nor an array: ${describe(actual)}`,
        { key, actual },
      );
  }
  return { tensors: Object.fromEntries(tensors), nonTensors: Object.fromEntries(nonTensors) };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !ArrayBuffer.isView(value)
  );
}

function member(key: string, value: unknown): Record<string, unknown> {
  if (isRecord(value)) return value;
  throw new DataProtoError("BAD_VALUE", `${key} must be a record, got ${describe(value)}`, {
    key,
    actual: value,
  });
}
