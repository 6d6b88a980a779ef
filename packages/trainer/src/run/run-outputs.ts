/** What a run of a configuration writes to, by the keys that name it. */

import { join } from "node:path";
import { hasCheckpoint } from "../checkpoint/checkpoint-folder.ts";
import type { TrainerConfig } from "../config/options/index.ts";
import type { NamedFolders } from "../record/output-folders.ts";
import { runOfCheckpoint } from "./checkpoint-runs.ts";

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
