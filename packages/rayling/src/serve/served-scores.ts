/**
 * Samples in, answers out, once for each key. Owns what becomes of a key: a sample that comes with
 * one is scored once, a client that asks again gets the same answer, and a client that asks
 * meanwhile waits for it.
 *
 * With a reward log an answer is given when the operating system has its line. A process that is
 * killed then loses nothing that it has answered: its successor reads the keys from the log, and
 * only samples that were under way are scored a second time. Without a log the last keys are known
 * for as long as the process lives.
 */

import {
  keysOfRecord,
  olderSampleKeys,
  outcomeOf,
  readRewardLog,
  sampleKey,
  WriterMark,
} from "@rayling/reward-loop";
import type { RewardLoopManager, RewardRecord, SampleOutcome } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { HttpRefusal, OldestFirst } from "@rayling/core/http";
import { warn } from "@rayling/core/terminal";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { answerTextOf } from "./answer.ts";
import { recordPauseMs, ServedLog } from "./served-log.ts";

/** Without a reward log: so many, of so many characters together. */
const kept = { keys: 100_000, characters: 64 * 2 ** 20 } as const;

interface Scored {
  /** An Answer as JSON. */
  readonly text: string;
  /** The code of its failure; undefined where it is valid. */
  readonly failure: string | undefined;
}

export interface Served extends Scored {
  /** It was known: nothing ran. */
  readonly isReplayed: boolean;
}

interface Keyed {
  readonly key: string;
  /** Which sample the key is given to. */
  readonly digest: string;
}

/** A sample, and the key that it may have. */
export interface Claim {
  readonly sample: RewardSample;
  readonly keyed?: Keyed;
}

interface Known extends Scored {
  /** Which sample the key was given to. */
  readonly sample: string;
  /** The key and the group's name, where the line may be of an earlier release. */
  readonly older?: readonly string[];
}

/** How a server goes on with its reward log. */
export interface RecordOptions {
  /** The log's mark, where it was put already; it is removed when the scores are closed. */
  readonly mark?: WriterMark | undefined;
  /** Versions of the functions that are asked now. Default: the loop's present one. */
  readonly versions?: readonly string[];
  /** Whether keys keep the answers that other functions gave. Default: they are refused. */
  readonly keepsStale?: boolean;
}

/**
 * The answers of a reward log were given by other reward functions, or by the same with other
 * settings: clients would get them beside those of the present ones.
 */
export class StaleKeysError extends Error {
  override readonly name = "StaleKeysError";
  /** Tells this error from others: compare this, not the message. */
  readonly code = "STALE_KEYS";
  /** The path of the log. */
  readonly path: string;
  /** How many of its keys. */
  readonly stale: number;

  constructor(path: string, stale: number, keys: number) {
    super(
      `${stale} of the ${keys} keys in ${path} have answers of another version of the reward functions: --keep-stale goes on giving these, beside the new ones; or give another --record`,
    );
    this.path = path;
    this.stale = stale;
  }
}

interface RecordedKeys {
  readonly known: Map<string, Known>;
  readonly nextIndex: number;
  /** How many keys have answers of other functions. */
  readonly stale: number;
}

const noKeys = (): RecordedKeys => ({ known: new Map(), nextIndex: 0, stale: 0 });

interface Pending {
  readonly sample: string;
  readonly answer: Promise<Scored>;
}

export class ServedScores {
  readonly #loop: Pick<RewardLoopManager, "computeScore" | "version">;
  readonly #log: ServedLog | undefined;
  readonly #known: Map<string, Known>;
  readonly #oldest: OldestFirst<string, Known>;
  readonly #pending: Map<string, Pending> = new Map();
  readonly #underWay: Set<Promise<unknown>> = new Set();
  /** How many keys had answers of other functions in the log. */
  readonly staleKeys: number;
  /** Characters in all known answers, where no log has them. */
  #characters = 0;
  #nextIndex: number;
  #problem: string | undefined;

  private constructor(
    loop: Pick<RewardLoopManager, "computeScore" | "version">,
    log: ServedLog | undefined,
    { known, nextIndex, stale }: RecordedKeys,
  ) {
    this.#loop = loop;
    this.#log = log;
    this.#known = known;
    this.#oldest = new OldestFirst(known);
    this.#nextIndex = nextIndex;
    this.staleKeys = stale;
  }

