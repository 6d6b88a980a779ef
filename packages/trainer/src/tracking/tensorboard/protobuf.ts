/**
 * The part of the protobuf encoding that events need: fields one after the other, each with its
 * number and type.
 */

export type Field = Buffer;

export function varint(number: number, value: number): Field {
  return Buffer.from([...varintBytes(number * 8), ...varintBytes(value)]);
}

export function float64(number: number, value: number): Field {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([Buffer.from(varintBytes(number * 8 + 1)), bytes]);
}

export function float32(number: number, value: number): Field {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return Buffer.concat([Buffer.from(varintBytes(number * 8 + 5)), bytes]);
}

export function text(number: number, value: string): Field {
  return message(number, [Buffer.from(value)]);
}

/** Writes a message as a field of another message. */
export function message(number: number, fields: readonly Field[]): Field {
  const body = Buffer.concat(fields);
  return Buffer.concat([
    Buffer.from([...varintBytes(number * 8 + 2), ...varintBytes(body.length)]),
    body,
  ]);
}

/** Whole numbers from 0 to 2^53 - 1, seven bits to a byte, the lowest first. */
function varintBytes(value: number): readonly number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 128) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return [...bytes, rest];
}
