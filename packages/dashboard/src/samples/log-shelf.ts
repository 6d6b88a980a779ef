/** The reward logs that a page may open, by number: nothing else of the disk can be asked for. */
import { basename } from "node:path";
import { LogIndex } from "./log-index.ts";

export interface KnownLog {
  /** The number by which a page asks for it. */
  readonly log: number;
  readonly name: string;
  readonly path: string;
}

export class LogShelf {
  readonly #paths: string[] = [];
  readonly #opened: Map<string, LogIndex> = new Map();
  readonly #more: () => readonly string[];

  /** @param more paths of logs that are being written now */
  constructor(paths: readonly string[], more: () => readonly string[] = () => []) {
    this.#paths.push(...paths);
    this.#more = more;
  }

  /** A log that was known once stays. */
  get known(): readonly KnownLog[] {
    for (const path of this.#more()) if (!this.#paths.includes(path)) this.#paths.push(path);
    return this.#paths.map((path, log) => ({ log, path, name: this.#nameOf(path) }));
  }

  /**
   * Returns the log as it is now, of which more may be on its way; undefined: there is none.
   * Rejects as LogIndex.refresh.
   */
  async open(log: number): Promise<LogIndex | undefined> {
    const path = this.known[log]?.path;
    if (path === undefined) return undefined;
    let index = this.#opened.get(path);
    if (index === undefined) this.#opened.set(path, (index = new LogIndex(path)));
    await index.look();
    return index;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#opened.values()].map((index) => index.close()));
    this.#opened.clear();
  }

  /** The name of the file, or all of its path where two have that name. */
  #nameOf(path: string): string {
    const name = basename(path);
    return this.#paths.filter((one) => basename(one) === name).length > 1 ? path : name;
  }
}
