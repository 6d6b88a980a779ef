/**
 * The files of a checkpoint, each with its size and SHA-256, in `manifest.json`, which is written
 * last and has a checksum of its own. A checkpoint without it, or with a file that differs from it,
 * is damaged.
 */

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isRecord, messageOf } from "@rayling/reward-manager-registry/values";
import { CheckpointError } from "../errors.ts";
import { fileSum } from "./durable-files.ts";
import type { FileSum } from "./durable-files.ts";

export interface Manifest {
  readonly globalStep: number;
  /** Files by their paths in the checkpoint, with "/". */
  readonly files: Readonly<Record<string, FileSum>>;
}

/**
 * Format of the files; a release refuses a format that it does not know. 2 has a name for each
 * array of rollouts (plain-data.ts), and is read as well.
 */
const FORMAT = 3;
const READ_FORMATS: readonly unknown[] = [2, FORMAT];
export const MANIFEST_FILE = "manifest.json";

export function manifestText(manifest: Manifest): string {
  return `${JSON.stringify({ format: FORMAT, ...manifest, sha256: digestOf(manifest) }, null, 2)}\n`;
}

/**
 * Reads every byte of the checkpoint. Rejects with CheckpointError: CHECKPOINT_NOT_FOUND,
 * CHECKPOINT_DAMAGED.
 */
export async function verifiedManifest(folder: string): Promise<Manifest> {
  const manifest = await manifestOf(folder);
  for (const [file, { bytes, sha256 }] of Object.entries(manifest.files)) {
    const path = join(folder, file);
    const found = await fileSum(path).catch((cause: unknown) => {
      throw damaged(path, `cannot be read: ${messageOf(cause)}`, cause);
    });
    if (found.bytes !== bytes) throw damaged(path, `has ${found.bytes} bytes, not ${bytes}`);
    if (found.sha256 !== sha256) throw damaged(path, "holds other bytes than were written");
  }
  return manifest;
}

async function manifestOf(folder: string): Promise<Manifest> {
  const path = join(folder, MANIFEST_FILE);
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw damaged(path, `cannot be read: ${messageOf(cause)}`, cause);
  });
  const { format, sha256, ...manifest } = parsed(text, path);
  if (!READ_FORMATS.includes(format)) {
    const known = READ_FORMATS.join(" and ");
    throw damaged(path, `is of the format ${String(format)}, and ${known} are those known here`);
  }
  if (sha256 !== digestOf(manifest)) {
    throw damaged(path, "does not say what was written");
  }
  return manifest as unknown as Manifest;
}

function parsed(text: string, path: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch (cause) {
    throw damaged(path, `is no JSON: ${messageOf(cause)}`, cause);
  }
}

function digestOf(manifest: object): string {
  return createHash("sha256").update(JSON.stringify(manifest)).digest("hex");
}

function damaged(path: string, reason: string, cause?: unknown): CheckpointError {
  return new CheckpointError("CHECKPOINT_DAMAGED", path, reason, { cause });
}
