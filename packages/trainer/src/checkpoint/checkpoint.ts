/**
 * A checkpoint is a folder, whole or not there: everything is written into another one, which gets the name when all of it is on the disk. Names are verl's, the files are our own.
 *
 *     global_step_20/
 *       actor/{weights,optimizer}.safetensors     critic/... if there is one
 *       trainer.json                              where the run was: step, position in the data, KL controller
 *       outstanding.json, .safetensors            rollouts that are not trained on yet, with the rewards that are known
 *       manifest.json
 */

import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { CheckpointError } from "../errors.ts";
import type { PolicyState } from "../policy/policy.ts";
import { readRange, syncFolder, unfinishedName, writeDurably } from "./durable-files.ts";
import type { FileSum } from "./durable-files.ts";
import { MANIFEST_FILE, manifestText, verifiedManifest } from "./manifest.ts";
import type { Manifest } from "./manifest.ts";
import { flatten, unflatten } from "./plain-data.ts";
import { readSafetensors, safetensorsBytes } from "./safetensors.ts";
import type { NamedArrays } from "./safetensors.ts";

export interface Checkpoint {
  readonly globalStep: number;
  readonly policy: PolicyState;
  readonly critic?: PolicyState | undefined;
  /** Where the run was; plain data, for people, too. */
  readonly trainer: unknown;
  /** What was generated and not trained on yet, with the rewards that are known; plain data with typed arrays. */
  readonly outstanding?: unknown;
}

/**
 * Resolves to its path when it is on the disk. One of the same step is replaced.
 *
 * Rejects with CheckpointError: CHECKPOINT_BAD_VALUE for what is no plain data, CHECKPOINT_IO (the disk is full, no permission); then nothing has changed.
 */
export async function writeCheckpoint(folder: string, checkpoint: Checkpoint): Promise<string> {
  const { globalStep } = checkpoint;
  const path = join(folder, `global_step_${globalStep}`);
  const files = filesOf(checkpoint, path);
  const unfinished = join(folder, unfinishedName(`global_step_${globalStep}`));
  try {
    const sums = new Map<string, FileSum>();
    const rooms = new Set(files.map(({ room }) => room));
    for (const room of rooms) await mkdir(join(unfinished, room), { recursive: true });
    for (const { room, name, pieces } of files) {
      const place = room === "" ? name : `${room}/${name}`;
      sums.set(place, await writeDurably(join(unfinished, place), pieces));
    }
    const manifest = manifestText({ globalStep, files: Object.fromEntries(sums) });
    await writeDurably(join(unfinished, MANIFEST_FILE), [Buffer.from(manifest)]);
    for (const room of rooms) await syncFolder(join(unfinished, room));
    await discardCheckpoint(path);
    await rename(unfinished, path);
    await syncFolder(folder);
    return path;
  } catch (cause) {
    await rm(unfinished, { recursive: true, force: true });
    throw new CheckpointError("CHECKPOINT_IO", path, (cause as Error).message, { cause });
  }
}

/** Takes its name away first: nobody finds a half of it. */
export async function discardCheckpoint(path: string): Promise<void> {
  const discarded = join(path, "..", unfinishedName(basename(path)));
  try {
    await rename(path, discarded);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  await rm(discarded, { recursive: true, force: true });
}

/** Reads and checks all of it. Rejects with CheckpointError: CHECKPOINT_DAMAGED. */
export async function readCheckpoint(path: string): Promise<Checkpoint> {
  const manifest = await verifiedManifest(path);
  try {
    const outstanding = await plainDataOf(path, manifest, "outstanding");
    return {
      globalStep: manifest.globalStep,
      policy: await stateOf(path, "actor"),
      ...("critic/weights.safetensors" in manifest.files
        ? { critic: await stateOf(path, "critic") }
        : {}),
      trainer: await plainDataOf(path, manifest, "trainer"),
      ...(outstanding === undefined ? {} : { outstanding }),
    };
  } catch (cause) {
    if (cause instanceof CheckpointError) throw cause;
    throw new CheckpointError("CHECKPOINT_DAMAGED", path, (cause as Error).message, { cause });
  }
}

interface NewFile {
  /** Folder in the checkpoint; "" for itself. */
  readonly room: string;
  readonly name: string;
  readonly pieces: readonly Uint8Array[];
}

function filesOf(checkpoint: Checkpoint, path: string): NewFile[] {
  const { globalStep, policy, critic, trainer, outstanding } = checkpoint;
  const refuse = (reason: string, cause?: unknown): CheckpointError =>
    new CheckpointError("CHECKPOINT_BAD_VALUE", path, reason, { cause });
  if (!Number.isSafeInteger(globalStep) || globalStep < 0) {
    throw refuse(`there is no step ${globalStep}`);
  }
  const parts: readonly [string, () => NewFile[]][] = [
    ["the policy", () => stateFiles("actor", policy)],
    ["the critic", () => (critic === undefined ? [] : stateFiles("critic", critic))],
    ["trainer", () => plainDataFiles("trainer", trainer)],
    [
      "outstanding",
      () => (outstanding === undefined ? [] : plainDataFiles("outstanding", outstanding)),
    ],
  ];
  return parts.flatMap(([part, files]) => {
    try {
      return files();
    } catch (cause) {
      throw refuse(`${part} cannot be kept: ${(cause as Error).message}`, cause);
    }
  });
}

function stateFiles(room: string, { version, weights, optimizer }: PolicyState): NewFile[] {
  const metadata = { format: "pt", version: String(version) };
  return Object.entries({ weights, optimizer }).map(([name, arrays]) => ({
    room,
    name: `${name}.safetensors`,
    pieces: [...safetensorsBytes({ arrays, metadata })],
  }));
}

function plainDataFiles(name: string, data: unknown): NewFile[] {
  const { json, arrays } = flatten(data);
  const text = Buffer.from(`${JSON.stringify(json, null, name === "trainer" ? 2 : 0)}\n`);
  const file = { room: "", name: `${name}.json`, pieces: [text] };
  if (Object.keys(arrays).length === 0) return [file];
  const pieces = [...safetensorsBytes({ arrays, metadata: {} })];
  return [file, { room: "", name: `${name}.safetensors`, pieces }];
}

async function stateOf(path: string, room: string): Promise<PolicyState> {
  const weights = await arraysOf(join(path, room, "weights.safetensors"));
  const optimizer = await arraysOf(join(path, room, "optimizer.safetensors"));
  return {
    version: Number(weights.metadata["version"]),
    weights: weights.arrays as PolicyState["weights"],
    optimizer: optimizer.arrays as PolicyState["optimizer"],
  };
}

async function plainDataOf(path: string, { files }: Manifest, name: string): Promise<unknown> {
  if (!(`${name}.json` in files)) return undefined;
  const json: unknown = JSON.parse(await readFile(join(path, `${name}.json`), "utf8"));
  const hasArrays = `${name}.safetensors` in files;
  const arrays = hasArrays ? (await arraysOf(join(path, `${name}.safetensors`))).arrays : {};
  return unflatten({ json, arrays });
}

async function arraysOf(path: string): Promise<NamedArrays> {
  const handle = await open(path, "r");
  try {
    const { size } = await handle.stat();
    return await readSafetensors((start, end) => readRange(handle, start, end), size, path);
  } finally {
    await handle.close();
  }
}