  /**
   * @param record path of the reward log; it is gone on with
   * @throws JsonlError, RewardLogError for a file that is no reward log, RewardLogBusyError while
   * another process writes it, StaleKeysError
   */
  static async open(
    loop: Pick<RewardLoopManager, "computeScore" | "version">,
    record?: string,
    { mark: marked, versions = [loop.version], keepsStale = false }: RecordOptions = {},
  ): Promise<ServedScores> {
    if (record === undefined) return new ServedScores(loop, undefined, noKeys());
    const mark = marked ?? (await WriterMark.put(record));
    try {
      const keys = await readKeys(record, new Set(versions));
      const { known, stale } = keys;
      if (stale > 0 && !keepsStale) throw new StaleKeysError(record, stale, known.size);
      return new ServedScores(loop, await ServedLog.open(record, mark), keys);
    } catch (error) {
      await mark.remove();
      throw error;
    }
  }

  /** Samples that are being scored, also those whose client has gone. */
  get underWay(): number {
    return this.#underWay.size;
  }

  get keys(): number {
    return this.#known.size;
  }

  /**
   * Why the last sample could not be scored at all: the loop has failed, or the log cannot be
   * written. Undefined while all is well, and where a log could be opened again that had failed: a
   * balancer that sends nothing meanwhile would never learn of it.
   */
  async problem(): Promise<string | undefined> {
    if (this.#log?.hasFailed === true && (await this.#log.isWorthATry())) return undefined;
    return this.#problem;
  }

  /**
   * Throws HttpRefusal 422 where one of the keys was given to another sample before. A sample that
   * is too deep to be compared claims no key: it is too deep to be scored, too, so nothing that
   * runs is asked twice.
   */
  claims(samples: readonly RewardSample[], keys: readonly (string | undefined)[]): Claim[] {
    const here = new Map<string, string>();
    return samples.map((sample, index) => {
      const key = keys[index];
      if (key === undefined || isDeeper(sample, comparedLevels)) return { sample };
      const digest = sampleKey(sample);
      const known = this.#known.get(key) ?? this.#pending.get(key);
      const older = this.#known.get(key)?.older ?? [];
      const isOlder =
        older.length > 0 && olderSampleKeys(sample).some((one) => older.includes(one));
      const before = here.get(key) ?? (isOlder ? digest : known?.sample) ?? digest;
      here.set(key, digest);
      if (before === digest) return { sample, keyed: { key, digest } };
      throw new HttpRefusal(
        422,
        "idempotency_key_reused",
        `the key ${JSON.stringify(key)} was given to another sample before: a key stands for one sample`,
      );
    });
  }

  /**
   * Rejects with HttpRefusal 503 where the loop or the log has failed; the key is free again then.
   *
   * @param claim of this turn of the event loop
   */
  score({ sample, keyed }: Claim): Promise<Served> {
    const scoring = keyed === undefined ? this.#once(sample) : this.#byKey(sample, keyed);
    this.#underWay.add(scoring);
    const over = (): void => void this.#underWay.delete(scoring);
    scoring.then(over, over);
    return scoring;
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }

  async close(): Promise<void> {
    await this.#log?.close();
  }

  async #once(sample: RewardSample): Promise<Served> {
    return { ...(await this.#run(sample, undefined)), isReplayed: false };
  }

  async #byKey(sample: RewardSample, { key, digest }: Keyed): Promise<Served> {
    const known = this.#known.get(key);
    if (known !== undefined) return { text: known.text, failure: known.failure, isReplayed: true };
    const pending = this.#pending.get(key);
    if (pending !== undefined) return { ...(await pending.answer), isReplayed: true };
    // From here to where it is pending nothing is awaited: another one of this turn would run, too.
    const answer = this.#run(sample, key);
    this.#pending.set(key, { sample: digest, answer });
    try {
      const scored = await answer;
      this.#keep(key, { sample: digest, ...scored });
      return { ...scored, isReplayed: false };
    } finally {
      this.#pending.delete(key);
    }
  }

  async #run(sample: RewardSample, key: string | undefined): Promise<Scored> {
    const tries = this.#log?.hasFailed === true;
    if (tries) await this.#admit();
    let outcome: SampleOutcome;
    let record: RewardRecord | undefined;
    try {
      outcome = await this.#ask(sample);
      record = await this.#write(sample, outcome, key);
    } finally {
      if (tries) this.#log?.tried();
    }
    if (this.#log?.hasFailed !== true) this.#problem = undefined;
    const failure = outcome.valid ? undefined : outcome.error.code;
    // The line's own words, so that it is answered with the same after a restart.
    const text =
      record === undefined
        ? answerTextOf(outcome)
        : answerTextOf(outcomeOf(record), record.extraDropped);
    return { text, failure };
  }

  async #ask(sample: RewardSample): Promise<SampleOutcome> {
    try {
      return await this.#loop.computeScore(sample);
    } catch (error) {
      throw this.#failed("loop_failed", "the reward loop has failed", error);
    }
  }

