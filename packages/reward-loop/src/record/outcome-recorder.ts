/**
 * Writes every outcome of a loop into its reward log: numbered on after the file's lines, or, in a
 * resumed run, at the places that its samples have there.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { RewardLogStaleError } from "../errors.ts";
import type { SampleOutcome } from "../outcome.ts";
import { RecordedPlaces } from "./recorded-places.ts";
import { countedWholes, outcomeOfWhole } from "./records-with-parts.ts";
import type { RecordedWhole } from "./records-with-parts.ts";
import { readRewardLog, RewardLog } from "./reward-log-file.ts";
import { isScored } from "./reward-record.ts";
import type { RewardRecord } from "./reward-record.ts";
import { WriterMark } from "./writer-mark.ts";

/** How a loop resumes its log. */
export interface ResumedLog {
  /** Versions of the functions that are asked now. */
  readonly versions: readonly string[];
  /** Scores that other versions gave are refused, scored again, or kept. */
  readonly stale: "refuse" | "rescore" | "keep";
}

export interface RecorderOptions {
  readonly resumed?: ResumedLog | undefined;
  readonly texts?: boolean;
}

/** The place of one sample in the log. */
export interface SamplePlace {
  readonly index: number;
  /** Its score of before, which stays; undefined: it is to be scored. */
  readonly known: SampleOutcome | undefined;
}

export class OutcomeRecorder {
  readonly #log: RewardLog;
  readonly #wholes: ReadonlyMap<number, RecordedWhole>;
  readonly #places: RecordedPlaces;
  readonly #isKept: (record: RewardRecord) => boolean;
  #next: number;

  private constructor(
    log: RewardLog,
    next: number,
    wholes: ReadonlyMap<number, RecordedWhole>,
    isKept: (record: RewardRecord) => boolean,
  ) {
    this.#log = log;
    this.#next = next;
    this.#wholes = wholes;
    const records = [...wholes].map(([index, { record }]) => [index, record] as const);
    this.#places = new RecordedPlaces(new Map(records));
    this.#isKept = isKept;
  }

  /**
   * Opens a log for appending. Rejects with JsonlError, RewardLogError for a file that is no reward
   * log, RewardLogBusyError while another writer has it, or RewardLogStaleError.
   *
   * @param options without `resumed` all samples are new; `texts` as in RewardLog
   */
  static async open(
    path: string,
    { resumed, texts = true }: RecorderOptions = {},
  ): Promise<OutcomeRecorder> {
    const mark = await WriterMark.put(path);
    try {
      const wholes =
        resumed === undefined
          ? new Map<number, RecordedWhole>()
          : await countedWholes(path, { mayLack: true });
      const isKept = keptBy(path, [...wholes.values()], resumed);
      const next = await behindLast(path);
      const log = await RewardLog.open(path, { append: true, mark, texts });
      return new OutcomeRecorder(log, next, wholes, isKept);
    } catch (error) {
      await mark.remove();
      throw error;
    }
  }

  /** The place of the next sample: its own, or one behind all others. Each is given once. */
  take(sample: RewardSample): SamplePlace {
    const record = this.#places.take(sample);
    if (record === undefined) return { index: this.#next++, known: undefined };
    const whole = this.#isKept(record) ? this.#wholes.get(record.index) : undefined;
    // Nothing is called for it: its times are of the run that wrote it.
    return { index: record.index, known: whole && { ...outcomeOfWhole(whole), cached: true } };
  }

  /** Resolves when the outcome is with the operating system. Rejects as RewardLog.write. */
  async write(
    index: number,
    sample: RewardSample,
    outcome: SampleOutcome,
    lane: string,
  ): Promise<void> {
    await this.#log.write(sample, outcome, { index, lane, version: outcome.version ?? "" });
  }

  close(): Promise<void> {
    return this.#log.close();
  }
}

/** Throws RewardLogStaleError. */
function keptBy(
  path: string,
  wholes: readonly RecordedWhole[],
  resumed: ResumedLog | undefined,
): (record: RewardRecord) => boolean {
  if (resumed === undefined) return () => false;
  const { versions, stale } = resumed;
  const current = new Set(versions);
  const scores = wholes.filter(({ record }) => isScored(record));
  const old = scores.filter(({ record }) => !current.has(record.version));
  if (stale === "refuse" && old.length > 0) {
    throw new RewardLogStaleError(path, old.length, scores.length);
  }
  return (record) => isScored(record) && (stale !== "rescore" || current.has(record.version));
}

async function behindLast(path: string): Promise<number> {
  let next = 0;
  for await (const { index } of readRewardLog(path, { mayLack: true })) {
    next = Math.max(next, index + 1);
  }
  return next;
}
