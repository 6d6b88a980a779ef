/**
 * DataProto: the batch that verl passes between all its parts. Owns the three members, the effect
 * of each operation on all of them, and the division into operations in place (union, rename, pop,
 * reorder, padding) and operations that make a new batch (the rest). Must not know tensor memory,
 * files or actors.
 *
 * Invariants: all columns have `length` rows. The constructor and the start of every operation
 * check this, because the three members are open to assignment as in verl
 * (`data.batch.rewards = ...`). Tensor data is never written to. metaInfo is shared by reference
 * with slices, chunks and repeats. A failing operation leaves its batch unchanged.
 */
import { DataProtoError, describe, requireInteger } from "../errors.ts";
import { checkOptions } from "../shared/options.ts";
import {
  isRowIdxs,
  isRowSlice,
  resolveRow,
  resolveRows,
  resolveSlice,
  rowsBy,
} from "../tensor/row-index.ts";
import type { RowIdxs, RowSlice } from "../tensor/row-index.ts";
import { chunkSizes, repeatCounts, splitColumns } from "./chunks.ts";
import { checkColumns, columnsAt, concatColumns, gatherColumns, viewColumns } from "./columns.ts";
import type { NonTensors, Tensors } from "./columns.ts";
import { dataMembers, dictMembers, keyOptions, readData, separateKinds } from "./data.ts";
import type { DataProtoData, DataProtoDict, DataProtoItem, DataProtoKeys } from "./data.ts";
import { epochOrders } from "./epochs.ts";
import type { MiniBatchOptions } from "./epochs.ts";
import { copyParts, hasColumns, popKeys, renameKeys, selectKeys, unionKeys } from "./keys.ts";
import { AUTO_PADDING_KEY, concatMetaInfo, hasAutoPadding } from "./meta-info.ts";
import type { MetaInfo } from "./meta-info.ts";

/**
 * verl `DataProto`: a batch of tensors, values of each row and values of the whole batch. Slices,
 * chunks and repeats share `metaInfo`. A failed operation throws DataProtoError and leaves the
 * batch unchanged.
 */
export class DataProto {
  /** Tensors by name, each [rows, …]; null without tensors. */
  batch: Tensors | null;
  /** Lists of values by name, one value for each row. */
  nonTensorBatch: NonTensors;
  /** Values of the whole batch by name. */
  metaInfo: MetaInfo;
  /** The row count of a batch that is `{}`. */
  #emptyBatchSize = 0;

  /** Throws BAD_ARGUMENT for another member, and what fromDict throws. */
  constructor(data: Partial<DataProtoData> = {}) {
    checkOptions("DataProto", data, dataMembers);
    const { batch = null, nonTensorBatch = {}, metaInfo = {}, batchSize } = data;
    const hasBatch = batch !== null && (Object.keys(batch).length > 0 || batchSize !== undefined);
    this.batch = hasBatch ? { ...batch } : null;
    this.nonTensorBatch = { ...nonTensorBatch };
    this.metaInfo = metaInfo;
    if (batchSize !== undefined) requireInteger("batchSize", batchSize, 0);
    this.#emptyBatchSize = batchSize ?? 0;
    this.#emptyBatchSize = this.checkConsistency();
  }

  /**
   * Throws BATCH_SIZE_MISMATCH (naming two columns), BAD_VALUE, or BAD_ARGUMENT for another member:
   * a misspelt one would be an empty batch.
   */
  static fromDict(dict: DataProtoDict): DataProto {
    checkOptions("DataProto.fromDict", dict, dictMembers);
    const { tensors = {}, nonTensors = {}, metaInfo = {}, autoPadding = false } = dict;
    const marked = autoPadding ? { ...metaInfo, [AUTO_PADDING_KEY]: true } : metaInfo;
    return new DataProto({ batch: tensors, nonTensorBatch: nonTensors, metaInfo: marked });
  }

  /** Puts tensors into batch and arrays into nonTensorBatch; any other value throws BAD_VALUE. */
  static fromSingleDict(
    columns: Readonly<Record<string, unknown>>,
    options: Pick<DataProtoDict, "metaInfo" | "autoPadding"> = {},
  ): DataProto {
    checkOptions("DataProto.fromSingleDict", options, {
      metaInfo: "record",
      autoPadding: "boolean",
    });
    return DataProto.fromDict({ ...separateKinds(columns), ...options });
  }

  /** The inverse of toData, for an untrusted value: its members are checked. */
  static fromData(data: unknown): DataProto {
    return new DataProto(readData(data));
  }

  /**
   * Returns the rows of all batches in order. Every batch must have the keys of the first; repeated
   * metaInfo keys must be equal, and `metrics` are merged.
   */
  static concat(list: readonly DataProto[]): DataProto {
    if (list.length === 0) throw new DataProtoError("BAD_ARGUMENT", "concat of an empty list");
    const batchSize = list.reduce((rows, data) => rows + data.checkConsistency(), 0);
    const metaInfo = concatMetaInfo(list.map((data) => data.metaInfo));
    return new DataProto({ ...concatColumns(list), metaInfo, batchSize });
  }

