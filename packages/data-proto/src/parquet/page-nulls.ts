/**
 * Data pages of version 2 whose headers count too few nulls. pyarrow leaves out empty and missing
 * lists, and the library takes all other entries for values, which are not there. Here the number
 * is that of entries below the highest definition level, as other readers count.
 */
import { readStruct, readVarint, type ThriftFields, wholeNumber } from "./thrift.ts";

/** The ids of the fields in Parquet's PageHeader and DataPageHeaderV2 (parquet.thrift). */
const COMPRESSED_SIZE = 3;
const DATA_PAGE_V2 = 8;
const ENTRIES = 1;
const NULLS = 2;
const DEFINITION_BYTES = 5;
const REPETITION_BYTES = 6;

/**
 * Returns the pages of one column with corrected headers; the given bytes where nothing is wrong.
 * Throws RangeError for headers that cannot be read.
 *
 * @param highest the definition level of a value that is there
 */
export function withNullsCounted(given: ArrayBuffer, highest: number): ArrayBuffer {
  const chunk = new Uint8Array(given);
  const parts: Uint8Array[] = [];
  let copied = 0;
  // The library, too, takes a single byte at the end for none.
  for (let at = 0; at < chunk.length - 1;) {
    const { fields, end } = readStruct(chunk, at);
    const page = fields.get(DATA_PAGE_V2)?.fields;
    const nulls = page?.get(NULLS);
    const counted = page === undefined ? undefined : nullsOf(chunk, end, page, highest);
    if (nulls !== undefined && counted !== undefined && nulls.number !== counted) {
      parts.push(chunk.subarray(copied, nulls.from), wholeNumber(counted));
      copied = nulls.to;
    }
    at = end + numberOf(fields, COMPRESSED_SIZE);
  }
  if (parts.length === 0) return given;
  // Not the memory of Buffer.concat, which small buffers share.
  return Uint8Array.from(Buffer.concat([...parts, chunk.subarray(copied)])).buffer;
}

/** @param start of the page: repetition levels, definition levels, values */
function nullsOf(chunk: Uint8Array, start: number, page: ThriftFields, highest: number): number {
  const from = start + numberOf(page, REPETITION_BYTES);
  const levels = chunk.subarray(from, from + numberOf(page, DEFINITION_BYTES));
  const entries = numberOf(page, ENTRIES);
  return entries - countOf(levels, highest, entries);
}

/** Counts a level among so many, which are written as runs and as packed bits by turns. */
function countOf(levels: Uint8Array, level: number, entries: number): number {
  const width = 32 - Math.clz32(level);
  let [count, seen, at] = [0, 0, 0];
  while (seen < entries) {
    const { value: head, end } = readVarint(levels, at);
    const isPacked = head % 2 === 1;
    const length = Math.min(Math.floor(head / 2) * (isPacked ? 8 : 1), entries - seen);
    if (isPacked) {
      for (let index = 0; index < length; index++) {
        if (bitsAt(levels, end * 8 + index * width, width) === level) count += 1;
      }
      at = end + Math.floor(head / 2) * width;
    } else {
      if (bitsAt(levels, end * 8, width) === level) count += length;
      at = end + Math.ceil(width / 8);
    }
    seen += length;
  }
  return count;
}

/** Returns a number by its place in bits, the lowest bit first. */
function bitsAt(bytes: Uint8Array, start: number, width: number): number {
  let value = 0;
  for (let bit = 0; bit < width; bit++) {
    const at = start + bit;
    value |= (((bytes[at >> 3] ?? 0) >> (at & 7)) & 1) << bit;
  }
  return value;
}

function numberOf(fields: ThriftFields, id: number): number {
  const found = fields.get(id)?.number;
  if (found === undefined || found < 0) {
    throw new RangeError(`the header of a page has no number in its field ${id}`);
  }
  return found;
}
