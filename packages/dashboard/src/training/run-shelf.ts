/**
 * Training runs that a page may look at, by number: those of this session, and earlier ones whose
 * folders lie beside theirs.
 */
import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { FollowedRun, runFoldersIn } from "@rayling/trainer/runs";

/** Earlier runs beside one of this session, the newest by name. */
const mostBeside = 20;

export interface KnownRun {
  /** The number by which a page asks for it. */
  readonly run: number;
  readonly folder: string;
  /** Whether it is of this session. */
  readonly isOwn: boolean;
  readonly shown: FollowedRun;
}

export class RunShelf {
  readonly #own: () => readonly string[];
  readonly #runs: KnownRun[] = [];
  readonly #lookedBeside: Set<string> = new Set();

  /** @param own folders of runs of this session */
  constructor(own: () => readonly string[]) {
    this.#own = own;
  }

  /** A run that was known once stays. */
  async known(): Promise<readonly KnownRun[]> {
    for (const path of this.#own()) {
      const folder = await realpath(path).catch(() => path);
      const isNew = !this.#runs.some((one) => one.folder === folder && one.isOwn);
      if (isNew) await this.#addOwn(folder);
    }
    return this.#runs;
  }

  async #addOwn(folder: string): Promise<void> {
    this.#add(folder, true);
    const parent = dirname(folder);
    if (this.#lookedBeside.has(parent)) return;
    this.#lookedBeside.add(parent);
    for (const beside of (await runFoldersIn(parent)).slice(-mostBeside)) {
      if (!this.#runs.some((one) => one.folder === beside)) this.#add(beside, false);
    }
  }

  #add(folder: string, isOwn: boolean): void {
    const at = this.#runs.findIndex((one) => one.folder === folder);
    const known = this.#runs[at];
    if (known !== undefined) this.#runs[at] = { ...known, isOwn };
    else {
      this.#runs.push({ run: this.#runs.length, folder, isOwn, shown: new FollowedRun(folder) });
    }
  }
}
