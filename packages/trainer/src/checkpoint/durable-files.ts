/**
 * Durable files: they are on the disk (fsync) before anything says so, or not there at all. Knows
 * nothing of their contents. A name becomes durable with its folder, which Windows cannot sync.
 */

import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import type { FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { nanoid } from "nanoid";
import { isRunning } from "@rayling/reward-manager-registry/values";
import { replaceFile } from "../values/replace-file.ts";

export interface FileSum {
  readonly bytes: number;
  /** Hexadecimal. */
  readonly sha256: string;
}

/**
 * The name of an unfinished file or folder. It ends with the process id and a token of the process:
 * in containers several processes have the same id.
 */
const UNFINISHED = /\.(\d+)-([\w-]{8})-\d+\.unfinished$/;
const ownToken = nanoid(8);
let made = 0;

export function unfinishedName(name: string): string {
  made += 1;
  return `${name}.${process.pid}-${ownToken}-${made}.unfinished`;
}

/** Whether the file or folder is unfinished and its process is gone. */
export function isLeftBehind(name: string): boolean {
  const [, pid, token] = UNFINISHED.exec(name) ?? [];
  if (pid === undefined) return false;
  return Number(pid) === process.pid ? token !== ownToken : !isRunning(Number(pid));
}

/** The largest piece of one write or read. */
const PIECE_BYTES = 2 ** 24;

/** The most that is copied to be written together. */
const GATHERED_BYTES = 2 ** 20;

/** A new file. */
export async function writeDurably(path: string, pieces: Iterable<Uint8Array>): Promise<FileSum> {
  const hash = createHash("sha256");
  let bytes = 0;
  const handle = await open(path, "wx");
  try {
    for (const piece of gathered(pieces)) {
      for (let start = 0; start < piece.length; start += PIECE_BYTES) {
        const part = piece.subarray(start, start + PIECE_BYTES);
        hash.update(part);
        await writeAll(handle, part);
      }
      bytes += piece.length;
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
  return { bytes, sha256: hash.digest("hex") };
}

/** Small pieces together: a checkpoint may have millions, and each write costs. */
function* gathered(pieces: Iterable<Uint8Array>): Generator<Uint8Array, void, undefined> {
  let small: Uint8Array[] = [];
  let bytes = 0;
  for (const piece of pieces) {
    if (bytes + piece.length > GATHERED_BYTES) {
      yield Buffer.concat(small);
      [small, bytes] = [[], 0];
    }
    if (piece.length > GATHERED_BYTES) yield piece;
    else {
      small.push(piece);
      bytes += piece.length;
    }
  }
  yield Buffer.concat(small);
}

/** In place of one that may be there: who reads it sees the one or the other. */
export async function replaceDurably(path: string, text: string): Promise<void> {
  const write = async (unfinished: string): Promise<void> => {
    const handle = await open(unfinished, "wx");
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
  };
  await replaceFile(path, write, unfinishedName(path));
  await syncFolder(dirname(path));
}

export async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export async function fileSum(path: string): Promise<FileSum> {
  const hash = createHash("sha256");
  const piece = Buffer.allocUnsafe(2 ** 20);
  let bytes = 0;
  const handle = await open(path, "r");
  try {
    for (;;) {
      const { bytesRead } = await handle.read(piece, 0, piece.length, bytes);
      if (bytesRead === 0) break;
      hash.update(piece.subarray(0, bytesRead));
      bytes += bytesRead;
    }
  } finally {
    await handle.close();
  }
  return { bytes, sha256: hash.digest("hex") };
}

/** Rejects where the file ends before. */
export async function readRange(
  handle: FileHandle,
  start: number,
  end: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(end - start);
  for (let filled = 0; filled < bytes.length;) {
    const wanted = Math.min(PIECE_BYTES, bytes.length - filled);
    const { bytesRead } = await handle.read(bytes, filled, wanted, start + filled);
    if (bytesRead === 0) throw new Error(`it ends before byte ${end}`);
    filled += bytesRead;
  }
  return bytes;
}

async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, written);
    written += bytesWritten;
  }
}
