/** The rows of a request by their groups, and which of them were submitted, each once. */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { present } from "@rayling/reward-manager-registry/values";
import { InvalidBatchError, RewardChunkError } from "../errors.ts";
import type { AskedFor } from "../pipeline/reward-source.ts";

/** The rows of one uid. */
export interface RowGroup {
  readonly uid: string;
  readonly rows: readonly number[];
  left: number;
  /** Rows that are neither submitted nor known. */
  toCome: number;
  /** Rows of a function that scores whole groups, until all rows of the group are here. */
  readonly gathered: GatheredRow[];
  /** How its rows are asked for, from the first one on. */
  asked?: (AskedFor & { readonly end: AbortController }) | undefined;
  isGivenUp: boolean;
}

export interface GatheredRow {
  readonly row: number;
  readonly sample: RewardSample;
}

export class RowGroups {
  readonly #groupOf: readonly RowGroup[];
  readonly #submitted: Set<number> = new Set();

  /** Throws InvalidBatchError where a group has not `groupSize` rows. */
  constructor(uids: readonly string[], groupSize: number) {
    this.#groupOf = groupsOf(uids, groupSize);
  }

  /** Row numbers. */
  all(): Iterable<number> {
    return this.#groupOf.keys();
  }

  /** Throws RewardChunkError. */
  of(row: number): RowGroup {
    const group = this.#groupOf[row];
    if (group !== undefined) return group;
    throw new RewardChunkError(`there is no row ${row} of ${this.#groupOf.length}`);
  }

  /**
   * Returns the group of a row that is submitted, or known; undefined: it was given up. Throws
   * RewardChunkError where it was submitted before.
   */
  claim(row: number): RowGroup | undefined {
    const group = this.of(row);
    if (group.isGivenUp) return undefined;
    if (this.#submitted.has(row)) throw new RewardChunkError(`row ${row} is scored already`);
    this.#submitted.add(row);
    group.toCome -= 1;
    return group;
  }

  /** Whether a row was submitted, or is known. */
  isSubmitted(row: number): boolean {
    return this.#submitted.has(row);
  }
}

/** Returns the group of each row. */
function groupsOf(uids: readonly string[], groupSize: number): RowGroup[] {
  const rowsOf = new Map<string, number[]>();
  for (const [row, uid] of uids.entries()) {
    const rows = rowsOf.get(uid);
    if (rows === undefined) rowsOf.set(uid, [row]);
    else rows.push(row);
  }
  const groups = new Map(
    [...rowsOf].map(([uid, rows]): [string, RowGroup] => {
      const { length } = rows;
      if (length !== groupSize) {
        throw new InvalidBatchError("uid", `"${uid}" has ${length} rows, not ${groupSize}`);
      }
      return [uid, { uid, rows, left: length, toCome: length, gathered: [], isGivenUp: false }];
    }),
  );
  return uids.map((uid) => present(groups.get(uid), `the group ${uid}`));
}
