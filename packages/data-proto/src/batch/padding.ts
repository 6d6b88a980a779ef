/**
 * Pads a batch so that it divides among workers, and removes the padding again. Padding rows are
 * real rows, from the start of the batch, so that every worker can score them; the caller that
 * removes them must pass the padSize of the padding.
 */
import { DataProtoError, requireInteger } from "../errors.ts";
import { rowsBy } from "../tensor/row-index.ts";
import type { DataProto } from "./data-proto.ts";

/**
 * Takes padding rows from the start, cycling as often as necessary. A batch that divides (also one
 * without rows) is returned unchanged, with padSize 0.
 */
export function padDataProtoToDivisor(
  data: DataProto,
  sizeDivisor: number,
): { padded: DataProto; padSize: number } {
  requireInteger("sizeDivisor", sizeDivisor, 1);
  const rows = data.length;
  const padSize = (sizeDivisor - (rows % sizeDivisor)) % sizeDivisor;
  if (rows === 0 || padSize === 0) return { padded: data, padSize: 0 };
  return {
    padded: data.selectIdxs(rowsBy(rows + padSize, (i) => i % rows)),
    padSize,
  };
}

/** Drops the last padSize rows; 0 returns the batch itself. */
export function unpadDataProto(data: DataProto, padSize: number): DataProto {
  requireInteger("padSize", padSize, 0);
  const rows = data.length;
  if (padSize > rows) {
    throw new DataProtoError(
      "BAD_ARGUMENT",
      `cannot drop ${padSize} padding rows from ${rows} rows`,
      { key: "padSize", expected: rows, actual: padSize },
    );
  }
  return padSize === 0 ? data : data.slice(0, rows - padSize);
}
