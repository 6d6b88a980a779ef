/**
 * The public names of @rayling/data-proto.
 */
export { AUTO_PADDING_KEY } from "./batch/meta-info.ts";
export type { MetaInfo } from "./batch/meta-info.ts";
export { DataProto } from "./batch/data-proto.ts";
export type { DataProtoData, DataProtoDict, DataProtoItem, DataProtoKeys } from "./batch/data.ts";
export type { NonTensors, Tensors } from "./batch/columns.ts";
export type { MiniBatchOptions } from "./batch/epochs.ts";
export { foldBatchDim, unfoldBatchDim } from "./batch/fold.ts";
export { padDataProtoToDivisor, unpadDataProto } from "./batch/padding.ts";
export { deepEqual } from "./deep-equal.ts";
export { DataProtoError, HubFileError, JsonlError, ParquetError } from "./errors.ts";
export type {
  DataProtoErrorCode,
  DataProtoErrorFields,
  JsonlErrorCode,
  JsonlErrorFields,
  ParquetErrorCode,
  ParquetErrorFields,
} from "./errors.ts";
export { LineMarks } from "./jsonl/line-marks.ts";
export { DEFAULT_MAX_LINE_BYTES, readJsonl } from "./jsonl/reader.ts";
export type { JsonlRecord, ReadJsonlOptions } from "./jsonl/reader.ts";
export { jsonValue } from "./jsonl/parse-json.ts";
export { jsonText } from "./jsonl/record.ts";
export { openJsonlWriter } from "./jsonl/writer.ts";
export type { JsonlWriter, JsonlWriterOptions } from "./jsonl/writer.ts";
export { parquetInfo, readParquet } from "./parquet/reader.ts";
export type { ParquetInfo, ParquetRecord, ReadParquetOptions } from "./parquet/reader.ts";
export { writeParquet } from "./parquet/writer.ts";
export type { ParquetColumn, WriteParquetOptions } from "./parquet/writer.ts";
export { hubFile, hubFolder, isHubPath } from "./records/hub.ts";
export { readRecords } from "./records/reader.ts";
export type { PlacedRecord, ReadRecordsOptions } from "./records/reader.ts";
export type { RowIdxs, RowSlice } from "./tensor/row-index.ts";
export { concatRows, gatherRows, rowAt, rowCount, sliceRows } from "./tensor/rows.ts";
export {
  asTensor,
  isTensor,
  reshape,
  tensor,
  tensorEquals,
  toNested,
  zeros,
} from "./tensor/tensor.ts";
export type { Dtype, Nested, Tensor, TensorData } from "./tensor/tensor.ts";
