/**
 * Scores that were given before, in a file (SQLite), so that they are paid for once: by the version
 * of the reward function and by the sample's content.
 *
 * Only valid scores are kept. Several processes may use one file; a file of another layout is
 * refused, not changed. Another program's lock on the file holds no thread up: what is to be kept
 * meanwhile is written when the lock is free. A file that is removed or replaced is noticed within
 * seconds, and the one that has its path then is gone on with. How many scores could not be kept,
 * and why, is reported when the cache is closed.
 */

import { isDeepStrictEqual } from "node:util";
import type { RewardResult } from "@rayling/reward-manager-registry";
import { warn } from "@rayling/core/terminal";
import { isRecord, messageOf, recordIn } from "@rayling/reward-manager-registry/values";
import { realClock } from "../time/clock.ts";
import type { Clock } from "../time/clock.ts";
import { ScoreDatabase } from "./score-database.ts";
import type { FileChange } from "./score-database.ts";
import { isBusy, UnwrittenScores } from "./unwritten-scores.ts";
import type { ScoreRow, UnwrittenOptions } from "./unwritten-scores.ts";

/** How long SQLite waits for a lock, holding the thread: at first, and within a run, in ms. */
const lockMs = { first: 10_000, again: 10 } as const;

/** Whether the file is still there is looked at so often, in ms: it costs a call of the system. */
const lookEveryMs = 5_000;

export class ScoreCache {
  readonly #path: string;
  readonly #reopen: () => ScoreDatabase;
  readonly #unwritten: UnwrittenScores;
  readonly #clock: Clock;
  #database: ScoreDatabase | undefined;
  #lookedMs: number;
  /** Why no file could be opened in place of one that has gone. */
  #failure: unknown;
  /** Scores that could not be written, but for a lock. */
  #unkept = 0;
  #unkeptReason: unknown;
  #hasWarned = false;

  private constructor(
    path: string,
    open: (lockMs: number) => ScoreDatabase,
    options: UnwrittenOptions,
  ) {
    this.#path = path;
    this.#database = open(lockMs.first);
    this.#reopen = () => open(lockMs.again);
    this.#unwritten = new UnwrittenScores((rows) => this.#opened().writeAll(rows), options);
    this.#clock = options.clock ?? realClock;
    this.#lookedMs = this.#clock.now();
  }

  /** Its path as texts have it. */
  get name(): string {
    return JSON.stringify(this.#path);
  }

  /** Rejects with RewardCacheError. */
  static async open(path: string, options: UnwrittenOptions = {}): Promise<ScoreCache> {
    const { DatabaseSync: Database } = await import("node:sqlite");
    const open = (waitMs: number): ScoreDatabase =>
      ScoreDatabase.open({ Database, path, lockMs: waitMs });
    return new ScoreCache(path, open, options);
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
   * JSON cannot carry are not kept, which is reported once. Throws why the file cannot be written;
   * RewardCacheError while there is none: it was removed, and no other one could be opened.
   */
  keep(version: string, sample: string, { rewardScore, rewardExtraInfo }: RewardResult): void {
    const text = textOf({ rewardScore, rewardExtraInfo });
    if (text === undefined) this.#warn({ rewardScore, rewardExtraInfo });
    else this.#store({ version, sample, text, at: new Date().toISOString() });
  }

  /** Writes what a lock has kept back, if the lock ends in time, and reports what is not kept. */
  async close(): Promise<void> {
    this.#leaveIfGone();
    this.#failure = undefined;
    // Where nothing waits to be written, no new file is made.
    const { count: unwritten, reason: last } = await this.#unwritten.close();
    this.#database?.close();
    const count = this.#unkept + unwritten;
    if (count === 0) return;
    const reason = unwritten === 0 ? this.#unkeptReason : last;
    const why = isBusy(reason) ? "was locked by another program, and " : "";
    warn(
      `the cache of scores ${this.name} ${why}does not keep ${count} of the scores of this run, which are asked for again next time: ${messageOf(reason)}`,
    );
  }

  #read(version: string, sample: string): string | undefined {
    try {
      return this.#database?.find(version, sample);
    } catch (error) {
      if (isBusy(error)) return undefined;
      throw error;
    }
  }

  #store(row: ScoreRow): void {
    this.#look();
    // A locked file is left alone for some time: each attempt holds the thread.
    if (!this.#unwritten.isEmpty) return this.#unwritten.add(row);
    try {
      this.#opened().write(row);
    } catch (error) {
      if (isBusy(error)) return this.#unwritten.add(row, error);
      this.#unkept += 1;
      this.#unkeptReason = error;
      throw error;
    }
  }

  /** Notices now and then that the file has gone. */
  #look(): void {
    const nowMs = this.#clock.now();
    if (nowMs - this.#lookedMs < lookEveryMs) return;
    this.#lookedMs = nowMs;
    this.#failure = undefined;
    this.#leaveIfGone();
  }

  /** Closes a file to which the path leads no more, and says what is lost with it. */
  #leaveIfGone(): void {
    const change = this.#database?.change();
    if (this.#database === undefined || change === undefined) return;
    const { written: count } = this.#database;
    this.#database.close();
    this.#database = undefined;
    if (count > 0) warn(lossOf(change, this.name, count));
  }

  /** Opens the file that has the path now, if need be. Throws RewardCacheError. */
  #opened(): ScoreDatabase {
    if (this.#database !== undefined) return this.#database;
    // Each attempt may hold the thread: the next one is made after the next look.
    if (this.#failure !== undefined) throw this.#failure;
    try {
      this.#database = this.#reopen();
      return this.#database;
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  #warn({ rewardExtraInfo }: RewardResult): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const extras = Object.entries(rewardExtraInfo);
    const [key] = extras.find(([, value]) => textOf({ value }) === undefined) ?? ["score"];
    warn(
      `the cache of scores ${this.name} does not keep results whose ${JSON.stringify(key)} JSON cannot carry: their samples are asked for again each time; return texts, numbers, booleans, null, and lists and plain objects of them`,
    );
  }
}

function lossOf(change: FileChange, path: string, count: number): string {
  const scores = `${count} of the scores of this run`;
  return change === "removed"
    ? `the cache of scores ${path} was removed while it was in use: ${scores} went with it, and are asked for again next time; what comes from now on is kept in a new file`
    : `another file took the place of the cache of scores ${path} while it was in use: ${scores} are not in it, and are asked for again next time; what comes from now on is kept there`;
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