  /** The number of rows. Throws BATCH_SIZE_MISMATCH if the columns disagree about it. */
  get length(): number {
    return this.checkConsistency();
  }

  /** Returns the number of rows; throws if the columns disagree about it. */
  checkConsistency(): number {
    const rows = checkColumns(this);
    if (this.batch === null || Object.keys(this.batch).length > 0) return rows ?? 0;
    if (rows === null || rows === this.#emptyBatchSize) return this.#emptyBatchSize;
    const expected = this.#emptyBatchSize;
    const message = `${expected} rows had the batch whose tensors were popped, nonTensorBatch has ${rows}`;
    throw new DataProtoError("BATCH_SIZE_MISMATCH", message, { expected, actual: rows });
  }

  /** Returns plain data with the same tensors and new records. */
  toData(): DataProtoData {
    const batchSize = this.checkConsistency();
    const { batch, nonTensorBatch, metaInfo } = this;
    const isEmpty = batch !== null && Object.keys(batch).length === 0;
    return {
      batch: batch && { ...batch },
      nonTensorBatch: { ...nonTensorBatch },
      metaInfo,
      ...(isEmpty ? { batchSize } : {}),
    };
  }

  /** Indexes like data[i], data[start:stop] or data[indices or mask] of verl. */
  index(item: number): DataProtoItem;
  index(item: RowSlice | RowIdxs): DataProto;
  index(item: unknown): DataProtoItem | DataProto {
    if (typeof item === "number") return this.item(item);
    if (isRowIdxs(item)) return this.selectIdxs(item);
    if (isRowSlice(item)) return this.slice(item.start, item.stop, item.step);
    const message = `Indexing with ${describe(item)} is not supported`;
    throw new DataProtoError("BAD_INDEX", message, { actual: item });
  }

  /** Returns one row; negative counts from the end. */
  item(index: number): DataProtoItem {
    const row = resolveRow(index, this.checkConsistency());
    return { ...columnsAt(this, row), metaInfo: this.metaInfo };
  }

  /**
   * Slices like Python's data[start:stop:step], step > 0. Tensors are views for step 1, copies
   * otherwise.
   */
  slice(start?: number | null, stop?: number | null, step?: number | null): DataProto {
    const bounds = resolveSlice({ start, stop, step }, this.checkConsistency());
    const { start: first, stop: end, step: every } = bounds;
    if (every === 1) return view(this, first, end);
    return gather(
      this,
      rowsBy(Math.ceil((end - first) / every), (i) => first + i * every),
    );
  }

  /**
   * Returns copies of the named rows, in that order and as often as named, or of the rows where a
   * mask is true.
   */
  selectIdxs(idxs: RowIdxs): DataProto {
    return gather(this, resolveRows(idxs, this.checkConsistency()));
  }

  /**
   * Returns some of the keys; an absent list means all. Unknown batchKeys throw KEY_NOT_FOUND, and
   * other unknown keys are ignored, as in verl. Values are shared, unless `deepcopy` is set
   * (structuredClone of values).
   */
  select(options: DataProtoKeys & { readonly deepcopy?: boolean } = {}): DataProto {
    checkOptions("select", options, { ...keyOptions, deepcopy: "boolean" });
    const batchSize = this.checkConsistency();
    const parts = selectKeys(this, options);
    return new DataProto({ ...(options.deepcopy === true ? copyParts(parts) : parts), batchSize });
  }

  /** Moves keys into a new batch; an absent list means none. A missing key throws KEY_NOT_FOUND. */
  pop(keys: DataProtoKeys): DataProto {
    checkOptions("pop", keys, keyOptions);
    this.#emptyBatchSize = this.checkConsistency();
    const { popped, rest } = popKeys(this, keys);
    this.batch = rest.batch;
    this.nonTensorBatch = rest.nonTensorBatch;
    for (const key of keys.metaInfoKeys ?? []) delete this.metaInfo[key];
    return new DataProto(popped);
  }

  /** Renames tensors in place, all at once (two keys can swap); a key in the way is replaced. */
  rename(oldKeys: string | readonly string[], newKeys: string | readonly string[]): this {
    this.batch = renameKeys(this.batch, oldKeys, newKeys);
    return this;
  }

  /**
   * Takes the columns and metaInfo of `other` into this batch and returns it. Values under a shared
   * key must be equal (tensors: bitwise; others: deep, NaN equals NaN), else CONFLICT.
   */
  union(other: DataProto): this {
    const expected = this.checkConsistency();
    const actual = other.checkConsistency();
    if (expected !== actual && hasColumns(this) && hasColumns(other)) {
      const message = `union needs batches of the same size, got ${expected} and ${actual} rows`;
      throw new DataProtoError("BATCH_SIZE_MISMATCH", message, { expected, actual });
    }
    const { batch, nonTensorBatch } = unionKeys(this, other);
    this.#emptyBatchSize = hasColumns(this) ? expected : actual;
    this.batch = batch;
    this.nonTensorBatch = nonTensorBatch;
    Object.assign(this.metaInfo, other.metaInfo);
    return this;
  }

  /** Repeats each row. `interleave` gives aabbcc (default), otherwise abcabc. */
  repeat(repeatTimes = 2, options: { readonly interleave?: boolean } = {}): DataProto {
    checkOptions("repeat", options, { interleave: "boolean" });
    const { interleave = true } = options;
    requireInteger("repeatTimes", repeatTimes, 0);
    const rows = this.checkConsistency();
    const rowOf = (i: number): number => (interleave ? Math.floor(i / repeatTimes) : i % rows);
    return gather(this, rowsBy(rows * repeatTimes, rowOf));
  }

  /** Repeats row i `repeatTimes[i]` times. */
  sampleLevelRepeat(repeatTimes: Exclude<RowIdxs, readonly boolean[]>): DataProto {
    return gather(this, repeatCounts(repeatTimes, this.checkConsistency()));
  }

  /**
   * Reshapes split keys from [B, C, ...] to [B * n, C / n, ...]; every other column repeats each
   * row n times. Unknown split keys are ignored, as in verl.
   */
  unfoldColumnChunks(splitCount: number, splitKeys: readonly string[] = []): DataProto {
    requireInteger("splitCount", splitCount, 1);
    const batchSize = this.checkConsistency() * splitCount;
    const repeated = this.repeat(splitCount);
    const split = splitColumns(
      this.batch ?? {},
      this.nonTensorBatch,
      new Set(splitKeys),
      splitCount,
    );
    return new DataProto({
      batch: this.batch && { ...repeated.batch, ...split.tensors },
      nonTensorBatch: { ...repeated.nonTensorBatch, ...split.nonTensors },
      metaInfo: this.metaInfo,
      batchSize,
    });
  }

  /**
   * Returns equal parts in order, as views. Throws UNEQUAL_CHUNK when the rows do not divide,
   * unless metaInfo requests auto padding (then the last ones are smaller).
   */
  chunk(chunks: number): DataProto[] {
    const sizes = chunkSizes(this.checkConsistency(), chunks, {
      autoPadding: hasAutoPadding(this.metaInfo),
      asTensors: this.batch !== null,
    });
    let start = 0;
    return sizes.map((size) => view(this, start, (start += size)));
  }

  /** Returns parts of `splitSize` rows in order, as views; the last one may be smaller. */
  split(splitSize: number): DataProto[] {
    requireInteger("splitSize", splitSize, 1);
    const rows = this.checkConsistency();
    return Array.from({ length: Math.ceil(rows / splitSize) }, (_, i) =>
      view(this, i * splitSize, Math.min(rows, (i + 1) * splitSize)),
    );
  }

  /** Reorders in place: the batch has the named rows, in that order. */
  reorder(indices: RowIdxs): void {
    const next = this.selectIdxs(indices);
    this.batch = next.batch;
    this.nonTensorBatch = next.nonTensorBatch;
    this.#emptyBatchSize = next.#emptyBatchSize;
  }

  /** Appends in place `paddingSize` copies of the last or of the first row. */
  padding(paddingSize: number, paddingCandidate: "last" | "first" = "last"): void {
    requireInteger("paddingSize", paddingSize, 0);
    const rows = this.checkConsistency();
    if (paddingSize === 0) return;
    const candidate = resolveRow(paddingCandidate === "first" ? 0 : -1, rows);
    this.reorder(rowsBy(rows + paddingSize, (i) => (i < rows ? i : candidate)));
  }

  /**
   * Makes `epochs` passes in batches of `miniBatchSize` rows, which must divide the batch. Later
   * changes to this batch do not reach the iterator.
   */
  makeIterator(
    miniBatchSize: number,
    epochs: number,
    options: MiniBatchOptions = {},
  ): Generator<DataProto, void, undefined> {
    checkOptions("makeIterator", options, { shuffle: "boolean", seed: "number" });
    requireInteger("miniBatchSize", miniBatchSize, 1);
    requireInteger("epochs", epochs, 0);
    const rows = this.checkConsistency();
    if (rows % miniBatchSize === 0)
      return miniBatches(this.select(), miniBatchSize, epochOrders(rows, epochs, options));
    const message = `${rows} rows do not divide into mini batches of ${miniBatchSize}`;
    throw new DataProtoError("UNEQUAL_CHUNK", message, { expected: miniBatchSize, actual: rows });
  }
}

function* miniBatches(
  data: DataProto,
  size: number,
  orders: Iterable<Int32Array | null>,
): Generator<DataProto, void, undefined> {
  for (const order of orders) yield* (order === null ? data : gather(data, order)).split(size);
}

function view(data: DataProto, start: number, stop: number): DataProto {
  const { metaInfo } = data;
  return new DataProto({ ...viewColumns(data, start, stop), metaInfo, batchSize: stop - start });
}

function gather(data: DataProto, rows: Int32Array): DataProto {
  const { metaInfo } = data;
  return new DataProto({ ...gatherColumns(data, rows), metaInfo, batchSize: rows.length });
}
