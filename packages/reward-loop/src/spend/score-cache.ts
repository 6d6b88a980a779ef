/**
 * Scores that were given before, in a file (SQLite), so that they are paid for once: by the version
 * of the reward function and by the sample's content.
 *
 * Only valid scores are kept. Several processes may use one file; a file of another layout is
 * refused, not changed. Another program's lock on the file holds no thread up: what is to be kept
 * meanwhile is written when the lock is free.
 */

import { isDeepStrictEqual } from "node:util";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { RewardCacheError } from "../errors.ts";
import type { RewardResult } from "@rayling/reward-manager-registry";
import { warn } from "@rayling/core/terminal";
import { isRecord, messageOf, recordIn } from "@rayling/reward-manager-registry/values";
import { isBusy, UnwrittenScores } from "./unwritten-scores.ts";
import type { ScoreRow, UnwrittenOptions } from "./unwritten-scores.ts";

/** The version of this file's layout. */
const layout = 1;

/** How long SQLite waits for a lock, holding the thread: while opening, and for one row, in ms. */
const lockMs = { open: 10_000, row: 10 };

export class ScoreCache {
  readonly #database: DatabaseSync;
  readonly #find: StatementSync;
  readonly #keep: StatementSync;
  readonly #path: string;
  readonly #unwritten: UnwrittenScores;
  #hasWarned = false;

  private constructor(database: DatabaseSync, path: string, options: UnwrittenOptions) {
    this.#database = database;
    this.#path = path;
    this.#unwritten = new UnwrittenScores((rows) => this.#writeAll(rows), options);
    this.#find = database.prepare("SELECT result FROM scores WHERE version = ? AND sample = ?");
    this.#keep = database.prepare(
      "INSERT OR REPLACE INTO scores (version, sample, result, at) VALUES (?, ?, ?, ?)",
    );
  }

  /** Rejects with RewardCacheError. */
  static async open(path: string, options: UnwrittenOptions = {}): Promise<ScoreCache> {
    const { DatabaseSync: Database } = await import("node:sqlite");
    try {
      const database = new Database(path);
      database.exec(
        `PRAGMA busy_timeout = ${lockMs.open}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL`,
      );
      const found = Number(Object.values(database.prepare("PRAGMA user_version").get() ?? {})[0]);
      if (found !== 0 && found !== layout) {
        database.close();
        throw new Error(`it has the layout ${found}, not ${layout}`);
      }
      database.exec(
        "CREATE TABLE IF NOT EXISTS scores (version TEXT, sample TEXT, result TEXT, at TEXT, PRIMARY KEY (version, sample)) WITHOUT ROWID",
      );
      // A write needs the lock, which another program may hold for long.
      if (found !== layout) database.exec(`PRAGMA user_version = ${layout}`);
      database.exec(`PRAGMA busy_timeout = ${lockMs.row}`);
      return new ScoreCache(database, path, options);
    } catch (error) {
      throw new RewardCacheError(path, error);
    }
  }

  /**
   * Undefined: not known, or the file is locked. Throws for a row that holds no score: the file was
   * damaged.
   */
  find(version: string, sample: string): RewardResult | undefined {
    const text = this.#unwritten.find(version, sample)?.text ?? this.#read(version, sample);
    if (text === undefined) return undefined;
    const { rewardScore, rewardExtraInfo } = recordIn(resultIn(text));
    if (typeof rewardScore === "number" && isRecord(rewardExtraInfo)) {
      return { rewardScore, rewardExtraInfo };
    }
    throw new Error(`what is kept of the sample ${sample} is no score`);
  }

  /**
   * Stores a result without its undefined fields; while the file is locked, in memory. Results that
   * JSON cannot carry are not kept, which is reported once.
   */
  keep(version: string, sample: string, { rewardScore, rewardExtraInfo }: RewardResult): void {
    const text = textOf({ rewardScore, rewardExtraInfo });
    if (text === undefined) this.#warn({ rewardScore, rewardExtraInfo });
    else this.#store({ version, sample, text, at: new Date().toISOString() });
  }

  /** Writes what a lock has kept back, if the lock ends in time. */
  async close(): Promise<void> {
    const { count, reason } = await this.#unwritten.close();
    this.#database.close();
    if (count === 0) return;
    warn(
      `the cache of scores ${JSON.stringify(this.#path)} was locked by another program, and does not keep ${count} of the scores of this run, which are asked for again next time: ${messageOf(reason)}`,
    );
  }

  #read(version: string, sample: string): string | undefined {
    try {
      const row = this.#find.get(version, sample);
      return row === undefined ? undefined : String(row["result"]);
    } catch (error) {
      if (isBusy(error)) return undefined;
      throw error;
    }
  }

  #store(row: ScoreRow): void {
    // A locked file is left alone for some time: each attempt holds the thread.
    if (!this.#unwritten.isEmpty) return this.#unwritten.add(row);
    try {
      this.#write(row);
    } catch (error) {
      if (!isBusy(error)) throw error;
      this.#unwritten.add(row, error);
    }
  }

  #write({ version, sample, text, at }: ScoreRow): void {
    this.#keep.run(version, sample, text, at);
  }

  #writeAll(rows: readonly ScoreRow[]): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      for (const row of rows) this.#write(row);
      this.#database.exec("COMMIT");
    } catch (error) {
      // A transaction that SQLite has ended by itself cannot be rolled back.
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  #warn({ rewardExtraInfo }: RewardResult): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const extras = Object.entries(rewardExtraInfo);
    const [key] = extras.find(([, value]) => textOf({ value }) === undefined) ?? ["score"];
    warn(
      `the cache of scores does not keep results whose ${JSON.stringify(key)} JSON cannot carry: their samples are asked for again each time; return texts, numbers, booleans, null, and lists and plain objects of them`,
    );
  }
}

