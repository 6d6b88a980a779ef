/**
 * The kind of a file by its first bytes, for errors that name it.
 */

/** The number of bytes that all known kinds need. */
export const HEAD_BYTES = 4;

const kinds: readonly (readonly [string, readonly number[]])[] = [
  ["compressed by gzip", [0x1f, 0x8b]],
  ["compressed by zstd", [0x28, 0xb5, 0x2f, 0xfd]],
  ["compressed by xz", [0xfd, 0x37, 0x7a, 0x58]],
  ["compressed by bzip2", [0x42, 0x5a, 0x68]],
  ["a zip archive", [0x50, 0x4b, 0x03, 0x04]],
  ["Parquet", [0x50, 0x41, 0x52, 0x31]],
  ["encrypted Parquet", [0x50, 0x41, 0x52, 0x45]],
  ["text in UTF-32", [0xff, 0xfe, 0, 0]],
  ["text in UTF-16", [0xff, 0xfe]],
  ["text in UTF-16", [0xfe, 0xff]],
];

/** Returns the end of a sentence "it is ..."; undefined for a possible text in UTF-8. */
export function fileKind(head: Uint8Array): string | undefined {
  const [kind] = kinds.find(([, magic]) => magic.every((byte, at) => head[at] === byte)) ?? [];
  if (kind !== undefined || head.length < 2) return kind;
  // Without a byte order mark: an ASCII character and a zero byte, in either order.
  const isWide = (head[0] === 0) !== (head[1] === 0);
  return isWide ? "text in UTF-16" : undefined;
}
