/**
 * CRC-32C (Castagnoli, RFC 3720 B.4), and masked as TFRecord stores it: a checksum that is itself
 * part of checked data is not to look like one.
 */

const table: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit += 1) rest = rest & 1 ? (rest >>> 1) ^ 0x82f63b78 : rest >>> 1;
  return rest;
});

export function crc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = (table[(crc ^ byte) & 0xff] ?? NaN) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** Turned right by 15 bits, and a constant added (TFRecord). */
export function maskedCrc32c(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
