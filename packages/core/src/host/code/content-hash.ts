/**
 * A hash that tells whether two files have the same content, by 64 bits and the length. It does not
 * withstand somebody who looks for a collision.
 *
 * Node's own hashes (zlib, crypto) bring modules along that take a new host half a millisecond and
 * more; this takes 0.2 ms for a file of 5 KB, compilation included. Two lanes read four bytes at a
 * time. The multipliers and the last mix are those of MurmurHash3 (Appleby, 2008).
 */

const wordBytes = 4;

/** @returns the length and the hash, in base 36 */
export function contentHash(bytes: Uint8Array): string {
  const padded = new Uint8Array(Math.ceil(bytes.length / wordBytes) * wordBytes);
  padded.set(bytes);
  const words = new Int32Array(padded.buffer);
  let first = bytes.length;
  let second = ~bytes.length;
  for (let index = 0; index < words.length; index++) {
    const word = words[index] as number;
    first = Math.imul(((first << 13) | (first >>> 19)) ^ word, 0xcc9e2d51);
    second = Math.imul(((second << 15) | (second >>> 17)) + word, 0x1b873593) ^ first;
  }
  return [bytes.length, mixed(first) >>> 0, mixed(second) >>> 0]
    .map((part) => part.toString(36))
    .join("-");
}

function mixed(lane: number): number {
  const once = Math.imul(lane ^ (lane >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return twice ^ (twice >>> 16);
}
