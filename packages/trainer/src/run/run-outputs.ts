/**
 * Folders and files that a run of a configuration writes to, by the keys that name them. One that
 * cannot be written is found before the run pays for anything, and by a rehearsal, which makes
 * nothing.
 */

import { access, constants, open, stat } from "node:fs/promises";
import type { Stats } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { WriterMark } from "@rayling/reward-loop";
import { codeOf, messageOf } from "@rayling/reward-manager-registry/values";
import { absolutePath, hasCheckpoint } from "../checkpoint/checkpoint-folder.ts";
import type { TrainerConfig } from "../config/options/index.ts";
import { refusal } from "../config/refusal.ts";
import type { NamedFolders } from "../record/output-folders.ts";
import { runFiles } from "../tracking/files/run-lines.ts";
import { runOfCheckpoint } from "./checkpoint-runs.ts";
import { rewardOptionsOf } from "./trainer-options.ts";

/**
 * Returns the configuration with its folders as absolute paths: a policy's module may change the
 * directory while the run trains, and the run would have its files in two places.
 */
export function withAbsoluteFolders(config: TrainerConfig): TrainerConfig {
  const { trainer, rayling } = config;
  const { resumeFromPath, rolloutDataDir, validationDataDir } = trainer;
  const absolute = (path: string | null): string | null => (path === null ? null : resolve(path));
  return {
    ...config,
    rayling: { ...rayling, directory: absolute(rayling.directory) },
    trainer: {
      ...trainer,
      defaultLocalDir: resolve(trainer.defaultLocalDir),
      resumeFromPath: resumeFromPath === null ? null : absolutePath(resumeFromPath),
      rolloutDataDir: absolute(rolloutDataDir),
      validationDataDir: absolute(validationDataDir),
    },
  };
}

/** Returns the folder below which runs of these names have folders of their own. */
export function folderOfRuns({ trainer }: TrainerConfig): string {
  return join("runs", trainer.projectName, trainer.experimentName);
}

/**
 * Returns the folder of the run's files where it is there before the run: the configured one, or
 * that of the checkpoint that the run resumes from. Undefined: the run gets one of its own.
 */
export async function knownFolderOf(config: TrainerConfig): Promise<string | undefined> {
  const { rayling, trainer } = config;
  if (rayling.directory !== null) return rayling.directory;
  const { defaultLocalDir: folder, resumeMode: mode, resumeFromPath: path } = trainer;
  const resume = { folder, mode, path: path ?? undefined };
  const hasOne = await hasCheckpoint(resume);
  return hasOne ? await runOfCheckpoint(folderOfRuns(config), resume) : undefined;
}

/**
 * Returns the folders that the run makes and holds; a run that only validates writes no checkpoints
 * and no rollouts of steps.
 *
 * @param directory of the run's files, if it is known
 */
export function outputFoldersOf(
  { trainer }: TrainerConfig,
  directory: string | undefined,
): NamedFolders {
  const trains = !trainer.valOnly;
  return {
    "trainer.default_local_dir":
      trains && trainer.saveFreq > 0 ? trainer.defaultLocalDir : undefined,
    "trainer.rollout_data_dir": trains ? trainer.rolloutDataDir : undefined,
    "trainer.validation_data_dir": trainer.validationDataDir,
    "rayling.directory": directory,
  };
}

/**
 * Rejects with TrainerConfigError for a folder or a file that the run could not write to, and with
 * CheckpointError for checkpoints that cannot be read. Nothing is made.
 *
 * @param baseDirectory where relative paths of the reward's options start
 */
