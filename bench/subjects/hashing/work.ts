/**
 * The work of the pools: one item is 16 KiB, hashed with SHA-256 in several rounds. Each round
 * hashes the item and the digest of the round before it.
 */
import { createHash } from "node:crypto";

export interface Item {
  readonly index: number;
  readonly bytes: Uint8Array;
}

/** The digest of the item with that index, in hexadecimal. */
export interface Hashed {
  readonly index: number;
  readonly digest: string;
}

export const itemBytes = 16_384;

/** An item takes 0.3 to 1 ms on the machines of the README. */
export const hashRounds = 40;

export function hash({ index, bytes }: Item): Hashed {
  let digest = "";
  for (let round = 0; round < hashRounds; round++) {
    digest = createHash("sha256").update(bytes).update(digest).digest("hex");
  }
  return { index, digest };
}

/** No two items are equal. */
export function itemsOf(count: number): Item[] {
  return Array.from({ length: count }, (_, index) => {
    const bytes = new Uint8Array(itemBytes).fill(index % 251);
    new DataView(bytes.buffer).setUint32(0, index);
    return { index, bytes };
  });
}
