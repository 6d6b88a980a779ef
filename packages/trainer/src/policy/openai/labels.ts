/**
 * Token ids for texts whose tokens nobody told. Each is a number made of a token's bytes: the same for the same bytes, everywhere. They can be counted, compared, masked and grouped;
 * no model knows them, so whoever updates a model by them has to make its own tokens out of the rollout's texts.
 */

const bytesPerToken = 4;

/** Of one token: FNV-1a of its bytes, without the sign. */
export function labelOf(bytes: Iterable<number>): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash & 0x7fffffff;
}

/** Of a text that is not divided into tokens: of each four of its bytes, about as many as a tokenizer would make of English. */
export function labelsOfText(text: string): Int32Array {
  const bytes = new TextEncoder().encode(text);
  return Int32Array.from({ length: Math.ceil(bytes.length / bytesPerToken) }, (_, i) =>
    labelOf(bytes.subarray(bytesPerToken * i, bytesPerToken * (i + 1))),
  );
}
