/**
 * Groups of a batch that are done, and the calls that wait for them: groups come out in the order
 * in which they were done, each once and whole, and calls are served in the order in which they
 * were made. Knows no sample and no outcome.
 */

import { RewardChunkError } from "../errors.ts";

/** How many rows, in whole groups. */
export interface TakeRange {
  /** The fewest rows that are waited for. */
  readonly least: number;
  /** The limit for rows that are done beyond `least` and come along. Default: `least`. */
  readonly most?: number | undefined;
}

interface Take {
  readonly least: number;
  readonly most: number;
  readonly rows: number[];
  readonly resolve: (rows: number[]) => void;
  readonly reject: (error: unknown) => void;
}

export class GroupTakes {
  readonly #groupSize: number;
  /** Rows that no call has asked for. */
  #unasked: number;
  /** Rows of groups that are whole. */
  #done: Promise<readonly number[]>[] = [];
  #takes: Take[] = [];
  #isServing = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(rows: number, groupSize: number) {
    this.#unasked = rows;
    this.#groupSize = groupSize;
  }

  get unasked(): number {
    return this.#unasked;
  }

  /** Throws RewardChunkError. */
  take(size: number | TakeRange): Promise<number[]> {
    const { least, most = least } = typeof size === "number" ? { least: size } : size;
    for (const rows of [least, most]) this.#check(rows);
    this.#unasked -= most;
    return new Promise((resolve, reject) => {
      this.#takes.push({ least, most, rows: [], resolve, reject });
      void this.#serve();
    });
  }

  /** @param group resolves to its rows; a rejection fails all calls */
  add(group: Promise<readonly number[]>): void {
    this.#done.push(group);
    void this.#serve();
  }

  /** Rejects pending and later calls. */
  fail(error: unknown): void {
    this.#failure ??= { error };
    for (const { reject } of this.#takes.splice(0)) reject(this.#failure.error);
  }

  #check(rows: number): void {
    if (!Number.isSafeInteger(rows) || rows < 1 || rows % this.#groupSize !== 0) {
      throw new RewardChunkError(`${rows} rows are no whole groups of ${this.#groupSize}`);
    }
    if (rows > this.#unasked) {
      throw new RewardChunkError(`the batch has ${this.#unasked} rows left, not ${rows}`);
    }
  }

  async #serve(): Promise<void> {
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      while (this.#failure === undefined && this.#takes.length > 0 && this.#done.length > 0) {
        const rows = (await this.#done.shift()) ?? [];
        const [take] = this.#takes;
        take?.rows.push(...rows);
        if (take !== undefined) this.#giveIfEnough(take);
      }
    } catch (error) {
      this.fail(error);
    } finally {
      this.#isServing = false;
    }
    if (this.#failure !== undefined) this.fail(this.#failure.error);
  }

  #giveIfEnough({ least, most, rows, resolve }: Take): void {
    const waitsForMore = rows.length < most && this.#done.length > 0;
    if (rows.length < least || waitsForMore) return;
    this.#takes.shift();
    this.#unasked += most - rows.length;
    resolve(rows.toSorted((a, b) => a - b));
  }
}
