/** rewards.jsonl: the reward log of a run, with the names that its input has for each sample; and what a run before it left there. */

import { JsonlError } from "@rayling/data-proto";
import { outcomesIn, RewardLog, RewardLogError, sampleKey } from "@rayling/reward-loop";
import type { RewardRecord, ScoredSample } from "@rayling/reward-loop";
import { CliError } from "./cli-error.ts";
import type { ScoreOptions } from "./score-options.ts";
import type { SolutionSample } from "./solutions.ts";

export class RewardsFile {
  readonly #log: RewardLog;
  readonly #version: string;
  /** Of an earlier run, by index. */
  readonly #known: ReadonlyMap<number, RewardRecord>;
  /** Those of them that are not scored again. */
  readonly #kept: ReadonlySet<number>;

  private constructor(
    log: RewardLog,
    version: string,
    known: ReadonlyMap<number, RewardRecord>,
    isKept: (record: RewardRecord) => boolean,
  ) {
    this.#log = log;
    this.#version = version;
    this.#known = known;
    const kept = [...known].filter(([, record]) => isKept(record));
    this.#kept = new Set(kept.map(([index]) => index));
  }

  /** Starts an empty file, or goes on with what is there. Throws CliError 2 if it cannot be written, or is no log. */
  static async open(
    path: string,
    version: string,
    {
      resume,
      rescoreStale,
      onlyRecorded,
    }: Pick<ScoreOptions, "resume" | "rescoreStale" | "onlyRecorded">,
  ): Promise<RewardsFile> {
    try {
      const known = resume ? await recordsIn(path, onlyRecorded) : new Map<number, RewardRecord>();
      const log = await RewardLog.open(path, { append: resume });
      return new RewardsFile(log, version, known, (record) => {
        return record.valid && (!rescoreStale || record.version === version);
      });
    } catch (error) {
      const isOfFile = error instanceof JsonlError || error instanceof RewardLogError;
      if (!isOfFile) throw error;
      throw new CliError(2, `--out: ${error.message}`, { cause: error });
    }
  }

  get path(): string {
    return this.#log.path;
  }

  /** With those of before. */
  get records(): number {
    return this.#kept.size + this.#log.records;
  }

  /** Of an earlier run, with those that are scored again. */
  get known(): number {
    return this.#known.size;
  }

  /** Of an earlier run. */
  get kept(): number {
    return this.#kept.size;
  }

  /** Whether an earlier run has it, and the record that stays. Throws CliError 2 if that was of another sample. */
  stateOf(sample: SolutionSample): {
    readonly isKnown: boolean;
    readonly kept: RewardRecord | undefined;
  } {
    const { index } = sample.place;
    const record = this.#known.get(index);
    if (record === undefined) return { isKnown: false, kept: undefined };
    if (record.sample === sampleKey(sample)) {
      return { isKnown: true, kept: this.#kept.has(index) ? record : undefined };
    }
    throw new CliError(
      2,
      `--resume: the rewards in ${this.path} are of other samples, first at index ${index}; give another --out.`,
    );
  }

  async write({ sample, outcome }: ScoredSample<SolutionSample>): Promise<void> {
    const { index, questionIndex: question, solutionKey: solution } = sample.place;
    const place = { index, lane: "training", version: this.#version };
    await this.#log.write(sample, outcome, place, { question, solution });
  }

  async close(): Promise<void> {
    await this.#log.close();
  }
}

async function recordsIn(path: string, mustExist: boolean): Promise<Map<number, RewardRecord>> {
  try {
    return await outcomesIn(path);
  } catch (error) {
    const isMissing = error instanceof JsonlError && error.code === "JSONL_NOT_FOUND";
    // Nothing to go on with: the run begins.
    if (isMissing && !mustExist) return new Map();
    throw error;
  }
}
