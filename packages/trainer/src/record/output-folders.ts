/**
 * The folders that a training writes to, made before anything takes its time: one that cannot be
 * would end it hours later, when there is something to be kept.
 */

import { access, constants, mkdir } from "node:fs/promises";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../errors.ts";

/**
 * Creates folders, given by the names of their options; null and undefined are skipped. Rejects
 * with TrainerInputError, which names the option.
 */
export async function makeOutputFolders(
  folders: Readonly<Record<string, string | null | undefined>>,
): Promise<void> {
  for (const [option, folder] of Object.entries(folders)) {
    if (folder === undefined || folder === null) continue;
    try {
      await mkdir(folder, { recursive: true });
      await access(folder, constants.W_OK);
    } catch (cause) {
      const reason = messageOf(cause);
      const message = `${option}: nothing can be written to ${folder}: ${reason}`;
      throw new TrainerInputError(option, message, { cause });
    }
  }
}
