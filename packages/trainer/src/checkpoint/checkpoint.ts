/**
 * A checkpoint is a folder, whole or not there: everything is written into another one, which gets
 * the name when all of it is on the disk. Names are verl's, the files are our own.
 *
 *     global_step_20/
 *       actor/{weights,optimizer}.safetensors     critic/... if there is one
 *       trainer.json                              step, position in the data, KL controller
 *       outstanding.jsonl, .safetensors           rollouts not trained yet, with known rewards
 *       manifest.json
 *
 * Beside it are the weights of the reference policy, once for all (`kept-reference`).
 */

import { open, readFile, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { readJsonl } from "@rayling/data-proto";
import { codeOf, messageOf } from "@rayling/reward-manager-registry/values";
import { CheckpointError } from "../errors.ts";
import type { PolicyState } from "../policy/policy.ts";
import { makeFolder } from "../values/make-folder.ts";
import { readRange, syncFolder, unfinishedName, writeDurably } from "./durable-files.ts";
import type { FileSum } from "./durable-files.ts";
import { MANIFEST_FILE, manifestText, verifiedManifest } from "./manifest.ts";
import type { Manifest } from "./manifest.ts";
import { flatten, jsonLines, jsonOfLines, unflatten } from "./plain-data.ts";
import type { FlatData } from "./plain-data.ts";
import { readSafetensors, safetensorsBytes } from "./safetensors.ts";
import type { NamedArrays } from "./safetensors.ts";

/** The state of a training, as it is saved and read. */
export interface Checkpoint {
  /** verl `global_steps`: the number of finished steps. */
  readonly globalStep: number;
  /** Weights and optimizer of the policy. */
  readonly policy: PolicyState;
  /** Weights and optimizer of the critic, if there is one. */
  readonly critic?: PolicyState | undefined;
  /** State of the training as plain data, readable for people. */
  readonly trainer: unknown;
  /**
   * Rollouts that were generated and not trained yet, with the rewards that are known; plain data
   * with typed arrays.
   */
  readonly outstanding?: unknown;
}

/**
 * Resolves to its path when it is on the disk. One of the same step is replaced.
 *
 * Rejects with CheckpointError: CHECKPOINT_BAD_VALUE for what is no plain data, CHECKPOINT_IO (the
 * disk is full, no permission); then nothing has changed.
 */
export async function writeCheckpoint(folder: string, checkpoint: Checkpoint): Promise<string> {
  const { globalStep } = checkpoint;
  const path = join(folder, `global_step_${globalStep}`);
  const files = filesOf(checkpoint, path);
  const unfinished = join(folder, unfinishedName(`global_step_${globalStep}`));
  try {
    const sums = new Map<string, FileSum>();
    const rooms = new Set(files.map(({ room }) => room));
    for (const room of rooms) await makeFolder(join(unfinished, room));
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
    throw new CheckpointError("CHECKPOINT_IO", path, messageOf(cause), { cause });
  }
}

/** Renames the checkpoint first, so that no reader finds half of it. */
export async function discardCheckpoint(path: string): Promise<void> {
  const discarded = join(path, "..", unfinishedName(basename(path)));
  try {
    await rename(path, discarded);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return;
    throw error;
  }
  await rm(discarded, { recursive: true, force: true });
}

/** Reads and checks all of it. Rejects with CheckpointError: CHECKPOINT_DAMAGED. */
export async function readCheckpoint(path: string): Promise<Checkpoint> {
  const manifest = await verifiedManifest(path);
  try {
    const outstanding = await outstandingOf(path, manifest);
    return {
      globalStep: manifest.globalStep,
      policy: await stateOf(path, "actor"),
      ...("critic/weights.safetensors" in manifest.files
        ? { critic: await stateOf(path, "critic") }
        : {}),
      trainer: await trainerOf(path, manifest),
      ...(outstanding === undefined ? {} : { outstanding }),
    };
  } catch (cause) {
    if (cause instanceof CheckpointError) throw cause;
    throw new CheckpointError("CHECKPOINT_DAMAGED", path, messageOf(cause), { cause });
  }
}

/** The longest line: one answer with its record. No string can be longer. */
const LONGEST_LINE_BYTES = 2 ** 29 - 1;

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
    ["trainer", () => trainerFiles(trainer)],
    ["outstanding", () => (outstanding === undefined ? [] : outstandingFiles(outstanding))],
  ];
  return parts.flatMap(([part, files]) => {
    try {
      return files();
    } catch (cause) {
      throw refuse(`${part} cannot be kept: ${messageOf(cause)}`, cause);
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

/** For people, too. */
function trainerFiles(data: unknown): NewFile[] {
  const { json, arrays } = flatten(data);
  return [
    { room: "", name: "trainer.json", pieces: [Buffer.from(`${JSON.stringify(json, null, 2)}\n`)] },
    ...arrayFiles("trainer", arrays),
  ];
}

/** Line by line: thousands of long answers make more text than one string can hold. */
function outstandingFiles(data: unknown): NewFile[] {
  const { json, arrays } = flatten(data);
  const pieces = Array.from(jsonLines(json), (line) => Buffer.from(line));
  // Its bytes may be more than its characters.
  const longest = pieces.reduce((most, { length }) => Math.max(most, length), 0);
  if (longest > LONGEST_LINE_BYTES) {
    throw new RangeError(`one rollout makes a line of ${longest} bytes, which could not be read`);
  }
  return [{ room: "", name: "outstanding.jsonl", pieces }, ...arrayFiles("outstanding", arrays)];
}

function arrayFiles(name: string, arrays: FlatData["arrays"]): NewFile[] {
  if (Object.keys(arrays).length === 0) return [];
  const pieces = [...safetensorsBytes({ arrays, metadata: {} })];
  return [{ room: "", name: `${name}.safetensors`, pieces }];
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

async function trainerOf(path: string, { files }: Manifest): Promise<unknown> {
  if (!("trainer.json" in files)) return undefined;
  const json: unknown = JSON.parse(await readFile(join(path, "trainer.json"), "utf8"));
  return unflatten({ json, arrays: await ownArraysOf(path, files, "trainer") });
}

async function outstandingOf(path: string, { files }: Manifest): Promise<unknown> {
  if (!("outstanding.jsonl" in files)) return undefined;
  const lines = readJsonl(join(path, "outstanding.jsonl"), { maxLineBytes: LONGEST_LINE_BYTES });
  const json = await jsonOfLines(lines);
  return unflatten({ json, arrays: await ownArraysOf(path, files, "outstanding") });
}

async function ownArraysOf(
  path: string,
  files: Manifest["files"],
  name: string,
): Promise<NamedArrays["arrays"]> {
  const file = `${name}.safetensors`;
  return file in files ? (await arraysOf(join(path, file))).arrays : {};
}

/** Reads one file. Rejects with CheckpointError (CHECKPOINT_DAMAGED), and as `open`. */
export async function arraysOf(path: string): Promise<NamedArrays> {
  const handle = await open(path, "r");
  try {
    const { size } = await handle.stat();
    return await readSafetensors((start, end) => readRange(handle, start, end), size, path);
  } finally {
    await handle.close();
  }
}
