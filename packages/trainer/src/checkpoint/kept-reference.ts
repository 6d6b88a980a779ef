/**
 * The weights of a reference policy, beside the checkpoints of a run: each checkpoint names them by
 * the SHA-256 of their file, which is written once. They do not change while the policy learns, and
 * settings of a later run may not make them again.
 */

import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { codeOf, messageOf } from "@rayling/reward-manager-registry/values";
import { CheckpointError } from "../errors.ts";
import type { PolicyState } from "../policy/policy.ts";
import { makeFolder } from "../values/make-folder.ts";
import { replaceFile } from "../values/replace-file.ts";
import { arraysOf } from "./checkpoint.ts";
import { fileSum, syncFolder, unfinishedName, writeDurably } from "./durable-files.ts";
import { safetensorsBytes } from "./safetensors.ts";
import type { NumberArray } from "./safetensors.ts";

type Weights = PolicyState["weights"];

/** Returns the SHA-256 of the file that `keepReference` writes. */
export function referenceSha256(weights: Weights): string {
  const hash = createHash("sha256");
  for (const piece of bytesOf(weights)) hash.update(piece);
  return hash.digest("hex");
}

/** Returns the path of the file in the folder of the checkpoints. */
export function referencePath(folder: string, sha256: string): string {
  return join(folder, `reference-${sha256.slice(0, 16)}.safetensors`);
}

/**
 * Writes the weights, if they are not there. Rejects with CheckpointError (CHECKPOINT_IO).
 *
 * @param folder of the checkpoints; made if it is missing
 */
export async function keepReference(
  folder: string,
  weights: Weights,
  sha256: string,
): Promise<void> {
  const path = referencePath(folder, sha256);
  try {
    if (await isThere(path)) return;
    await makeFolder(folder);
    const write = async (unfinished: string): Promise<void> => {
      await writeDurably(unfinished, bytesOf(weights));
    };
    await replaceFile(path, write, join(folder, unfinishedName(basename(path))));
    await syncFolder(folder);
  } catch (cause) {
    throw new CheckpointError("CHECKPOINT_IO", path, messageOf(cause), { cause });
  }
}

/**
 * Returns the weights; undefined: there is no such file in the folder. Rejects with CheckpointError
 * (CHECKPOINT_DAMAGED, CHECKPOINT_IO).
 */
export async function keptReference(folder: string, sha256: string): Promise<Weights | undefined> {
  const path = referencePath(folder, sha256);
  try {
    if (!(await isThere(path))) return undefined;
    const { sha256: found } = await fileSum(path);
    if (found === sha256) return weightsIn((await arraysOf(path)).arrays);
  } catch (cause) {
    if (cause instanceof CheckpointError) throw cause;
    throw new CheckpointError("CHECKPOINT_IO", path, messageOf(cause), { cause });
  }
  throw new CheckpointError("CHECKPOINT_DAMAGED", path, "its SHA-256 is not that of what was kept");
}

function weightsIn(arrays: Readonly<Record<string, NumberArray>>): Weights {
  const isWeight = (entry: [string, NumberArray]): entry is [string, Float32Array] =>
    entry[1] instanceof Float32Array;
  return Object.fromEntries(Object.entries(arrays).filter(isWeight));
}

function bytesOf(weights: Weights): Iterable<Uint8Array> {
  return safetensorsBytes({ arrays: weights, metadata: { format: "pt" } });
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}
