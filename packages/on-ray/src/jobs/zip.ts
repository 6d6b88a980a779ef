/**
 * Writes zip archives as Ray unpacks them: files with their paths and rights, nothing else.
 */
import { promisify } from "node:util";
import { crc32, deflateRaw } from "node:zlib";

/** One file of an archive. */
export interface ZipFile {
  /** Its path, with "/". */
  readonly path: string;
  readonly content: Buffer;
  readonly isExecutable?: boolean;
}

const deflate = promisify(deflateRaw);

/** 2020-01-01, so that equal files make equal archives. */
const dosDate = ((2020 - 1980) << 9) | (1 << 5) | 1;

const utf8Names = 0x800;
const deflated = 8;
const ofUnix = 0x0314;

/** @param level of the compression, 1 to 9 */
export async function zip(files: readonly ZipFile[], level: number = 6): Promise<Buffer> {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { path, content, isExecutable } of files) {
    const packed = await deflate(content, { level });
    const name = Buffer.from(path);
    const fields = entryFields(content, packed, name);
    const local = Buffer.concat([Buffer.from("PK\x03\x04", "latin1"), fields, name, packed]);
    const central = Buffer.alloc(46);
    central.write("PK\x01\x02", 0, "latin1");
    central.writeUInt16LE(ofUnix, 4);
    fields.copy(central, 6);
    central.writeUInt32LE((isExecutable === true ? 0o100755 : 0o100644) * 0x10000, 38);
    central.writeUInt32LE(offset, 42);
    parts.push(local);
    directory.push(central, name);
    offset += local.length;
  }
  return Buffer.concat([...parts, ...directory, end(files.length, directory, offset)]);
}

/** The fields that stand before a file and in the directory alike. */
function entryFields(content: Buffer, packed: Buffer, name: Buffer): Buffer {
  const fields = Buffer.alloc(26);
  fields.writeUInt16LE(20, 0);
  fields.writeUInt16LE(utf8Names, 2);
  fields.writeUInt16LE(deflated, 4);
  fields.writeUInt16LE(dosDate, 8);
  fields.writeUInt32LE(crc32(content), 10);
  fields.writeUInt32LE(packed.length, 14);
  fields.writeUInt32LE(content.length, 18);
  fields.writeUInt16LE(name.length, 22);
  return fields;
}

function end(count: number, directory: readonly Buffer[], offset: number): Buffer {
  const record = Buffer.alloc(22);
  record.write("PK\x05\x06", 0, "latin1");
  record.writeUInt16LE(count, 8);
  record.writeUInt16LE(count, 10);
  record.writeUInt32LE(
    directory.reduce((sum, { length }) => sum + length, 0),
    12,
  );
  record.writeUInt32LE(offset, 16);
  return record;
}