export async function checkOutputs(config: TrainerConfig, baseDirectory: string): Promise<void> {
  const named = outputFoldersOf(config, undefined);
  for (const [key, folder] of Object.entries(named)) {
    if (folder !== undefined && folder !== null) await writable(key, folder, checkFolder);
  }
  const directory = (await knownFolderOf(config)) ?? folderOfRuns(config);
  await writable("rayling.directory", directory, checkFolder);
  if (config.trainer.logger.some((name) => writesFiles.has(name))) {
    for (const file of Object.values(runFiles)) {
      await writable("rayling.directory", join(directory, file), checkFileOf);
    }
  }
  for (const [name, variable] of Object.entries(foldersOfLoggers)) {
    const folder = process.env[variable];
    if (!config.trainer.logger.some((one) => one === name) || !folder) continue;
    await writable("trainer.logger", folder, checkFolder);
  }
  const { record, caches } = rewardFilesOf(config, baseDirectory);
  if (record !== undefined) await writable("reward.record", record, checkFile);
  for (const [key, path] of caches) {
    await writable(key, path, checkFile);
    await writable(key, path, checkDatabase);
  }
}

/** Rejects with RewardLogBusyError while another process writes the reward log. */
export async function checkRecordIsFree(config: TrainerConfig, base: string): Promise<void> {
  const { record } = rewardFilesOf(config, base);
  if (record === undefined) return;
  const mark = await WriterMark.put(record);
  await mark.remove();
}

/** Variables that name folders of loggers. */
const foldersOfLoggers = { tensorboard: "TENSORBOARD_DIR", wandb: "WANDB_DIR" } as const;

/** The loggers that write `runFiles`. */
const writesFiles: ReadonlySet<string> = new Set(["file", "report", "trace"]);

function rewardFilesOf(
  config: TrainerConfig,
  baseDirectory: string,
): {
  readonly record: string | undefined;
  /** Paths by their keys. */
  readonly caches: readonly (readonly [string, string])[];
} {
  const { record, cache, rewards = {} } = rewardOptionsOf(config, baseDirectory);
  const all: readonly (readonly [string, string | undefined])[] = [
    ["reward.cache", cache],
    ...Object.entries(rewards).map(
      ([name, part]) => [`reward.rewards.${name}.cache`, part.cache] as const,
    ),
  ];
  const caches = all.flatMap(([key, path]) =>
    path === undefined || path === ":memory:" ? [] : [[key, resolve(baseDirectory, path)] as const],
  );
  return { record, caches };
}

/** Names the key of a path that `check` refuses. */
async function writable(
  key: string,
  path: string,
  check: (path: string) => Promise<void>,
): Promise<void> {
  try {
    await check(path);
  } catch (cause) {
    throw refusal(key, `nothing can be written to ${path}: ${messageOf(cause)}`, path, { cause });
  }
}

/** Checks the folder, or the nearest one above it that there is. */
async function checkFolder(folder: string): Promise<void> {
  const found = await statOf(folder);
  if (found === undefined) return await checkFolder(dirname(resolve(folder)));
  if (!found.isDirectory()) throw new Error(`${folder} is no folder`);
  await access(folder, constants.W_OK);
}

/** Checks a file whose folder is there, since nobody makes it. */
async function checkFile(path: string): Promise<void> {
  const folder = dirname(path);
  if ((await statOf(folder)) === undefined) throw new Error(`there is no folder ${folder}`);
  await checkFileOf(path);
}

/** Checks a file whose folder is made where it is missing. */
async function checkFileOf(path: string): Promise<void> {
  const found = await statOf(path);
  if (found === undefined) return await checkFolder(dirname(path));
  if (found.isDirectory()) throw new Error("it is a folder");
  await access(path, constants.W_OK);
}

const sqlite = "SQLite format 3\0";

/** Checks the first bytes: another file at the place of a cache is refused by SQLite, late. */
async function checkDatabase(path: string): Promise<void> {
  if ((await statOf(path))?.isFile() !== true) return;
  const handle = await open(path, "r");
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(sqlite.length), 0, sqlite.length);
    if (bytesRead > 0 && buffer.toString("latin1") !== sqlite) {
      throw new Error("it is no database of SQLite");
    }
  } finally {
    await handle.close();
  }
}

/** Undefined: there is nothing of this name, nor can there be below a file. */
async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}
