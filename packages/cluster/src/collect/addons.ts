/**
 * Finds the machine that a file of native code is made for, by its first bytes (ELF, Mach-O, PE).
 */
import { closeSync, openSync, readSync } from "node:fs";

/**
 * Returns `process.platform` and `process.arch`, such as "linux-x64". Undefined is unknown, and
 * such a file is accepted.
 */
export function targetOf(path: string): string | undefined {
  const bytes = Buffer.alloc(1024);
  const file = openSync(path, "r");
  try {
    readSync(file, bytes, 0, bytes.length, 0);
  } finally {
    closeSync(file);
  }
  if (bytes.readUInt32BE(0) === 0x7f454c46) return named("linux", elf[bytes.readUInt16LE(18)]);
  if (bytes.readUInt32LE(0) === 0xfeedfacf) return named("darwin", machO[bytes.readUInt32LE(4)]);
  if (bytes.readUInt16BE(0) === 0x4d5a) {
    const at = bytes.readUInt32LE(0x3c);
    return at + 6 > bytes.length ? undefined : named("win32", pe[bytes.readUInt16LE(at + 4)]);
  }
  return undefined;
}

function named(platform: string, arch: string | undefined): string | undefined {
  return arch === undefined ? undefined : `${platform}-${arch}`;
}

/** Machine numbers of the formats: ELF e_machine, Mach-O cputype, PE Machine. */
const elf: Readonly<Record<number, string>> = { 3: "ia32", 40: "arm", 62: "x64", 183: "arm64" };
const machO: Readonly<Record<number, string>> = { 0x01000007: "x64", 0x0100000c: "arm64" };
const pe: Readonly<Record<number, string>> = { 0x14c: "ia32", 0x8664: "x64", 0xaa64: "arm64" };
