/**
 * One connection to a file of scores, and whether its path still leads to that file.
 *
 * A file that is removed or replaced takes with it what was written, without any error: SQLite goes
 * on with the file that it has open. And it shares the files beside it with the database that has
 * the path now, so such a connection is to be closed before another one is opened.
 */

import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { RewardCacheError } from "../errors.ts";
import type { ScoreRow } from "./unwritten-scores.ts";

/** The version of this file's layout. */
const layout = 1;

/** How long SQLite waits for a lock for one row, holding the thread, in ms. */
const rowLockMs = 10;

export interface ScoreDatabaseOptions {
  /** The class, which loads when there is a cache. */
  readonly Database: typeof DatabaseSync;
  readonly path: string;
  /** How long opening waits for a lock, holding the thread, in ms. */
  readonly lockMs: number;
}

/** How a path came to lead to the file no more. */
export type FileChange = "removed" | "replaced";

export class ScoreDatabase {
  readonly #database: DatabaseSync;
  readonly #find: StatementSync;
  readonly #keep: StatementSync;
  /** Undefined where the scores are in no file. */
  readonly #file: { readonly path: string; readonly place: string | undefined } | undefined;
  #written = 0;

  private constructor(database: DatabaseSync, path: string) {
    this.#database = database;
    this.#find = database.prepare("SELECT result FROM scores WHERE version = ? AND sample = ?");
    this.#keep = database.prepare(
      "INSERT OR REPLACE INTO scores (version, sample, result, at) VALUES (?, ?, ?, ?)",
    );
    const location = database.location();
    if (location === null) return;
    // A link may lead elsewhere later; SQLite says where it has led.
    const file = path.startsWith("file:") ? location : resolve(path);
    this.#file = { path: file, place: placeOf(file) };
  }

  /** @throws RewardCacheError */
  static open({ Database, path, lockMs }: ScoreDatabaseOptions): ScoreDatabase {
    let database: DatabaseSync | undefined;
    try {
      database = new Database(path);
      database.exec(
        `PRAGMA busy_timeout = ${lockMs}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL`,
      );
      const found = Number(Object.values(database.prepare("PRAGMA user_version").get() ?? {})[0]);
      if (found !== 0 && found !== layout) {
        throw new Error(`it has the layout ${found}, not ${layout}`);
      }
      database.exec(
        "CREATE TABLE IF NOT EXISTS scores (version TEXT, sample TEXT, result TEXT, at TEXT, PRIMARY KEY (version, sample)) WITHOUT ROWID",
      );
      // A write needs the lock, which another program may hold for long.
      if (found !== layout) database.exec(`PRAGMA user_version = ${layout}`);
      database.exec(`PRAGMA busy_timeout = ${rowLockMs}`);
      return new ScoreDatabase(database, path);
    } catch (error) {
      database?.close();
      throw new RewardCacheError(path, error);
    }
  }

  /** The number of rows that were written. */
  get written(): number {
    return this.#written;
  }

  /** Looks at the path: undefined while it leads to the file. */
  change(): FileChange | undefined {
    if (this.#file === undefined) return undefined;
    const { path, place } = this.#file;
    const now = placeOf(path);
    if (now === place || now === "unknown" || place === "unknown") return undefined;
    return now === undefined ? "removed" : "replaced";
  }

  find(version: string, sample: string): string | undefined {
    const row = this.#find.get(version, sample);
    return row === undefined ? undefined : String(row["result"]);
  }

  write({ version, sample, text, at }: ScoreRow): void {
    this.#keep.run(version, sample, text, at);
    this.#written += 1;
  }

  /** All of them or none. */
  writeAll(rows: readonly ScoreRow[]): void {
    const before = this.#written;
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      for (const row of rows) this.write(row);
      this.#database.exec("COMMIT");
    } catch (error) {
      this.#written = before;
      // A transaction that SQLite has ended by itself cannot be rolled back.
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  close(): void {
    this.#database.close();
  }
}

/** Names the file that a path leads to; undefined: none; "unknown": it cannot be looked at. */
function placeOf(path: string): string | undefined {
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found && `${found.dev}:${found.ino}`;
  } catch {
    return "unknown";
  }
}
