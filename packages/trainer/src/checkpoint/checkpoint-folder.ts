/**
 * The checkpoints of a run: verl's `trainer.default_local_dir`, with
 * `latest_checkpointed_iteration.txt` beside them. Saves checkpoints, keeps the last few, and finds
 * the one to resume from.
 *
 * The file names the latest. If that is damaged, the latest whole one before it is taken, and the
 * damaged ones are reported. A run never begins anew because its checkpoints are damaged.
 */

import { readdir, readFile, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { codeOf, messageOf } from "@rayling/reward-manager-registry/values";
import { CheckpointError } from "../errors.ts";
import { makeFolder } from "../values/make-folder.ts";
import { discardCheckpoint, readCheckpoint, writeCheckpoint } from "./checkpoint.ts";
import type { Checkpoint } from "./checkpoint.ts";
import { isLeftBehind, replaceDurably } from "./durable-files.ts";

/** Where checkpoints are saved, and how many stay. */
export interface SaveCheckpointOptions {
  /** verl `trainer.default_local_dir`; made if it is not there. */
  readonly folder: string;
  /** verl `trainer.max_actor_ckpt_to_keep`: so many of the last ones stay. Default: all. */
  readonly keep?: number | undefined;
}

/** The checkpoint that a training resumes from. */
export interface ResumeOptions {
  /** verl `trainer.default_local_dir`. */
  readonly folder: string;
  /**
   * verl `trainer.resume_mode`: the latest of the folder, if there is one; none; that of `path`.
   * Default: resume_path where there is a `path`, else auto.
   */
  readonly mode?: "auto" | "disable" | "resume_path" | undefined;
  /** verl `trainer.resume_from_path`: a folder global_step_N. */
  readonly path?: string | undefined;
}

/** A checkpoint that was read, with its path. */
export interface Resumed extends Checkpoint {
  /** The folder global_step_N that was read. */
  readonly path: string;
  /** Why later ones were passed over, the latest first. */
  readonly passedOver: readonly CheckpointError[];
}

const LATEST = "latest_checkpointed_iteration.txt";

/**
 * Resolves to its path when it is on the disk and the latest. Rejects with CheckpointError:
 * CHECKPOINT_BAD_VALUE, CHECKPOINT_IO; then the one before is still the latest.
 */
export async function saveCheckpoint(
  checkpoint: Checkpoint,
  { folder, keep }: SaveCheckpointOptions,
): Promise<string> {
  if (keep !== undefined && !(Number.isSafeInteger(keep) && keep >= 1)) {
    throw new CheckpointError("CHECKPOINT_BAD_VALUE", folder, `cannot keep ${keep} checkpoints`);
  }
  const { globalStep } = checkpoint;
  await ofFolder(folder, async () => {
    await makeFolder(folder);
    await discardUnfinished(folder);
  });
  const path = await writeCheckpoint(folder, checkpoint);
  await ofFolder(folder, async () => {
    await replaceDurably(join(folder, LATEST), String(globalStep));
    const steps = await stepsIn(folder);
    // Later steps are of another run that began here; nothing is known about them, and they stay.
    const before = steps.filter((step) => step <= globalStep);
    for (const step of before.slice(keep ?? before.length))
      await discardCheckpoint(at(folder, step));
  });
  return path;
}

/**
 * Undefined: begin at the beginning.
 *
 * Rejects with CheckpointError: CHECKPOINT_BAD_PATH and CHECKPOINT_NOT_FOUND for a `path`,
 * CHECKPOINT_DAMAGED where that one, or each of the folder is, CHECKPOINT_IO.
 */
export async function resumeCheckpoint({
  folder,
  path,
  mode = path === undefined ? "auto" : "resume_path",
}: ResumeOptions): Promise<Resumed | undefined> {
  if (mode === "disable") return undefined;
  if (mode === "resume_path") return await resumePath(path);
  const passedOver: CheckpointError[] = [];
  const steps = await ofFolder(folder, () => stepsToTry(folder, passedOver));
  for (const step of steps) {
    const one = at(folder, step);
    try {
      return { ...(await readCheckpoint(one)), path: one, passedOver };
    } catch (error) {
      if (!(error instanceof CheckpointError) || error.code !== "CHECKPOINT_DAMAGED") throw error;
      passedOver.push(error);
    }
  }
  const [latest] = passedOver;
  if (latest === undefined) return undefined;
  const later = (await ofFolder(folder, () => stepsIn(folder))).find(
    (step) => !steps.includes(step),
  );
  const [subject, advice] =
    later === undefined
      ? ["none of its checkpoints", ""]
      : [
          `none of its checkpoints up to step ${steps[0]}, which ${LATEST} names,`,
          `; resume_mode resume_path takes a later one, such as ${at(folder, later)}`,
        ];
  throw new CheckpointError(
    "CHECKPOINT_DAMAGED",
    folder,
    `${subject} is whole; the latest: ${latest.message}. With resume_mode disable the run begins anew${advice}`,
    { cause: latest },
  );
}

/**
 * Whether a run would go on with one, or say what is wrong with them; nothing is read. Rejects
 * with CheckpointError (CHECKPOINT_IO).
 */
export async function hasCheckpoint({
  folder,
  path,
  mode = path === undefined ? "auto" : "resume_path",
}: ResumeOptions): Promise<boolean> {
  if (mode === "disable") return false;
  return mode === "resume_path" || (await ofFolder(folder, () => stepsIn(folder))).length > 0;
}

/** A path to resume from may begin with ~/. */
export function absolutePath(path: string): string {
  return resolve(path.startsWith("~/") ? join(homedir(), path.slice(2)) : path);
}

async function resumePath(path: string | undefined): Promise<Resumed> {
  if (path === undefined || !/global_step_\d+\/*$/.test(path)) {
    throw new CheckpointError(
      "CHECKPOINT_BAD_PATH",
      path ?? "resume_from_path",
      "must be the path of a folder global_step_N where resume_mode is resume_path",
    );
  }
  const folder = absolutePath(path);
  const isThere = await ofFolder(folder, async () => (await namesIn(folder)) !== undefined);
  if (!isThere)
    throw new CheckpointError("CHECKPOINT_NOT_FOUND", folder, "there is no such folder");
  return { ...(await readCheckpoint(folder)), path: folder, passedOver: [] };
}

/**
 * Returns the steps to try, the latest first. Problems of the file that names the latest go to
 * `problems`.
 */
async function stepsToTry(folder: string, problems: CheckpointError[]): Promise<readonly number[]> {
  const steps = await stepsIn(folder);
  const path = join(folder, LATEST);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    // The process was killed between its first checkpoint and this file, or there is no checkpoint.
    if (codeOf(error) === "ENOENT") return steps;
    throw error;
  }
  if (!/^\d+$/.test(text.trim())) {
    const reason = `must hold a step, and holds ${JSON.stringify(text.slice(0, 60))}`;
    problems.push(new CheckpointError("CHECKPOINT_DAMAGED", path, reason));
    return steps;
  }
  const latest = Number(text);
  // A checkpoint that is named and missing counts as damaged, too.
  return [latest, ...steps.filter((step) => step < latest)];
}

/** The latest first. */
async function stepsIn(folder: string): Promise<readonly number[]> {
  const names = (await namesIn(folder)) ?? [];
  return names
    .flatMap((name) => /^global_step_(\d+)$/.exec(name)?.[1] ?? [])
    .map(Number)
    .toSorted((a, b) => b - a);
}

/** Deletes the unfinished folders and files of processes that are gone. */
async function discardUnfinished(folder: string): Promise<void> {
  for (const name of (await namesIn(folder)) ?? []) {
    if (!isLeftBehind(name)) continue;
    await rm(join(folder, name), { recursive: true, force: true });
  }
}

/** Undefined where there is no such folder. */
async function namesIn(folder: string): Promise<readonly string[] | undefined> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function at(folder: string, step: number): string {
  return join(folder, `global_step_${step}`);
}

async function ofFolder<Value>(folder: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof CheckpointError) throw cause;
    throw new CheckpointError("CHECKPOINT_IO", folder, messageOf(cause), { cause });
  }
}
