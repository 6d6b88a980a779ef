/**
 * The object store of one session: the budget that all threads of this process share, and the
 * directory for spilled values.
 *
 * The directory is removed with the session: at shutdown, at the end of a process that did not shut
 * down, and, after a kill, at the next start.
 */
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import type { ObjectStoreShare } from "../host/host-control.ts";
import { limitGarbage } from "../protocol/shared-memory.ts";
import { standardObjectStoreMemory } from "../shared/machine/default-memory.ts";
import { type Budget, type BudgetShare, newBudget } from "../store/memory-budget.ts";
import { ImmutabilityCheck } from "../store/immutability.ts";
import {
  removeDirectory,
  removeDirectoryNow,
  removeFilesOf,
  removeLeftovers,
  spillDirectoryIn,
} from "../store/spill-directory.ts";
import { SpillFiles } from "../store/spill-files.ts";

export interface SessionStoreOptions {
  readonly driverId: string;
  readonly limitBytes: number | undefined;
  /** The parent of the session's directory. */
  readonly root: string | undefined;
  readonly isDevelopment: boolean;
}

/** Memory of dropped values that the driver keeps for later ones, of the store's limit. */
const shareOfSpares = 1 / 4;

export class SessionStore {
  readonly budget: Budget;
  readonly files: SpillFiles;
  readonly immutability: ImmutabilityCheck | undefined;
  readonly #directory: string;
  readonly #cleaned: Promise<void>;
  readonly #shares: Map<string, BudgetShare> = new Map();
  readonly #onExit: () => void;

  constructor({ driverId, limitBytes, root = tmpdir(), isDevelopment }: SessionStoreOptions) {
    this.budget = newBudget(limitBytes ?? standardObjectStoreMemory());
    this.#directory = spillDirectoryIn(root);
    this.files = new SpillFiles(this.#directory, driverId);
    this.immutability = isDevelopment ? new ImmutabilityCheck() : undefined;
    this.#onExit = () => removeDirectoryNow(this.#directory);
    limitGarbage(this.budget.limitBytes, shareOfSpares);
    process.once("exit", this.#onExit);
    this.#cleaned = removeLeftovers(root);
  }

  shareFor(hostId: string): ObjectStoreShare {
    const budget = this.budget.share();
    this.#shares.set(hostId, budget);
    const isDevelopment = this.immutability !== undefined;
    return { budget, spillDirectory: this.#directory, isDevelopment };
  }

  /** Handles the end of a host: its share of the budget and its files are released. */
  async hostGone(hostId: string): Promise<void> {
    const share = this.#shares.get(hostId);
    if (share !== undefined) this.budget.close(share);
    this.#shares.delete(hostId);
    if (existsSync(this.#directory)) await removeFilesOf(hostId, this.#directory);
  }

  /** Removes the directory; no thread may write any more. */
  async close(): Promise<void> {
    process.off("exit", this.#onExit);
    await this.#cleaned;
    await removeDirectory(this.#directory);
  }
}
