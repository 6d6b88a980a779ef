/**
 * The reward log of a server. Where a line could not be written (a full disk, a file that was moved
 * away) it is opened again after a pause, for one sample that goes alone: none other is paid for
 * whose outcome might be thrown away.
 */

import { RewardLog } from "@rayling/reward-loop";
import type { RewardRecord, SampleOutcome, WriterMark } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";

/** Where an outcome stands, and the key that its sample had. */
export interface ServedPlace {
  readonly index: number;
  readonly version: string;
  readonly key: string | undefined;
}

/** A client is told to wait for this time, too. */
export const recordPauseMs = 5000;

interface LogFailure {
  readonly error: unknown;
  readonly atMs: number;
}

export class ServedLog {
  readonly #path: string;
  readonly #now: () => number;
  #log: RewardLog;
  #failure: LogFailure | undefined;
  /** It is being opened, or a sample is under way that tries it. */
  #isTried = false;

  private constructor(path: string, log: RewardLog, now: () => number) {
    this.#path = path;
    this.#log = log;
    this.#now = now;
  }

  /** Rejects as RewardLog.open does. */
  static async open(
    path: string,
    mark?: WriterMark,
    now: () => number = () => performance.now(),
  ): Promise<ServedLog> {
    const options = { append: true, ...(mark === undefined ? {} : { mark }) };
    return new ServedLog(path, await RewardLog.open(path, options), now);
  }

  /** Whether its last line could not be written. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /**
   * Call it before a sample is scored where the log has failed. Rejects with why, if the sample is
   * not to be scored; else call `tried` when it is over.
   */
  async admit(): Promise<void> {
    if (this.#failure === undefined) return;
    if (!this.#isTimeToTry) throw this.#failure.error;
    this.#isTried = true;
    try {
      await this.#openAgain();
    } catch (error) {
      this.#isTried = false;
      throw error;
    }
  }

  /** It was admitted, and is over. */
  tried(): void {
    this.#isTried = false;
  }

  /** Opens the log again, if it is time: whether the next sample may try it. */
  async isWorthATry(): Promise<boolean> {
    if (!this.#isTimeToTry) return false;
    this.#isTried = true;
    try {
      await this.#openAgain();
      return true;
    } catch {
      return false;
    } finally {
      this.#isTried = false;
    }
  }

  get #isTimeToTry(): boolean {
    const { atMs } = this.#failure ?? { atMs: -Infinity };
    return !this.#isTried && this.#now() - atMs >= recordPauseMs;
  }

  async #openAgain(): Promise<void> {
    try {
      // Its failure was told when it came.
      await this.#log.close().catch(() => undefined);
      this.#log = await RewardLog.open(this.#path, { append: true });
    } catch (error) {
      throw this.#failed(error);
    }
  }

  #failed(error: unknown): unknown {
    this.#failure = { error, atMs: this.#now() };
    return error;
  }

  /** Resolves when the operating system has its line. */
  async write(
    sample: RewardSample,
    outcome: SampleOutcome,
    { index, version, key }: ServedPlace,
  ): Promise<RewardRecord> {
    const place = { index, lane: "training", version };
    const before = this.#failure;
    try {
      const about = key === undefined ? {} : { key };
      const record = await this.#log.write(sample, outcome, place, about);
      // One that came meanwhile is of a line behind it.
      if (this.#failure === before) this.#failure = undefined;
      return record;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** Rejects as RewardLog.close does. */
  close(): Promise<void> {
    return this.#log.close();
  }
}
