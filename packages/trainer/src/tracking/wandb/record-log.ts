/**
 * wandb's transaction log: records in blocks of 32 KiB, as LevelDB's log frames them, behind a
 * header of wandb's own. The checksum is CRC-32 of zlib (LevelDB's is CRC-32C).
 */

import { crc32 } from "node:zlib";

/** ":W&B", wandb's magic number 0xBEE1, and version 0. */
const fileHeader: Buffer = Buffer.from([0x3a, 0x57, 0x26, 0x42, 0xe1, 0xbe, 0x00]);

const blockBytes = 32_768;
/** Checksum (4 bytes), length (2), kind (1). */
const headBytes = 7;

const kinds = { full: 1, first: 2, middle: 3, last: 4 } as const;

/** Frames records for one file, whose every byte goes through it. */
export class RecordLog {
  #offset = 0;

  /** Returns the first bytes of the file. */
  begin(): Buffer {
    this.#offset = fileHeader.length;
    return fileHeader;
  }

  /** Returns the bytes of a record: parts of it, if it does not fit into the block. */
  framed(record: Uint8Array): Buffer {
    const parts: Uint8Array[] = [];
    let rest = record;
    let isFirst = true;
    do {
      const left = blockBytes - (this.#offset % blockBytes);
      // A head does not cross blocks: the reader skips zeros there.
      if (left < headBytes) this.#push(parts, Buffer.alloc(left));
      const room = blockBytes - (this.#offset % blockBytes) - headBytes;
      const part = rest.subarray(0, room);
      rest = rest.subarray(part.length);
      const isLast = rest.length === 0;
      this.#push(parts, headOf(part, kindOf(isFirst, isLast)));
      this.#push(parts, part);
      isFirst = false;
    } while (rest.length > 0);
    return Buffer.concat(parts);
  }

  #push(parts: Uint8Array[], bytes: Uint8Array): void {
    parts.push(bytes);
    this.#offset += bytes.length;
  }
}

function kindOf(isFirst: boolean, isLast: boolean): number {
  if (isFirst) return isLast ? kinds.full : kinds.first;
  return isLast ? kinds.last : kinds.middle;
}

function headOf(part: Uint8Array, kind: number): Buffer {
  const head = Buffer.alloc(headBytes);
  head.writeUInt32LE(crc32(part, crc32(Buffer.from([kind]))));
  head.writeUInt16LE(part.length, 4);
  head.writeUInt8(kind, 6);
  return head;
}
