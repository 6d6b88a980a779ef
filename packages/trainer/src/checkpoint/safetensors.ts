/**
 * Hugging Face's safetensors format: named arrays in one file, which Python's library reads and
 * which holds no code. Eight bytes with the length of the header, the header as JSON (type, shape
 * and place of each array), then the arrays one after the other, little-endian, without holes,
 * those with bigger elements first, so that each is aligned.
 *
 * Every number that is read is checked before it is used. Half precision (F16, BF16) and the like
 * have no arrays here and are refused.
 */

import { endianness } from "node:os";
import { isList, isRecord, messageOf } from "@rayling/reward-manager-registry/values";
import { CheckpointError } from "../errors.ts";
import { sumOf } from "../values/sums.ts";

/** Vectors: what has another shape in a file comes as its elements in order. */
export interface NamedArrays {
  readonly arrays: Readonly<Record<string, NumberArray>>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** An array in pieces of one type stands in the file as a whole. */
export interface WrittenArrays {
  readonly arrays: Readonly<Record<string, NumberArray | readonly NumberArray[]>>;
  readonly metadata: Readonly<Record<string, string>>;
}

export type NumberArray =
  | Float64Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Int32Array
  | Uint32Array
  | Int16Array
  | Uint16Array
  | Int8Array
  | Uint8Array;

const arrayTypes = {
  F64: Float64Array,
  I64: BigInt64Array,
  U64: BigUint64Array,
  F32: Float32Array,
  I32: Int32Array,
  U32: Uint32Array,
  I16: Int16Array,
  U16: Uint16Array,
  I8: Int8Array,
  U8: Uint8Array,
} as const;

/** The reference's own limit. */
const LONGEST_HEADER_BYTES = 100 * 2 ** 20;
const METADATA = "__metadata__";

interface Place {
  readonly dtype: keyof typeof arrayTypes;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

/** Whether it can be written as it is. */
export function isNumberArray(value: unknown): value is NumberArray {
  return ArrayBuffer.isView(value) && dtypeOf(value) !== undefined;
}

/**
 * The bytes of a file, piece by piece: the arrays' own memory, not copies. Throws TypeError for
 * what could not be read again.
 */
export function* safetensorsBytes({
  arrays,
  metadata,
}: WrittenArrays): Generator<Uint8Array, void, undefined> {
  if (endianness() !== "LE")
    throw new TypeError("safetensors are little-endian, this machine is not");
  const sorted = Object.entries(arrays)
    .map(([name, array]) => ({ name, pieces: isList(array) ? array : [array] }))
    .toSorted(
      (one, other) =>
        elementBytes(other) - elementBytes(one) ||
        (one.name < other.name ? -1 : Number(one.name > other.name)),
    );
  const places = new Map<string, Place | NamedArrays["metadata"]>([[METADATA, metadata]]);
  let end = 0;
  for (const { name, pieces } of sorted) {
    const [dtype, ...others] = new Set(pieces.map(dtypeOf));
    if (dtype === undefined || others.length > 0 || places.has(name)) {
      throw new TypeError(`safetensors cannot hold an array with the name ${name}, or of its type`);
    }
    const start = end;
    end += sumOf(pieces.map(({ byteLength }) => byteLength));
    const shape = [sumOf(pieces.map(({ length }) => length))];
    places.set(name, { dtype, shape, data_offsets: [start, end] });
  }
  const header = Buffer.from(JSON.stringify(Object.fromEntries(places)));
  const padded = Buffer.concat([header, Buffer.alloc((8 - (header.length % 8)) % 8, " ")]);
  if (padded.length > LONGEST_HEADER_BYTES) {
    const problem = `the names and places of ${sorted.length} arrays take ${padded.length} bytes`;
    throw new TypeError(`${problem}, and safetensors have ${LONGEST_HEADER_BYTES} for them`);
  }
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(padded.length));
  yield length;
  yield padded;
  for (const { pieces } of sorted) {
    for (const { buffer, byteOffset, byteLength } of pieces) {
      yield new Uint8Array(buffer, byteOffset, byteLength);
    }
  }
}

function elementBytes({ pieces }: { readonly pieces: readonly NumberArray[] }): number {
  return pieces[0]?.BYTES_PER_ELEMENT ?? 0;
}

/** Bytes `start` to `end` of the file, in memory of their own. */
export type ReadRange = (start: number, end: number) => Promise<Uint8Array<ArrayBuffer>>;

/**
 * @param size of the file in bytes
 * @param path told in errors
 *
 * Rejects with CheckpointError (CHECKPOINT_DAMAGED), and with what `read` does.
 */
export async function readSafetensors(
  read: ReadRange,
  size: number,
  path: string,
): Promise<NamedArrays> {
  const damaged = (reason: string): CheckpointError =>
    new CheckpointError("CHECKPOINT_DAMAGED", path, `is no safetensors file: ${reason}`);
  if (size < 8) throw damaged(`it has ${size} bytes`);
  const length = Number(Buffer.from(await read(0, 8)).readBigUInt64LE());
  if (length > LONGEST_HEADER_BYTES || 8 + length > size) {
    throw damaged(`its header would have ${length} of its ${size} bytes`);
  }
  const { [METADATA]: metadata = {}, ...places } = headerOf(await read(8, 8 + length), damaged);
  const sorted = Object.entries(places).toSorted(([, a], [, b]) => startOf(a) - startOf(b));
  const arrays = new Map<string, NumberArray>();
  let start = 0;
  for (const [name, value] of sorted) {
    const place = placeOf(value, start);
    if (place === undefined) throw damaged(`the place of ${name} is ${JSON.stringify(value)}`);
    const [from, to] = [start, place.data_offsets[1]];
    if (8 + length + to > size) throw damaged(`${name} ends behind the end of the file`);
    const { buffer } = await read(8 + length + from, 8 + length + to);
    arrays.set(name, new arrayTypes[place.dtype](buffer));
    start = to;
  }
  if (8 + length + start !== size) throw damaged(`it has ${size} bytes, not ${8 + length + start}`);
  return { arrays: Object.fromEntries(arrays), metadata: metadata as NamedArrays["metadata"] };
}

function headerOf(
  bytes: Uint8Array,
  damaged: (reason: string) => CheckpointError,
): Readonly<Record<string, unknown>> {
  let header: unknown;
  try {
    header = JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch (error) {
    throw damaged(`its header is no JSON: ${messageOf(error)}`);
  }
  if (isRecord(header)) return header;
  throw damaged("its header is no object");
}

function startOf(place: unknown): number {
  const offsets = isRecord(place) ? place["data_offsets"] : undefined;
  return isList(offsets) ? Number(offsets[0]) : 0;
}

/** Returns the place if it is well formed and begins where the one before ends. */
function placeOf(value: unknown, start: number): Place | undefined {
  if (!isRecord(value)) return undefined;
  const { dtype, shape, data_offsets: offsets } = value;
  if (!isDtype(dtype) || !isCounts(shape) || !isCounts(offsets)) return undefined;
  const [from = NaN, to = NaN] = offsets;
  const elements = shape.reduce((product, one) => product * one, 1);
  const bytes = elements * arrayTypes[dtype].BYTES_PER_ELEMENT;
  if (offsets.length !== 2 || from !== start || to - from !== bytes) return undefined;
  return { dtype, shape, data_offsets: [from, to] };
}

function isDtype(value: unknown): value is Place["dtype"] {
  return typeof value === "string" && Object.hasOwn(arrayTypes, value);
}

function isCounts(value: unknown): value is readonly number[] {
  return isList(value) && value.every((one) => Number.isSafeInteger(one) && Number(one) >= 0);
}

/** The name of the format for the type of an array. */
export function dtypeOf(array: ArrayBufferView): Place["dtype"] | undefined {
  for (const [dtype, type] of Object.entries(arrayTypes)) {
    if (array instanceof type && isDtype(dtype)) return dtype;
  }
  return undefined;
}
