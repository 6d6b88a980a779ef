/** ASN.1 in DER, as far as certificates need it (ITU-T X.690). */

/** Returns an element of that tag. */
export function element(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  return Buffer.concat([Buffer.from([tag]), lengthOf(body.length), body]);
}

export function sequence(...content: readonly Uint8Array[]): Buffer {
  return element(0x30, ...content);
}

/** @param bytes of a positive number, the most significant first */
export function integer(bytes: Uint8Array): Buffer {
  const first = bytes.findIndex((one) => one !== 0);
  const shortest = Buffer.from(first === -1 ? [0] : bytes.subarray(first));
  const isNegative = (shortest[0] ?? 0) >= 0x80;
  return element(0x02, ...(isNegative ? [Buffer.from([0])] : []), shortest);
}

/** @param unused bits at the end */
export function bitString(bytes: Uint8Array, unused: number = 0): Buffer {
  return element(0x03, Buffer.from([unused]), bytes);
}

export function octetString(...content: readonly Uint8Array[]): Buffer {
  return element(0x04, ...content);
}

export const yes: Buffer = element(0x01, Buffer.from([0xff]));

/** @param dotted as "2.5.4.3" */
export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  return element(0x06, Buffer.from([40 * first + second, ...rest.flatMap(septets)]));
}

/** Years before 2050 have two digits. */
export function time(date: Date): Buffer {
  const digits = date.toISOString().replaceAll(/[-:T]|\.\d+/g, "");
  const isShort = date.getUTCFullYear() < 2050;
  return isShort ? element(0x17, Buffer.from(digits.slice(2))) : element(0x18, Buffer.from(digits));
}

function septets(value: number): number[] {
  const parts = [value & 0x7f];
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) parts.unshift((rest & 0x7f) | 0x80);
  return parts;
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest >>>= 8) bytes.unshift(rest & 0xff);
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}