/** Undefined where the text would say something else than the result. */
function textOf(result: Readonly<Record<string, unknown>>): string | undefined {
  try {
    if (Object.values(result).every(isSaidAsItIs)) {
      const text = JSON.stringify(result);
      if (!mayStandFor(text)) return text;
    }
    const text = JSON.stringify(result, written);
    return isDeepStrictEqual(resultIn(text), withoutUndefined(result)) ? text : undefined;
  } catch {
    return undefined;
  }
}

/** A value whose JSON can only say that: a leaf, or a record of leaves, as most are. */
function isSaidAsItIs(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return isLeaf(value);
  return Object.getPrototypeOf(value) === Object.prototype && Object.values(value).every(isLeaf);
}

function isLeaf(value: unknown): boolean {
  if (typeof value === "number") return isInJson(value);
  return typeof value === "string" || typeof value === "boolean" || value === null;
}

/** Numbers that JSON cannot carry stand as objects of one key: they are paid for like others. */
function written(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return { [bigint]: String(value) };
  if (typeof value !== "number" || isInJson(value)) return value;
  return { [number]: Object.is(value, -0) ? "-0" : String(value) };
}

/** JSON writes -0 as 0. */
function isInJson(value: number): boolean {
  return Number.isFinite(value) && !Object.is(value, -0);
}

const bigint = "$bigint";
const number = "$number";

/** Whether an object in it may stand for a number. */
const mayStandFor = (text: string): boolean => text.includes('"$');

function resultIn(text: string): unknown {
  if (!mayStandFor(text)) return JSON.parse(text);
  return JSON.parse(text, (_, value: unknown) => {
    if (typeof value !== "object" || value === null) return value;
    const [[key, said] = [], ...others] = Object.entries(value);
    if (typeof said !== "string" || others.length > 0) return value;
    if (key === bigint) return BigInt(said);
    return key === number ? Number(said) : value;
  });
}

/**
 * Removes keys with undefined values: an optional reason, the usage that an endpoint did not send.
 * Lists keep theirs, because places count.
 */
function withoutUndefined(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUndefined);
  if (typeof value !== "object" || value === null) return value;
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  const said = Object.entries(value).filter(([, inside]) => inside !== undefined);
  return Object.fromEntries(said.map(([key, inside]) => [key, withoutUndefined(inside)]));
}