  /** Resolves when the operating system has its line. */
  async #write(
    sample: RewardSample,
    outcome: SampleOutcome,
    key: string | undefined,
  ): Promise<RewardRecord | undefined> {
    const place = { index: this.#nextIndex++, version: this.#loop.version, key };
    try {
      return await this.#log?.write(sample, outcome, place);
    } catch (error) {
      throw this.#notWritten(error);
    }
  }

  /** Rejects while the log cannot be written: nothing is paid for then. */
  async #admit(): Promise<void> {
    try {
      await this.#log?.admit();
    } catch (error) {
      throw this.#notWritten(error);
    }
  }

  #notWritten(error: unknown): HttpRefusal {
    return this.#failed("record_failed", "the reward log cannot be written", error);
  }

  #failed(code: string, what: string, error: unknown): HttpRefusal {
    const isNew = this.#problem === undefined;
    this.#problem = `${what}: ${messageOf(error)}`;
    // Its clients are told, and so is who runs it: once until a sample is scored again.
    if (isNew) warn(`samples are refused (503, ${code}) until one succeeds: ${this.#problem}`);
    return new HttpRefusal(503, code, this.#problem, {
      "retry-after": String(recordPauseMs / 1000),
    });
  }

  #keep(key: string, known: Known): void {
    this.#known.set(key, known);
    if (this.#log !== undefined) return;
    this.#characters += known.text.length;
    // The last answer stays, however long it is.
    while (this.#isTooMuch) {
      const [, oldest] = this.#oldest.take() ?? [];
      this.#characters -= oldest?.text.length ?? 0;
    }
  }

  get #isTooMuch(): boolean {
    const isMore = this.#known.size > kept.keys || this.#characters > kept.characters;
    return isMore && this.#known.size > 1;
  }
}

/** No sample of more than 500 levels can be scored. `sampleKey` reads more than 2,000. */
const comparedLevels = 1000;

function isDeeper(value: unknown, levels: number): boolean {
  let level = [value];
  for (let left = levels; level.length > 0; left--) {
    if (left < 0) return true;
    const below: unknown[] = [];
    for (const holder of level) {
      if (typeof holder !== "object" || holder === null) continue;
      for (const one of Object.values(holder)) if (typeof one === "object") below.push(one);
    }
    level = below;
  }
  return false;
}

async function readKeys(path: string, versions: ReadonlySet<string>): Promise<RecordedKeys> {
  const known = new Map<string, Known>();
  const stale = new Set<string>();
  let nextIndex = 0;
  for await (const record of readRewardLog(path, { mayLack: true })) {
    nextIndex = Math.max(nextIndex, record.index + 1);
    const key: unknown = "key" in record ? record.key : undefined;
    // A line of a part stands before the line of the whole, which is what was answered.
    if (typeof key !== "string" || typeof record.component === "string") continue;
    // The last line of a key is what was answered: one before it may be there although its request
    // was refused, where another program had written the file.
    const { sample, error, extraDropped } = record;
    const text = answerTextOf(outcomeOf(record), extraDropped);
    known.set(key, { sample, older: keysOfRecord(record), text, failure: error?.code });
    if (versions.has(record.version)) stale.delete(key);
    else stale.add(key);
  }
  return { known, nextIndex, stale: stale.size };
}
