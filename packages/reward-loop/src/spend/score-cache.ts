/**
 * Scores that were given before, in a file (SQLite), so that nobody pays for them twice: by the version of the reward function and by what the sample says.
 *
 * Valid scores alone are kept. Several processes may use one file; a file of another layout is refused, not changed.
 */

import { isDeepStrictEqual } from "node:util";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { RewardCacheError } from "../errors.ts";
import type { RewardResult } from "@rayling/reward-manager-registry";

/** Of this file's layout. */
const layout = 1;

export class ScoreCache {
  readonly #database: DatabaseSync;
  readonly #find: StatementSync;
  readonly #keep: StatementSync;

  private constructor(database: DatabaseSync) {
    this.#database = database;
    this.#find = database.prepare("SELECT result FROM scores WHERE version = ? AND sample = ?");
    this.#keep = database.prepare(
      "INSERT OR REPLACE INTO scores (version, sample, result, at) VALUES (?, ?, ?, ?)",
    );
  }

  /** Rejects with RewardCacheError. */
  static async open(path: string): Promise<ScoreCache> {
    const { DatabaseSync: Database } = await import("node:sqlite");
    try {
      const database = new Database(path);
      database.exec(
        "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
      );
      const found = Number(Object.values(database.prepare("PRAGMA user_version").get() ?? {})[0]);
      if (found !== 0 && found !== layout) {
        database.close();
        throw new Error(`it has the layout ${found}, not ${layout}`);
      }
      database.exec(
        `CREATE TABLE IF NOT EXISTS scores (version TEXT, sample TEXT, result TEXT, at TEXT, PRIMARY KEY (version, sample)) WITHOUT ROWID; PRAGMA user_version = ${layout}`,
      );
      return new ScoreCache(database);
    } catch (error) {
      throw new RewardCacheError(path, error);
    }
  }

  /** Undefined: not known. */
  find(version: string, sample: string): RewardResult | undefined {
    const row = this.#find.get(version, sample);
    return row === undefined ? undefined : (JSON.parse(String(row["result"])) as RewardResult);
  }

  /** Results that JSON cannot carry are not kept. */
  keep(version: string, sample: string, result: RewardResult): void {
    const text = textOf(result);
    if (text !== undefined) this.#keep.run(version, sample, text, new Date().toISOString());
  }

  close(): void {
    this.#database.close();
  }
}

/** Undefined where the text would say something else than the result. */
function textOf({ rewardScore, rewardExtraInfo }: RewardResult): string | undefined {
  const result = { rewardScore, rewardExtraInfo };
  try {
    const text = JSON.stringify(result);
    return isDeepStrictEqual(JSON.parse(text), result) ? text : undefined;
  } catch {
    return undefined;
  }
}
