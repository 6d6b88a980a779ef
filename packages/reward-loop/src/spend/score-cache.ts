/**
 * Scores that were given before, in a file (SQLite), so that they are paid for once: by the version
 * of the reward function and by the sample's content.
 *
 * Only valid scores are kept. Several processes may use one file; a file of another layout is
 * refused, not changed.
 */

import { isDeepStrictEqual } from "node:util";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { RewardCacheError } from "../errors.ts";
import type { RewardResult } from "@rayling/reward-manager-registry";
import { warn } from "@rayling/core/terminal";
import { isRecord, recordIn } from "@rayling/reward-manager-registry/values";

/** The version of this file's layout. */
const layout = 1;

export class ScoreCache {
  readonly #database: DatabaseSync;
  readonly #find: StatementSync;
  readonly #keep: StatementSync;
  #hasWarned = false;

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

  /** Undefined: not known. Throws for a row that holds no score: the file was damaged. */
  find(version: string, sample: string): RewardResult | undefined {
    const row = this.#find.get(version, sample);
    if (row === undefined) return undefined;
    const { rewardScore, rewardExtraInfo } = recordIn(resultIn(String(row["result"])));
    if (typeof rewardScore === "number" && isRecord(rewardExtraInfo)) {
      return { rewardScore, rewardExtraInfo };
    }
    throw new Error(`what is kept of the sample ${sample} is no score`);
  }

  /**
   * Stores a result without its undefined fields. Results that JSON cannot carry are not kept,
   * which is reported once.
   */
  keep(version: string, sample: string, { rewardScore, rewardExtraInfo }: RewardResult): void {
    const text = textOf({ rewardScore, rewardExtraInfo });
    if (text === undefined) this.#warn({ rewardScore, rewardExtraInfo });
    else this.#keep.run(version, sample, text, new Date().toISOString());
  }

  close(): void {
    this.#database.close();
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
