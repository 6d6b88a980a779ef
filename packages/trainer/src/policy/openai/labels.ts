/**
 * Token ids for texts whose server reports none. Each id is computed from the bytes of a token, so
 * equal bytes have equal ids everywhere. Ids can be counted, compared, masked and grouped; no model
 * knows them, so an updater has to tokenize the texts of the rollouts itself.
 */

const bytesPerToken = 4;

/** Returns the id of one token: FNV-1a of its bytes, without the sign. */
export function labelOf(bytes: Iterable<number>): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash & 0x7fffffff;
}

/**
 * Returns ids for a text that is not divided into tokens: one for each four bytes, about as many as
 * a tokenizer makes of English.
 */
export function labelsOfText(text: string): Int32Array {
  const bytes = new TextEncoder().encode(text);
  return Int32Array.from({ length: Math.ceil(bytes.length / bytesPerToken) }, (_, i) =>
    labelOf(bytes.subarray(bytesPerToken * i, bytesPerToken * (i + 1))),
  );
}
