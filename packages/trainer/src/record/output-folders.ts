/**
 * The folders that a training writes to: made before anything takes its time, and held until it
 * ends. One that cannot be made would end the training hours later, when there is something to be
 * kept; two trainings in one would overwrite each other's checkpoints and pay for rewards twice.
 *
 * A folder is held by a file in it that names the process. The file of a process that is gone, by
 * kill -9 too, counts for nothing.
 */

import { access, constants, realpath } from "node:fs/promises";
import { join } from "node:path";
import { RewardLogBusyError, WriterMark } from "@rayling/reward-loop";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { FolderBusyError, TrainerInputError } from "../errors.ts";
import { makeFolder } from "../values/make-folder.ts";

/** Folders by the names of their options; null and undefined are skipped. */
export type NamedFolders = Readonly<Record<string, string | null | undefined>>;

/** The file that processes would write together: they leave their marks beside this name. */
const markedName = "rayling-training";

/** Folders that a training makes, and that no other training may write to until it ends. */
export class OutputFolders {
  /** By the real path: two options may name one folder, by different paths, too. */
  readonly #marks = new Map<string, WriterMark>();

  /**
   * Makes and holds the folders. Rejects with TrainerInputError for one that cannot be written to,
   * and with FolderBusyError while another training has one; both name the option.
   */
  static async open(folders: NamedFolders): Promise<OutputFolders> {
    const opened = new OutputFolders();
    try {
      for (const [option, folder] of Object.entries(folders)) {
        if (folder === undefined || folder === null) continue;
        await makeWritable(option, folder);
        await opened.#hold(option, folder);
      }
      return opened;
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  /** Gives the folders up. */
  async close(): Promise<void> {
    await Promise.all([...this.#marks.values()].map((mark) => mark.remove()));
    this.#marks.clear();
  }

  async #hold(option: string, folder: string): Promise<void> {
    const real = await realpath(folder);
    if (this.#marks.has(real)) return;
    try {
      this.#marks.set(real, await WriterMark.put(join(real, markedName)));
    } catch (error) {
      if (!(error instanceof RewardLogBusyError)) throw error;
      throw new FolderBusyError(option, folder, error.pid, { cause: error });
    }
  }
}

async function makeWritable(option: string, folder: string): Promise<void> {
  try {
    await makeFolder(folder);
    await access(folder, constants.W_OK);
  } catch (cause) {
    const reason = messageOf(cause);
    const message = `${option}: nothing can be written to ${folder}: ${reason}`;
    throw new TrainerInputError(option, message, { cause });
  }
}
