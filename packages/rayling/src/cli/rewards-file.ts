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
  /** Valid ones of an earlier run, by index. */
  readonly #before: ReadonlyMap<number, RewardRecord>;

  private constructor(log: RewardLog, version: string, before: ReadonlyMap<number, RewardRecord>) {
    this.#log = log;
    this.#version = version;
    this.#before = before;
  }

  /** Starts an empty file, or goes on with what is there. Throws CliError 2 if it cannot be written, or is no log. */
  static async open(
    path: string,
    version: string,
    { resume, rescoreStale }: Pick<ScoreOptions, "resume" | "rescoreStale">,
  ): Promise<RewardsFile> {
    try {
      const known = resume ? await scoredIn(path) : new Map<number, RewardRecord>();
      const before = rescoreStale
        ? new Map([...known].filter(([, record]) => record.version === version))
        : known;
      return new RewardsFile(await RewardLog.open(path, { append: resume }), version, before);
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
    return this.#before.size + this.#log.records;
  }

  /** Of an earlier run. */
  get kept(): number {
    return this.#before.size;
  }

  /** The record of an earlier run. Throws CliError 2 if that was of another sample. */
  recordOf(sample: SolutionSample): RewardRecord | undefined {
    const { index } = sample.extraInfo;
    const record = this.#before.get(index);
    if (record === undefined || record.sample === sampleKey(sample)) return record;
    throw new CliError(
      2,
      `--resume: the rewards in ${this.path} are of other samples, first at index ${index}; give another --out.`,
    );
  }

  async write({ sample, outcome }: ScoredSample<SolutionSample>): Promise<void> {
    const { index, questionIndex: question, solutionKey: solution } = sample.extraInfo;
    const place = { index, lane: "training", version: this.#version };
    await this.#log.write(sample, outcome, place, { question, solution });
  }

  async close(): Promise<void> {
    await this.#log.close();
  }
}

async function scoredIn(path: string): Promise<Map<number, RewardRecord>> {
  try {
    const records = await outcomesIn(path);
    return new Map([...records].filter(([, { valid }]) => valid));
  } catch (error) {
    // Nothing to go on with: the run begins.
    if (error instanceof JsonlError && error.code === "JSONL_NOT_FOUND") return new Map();
    throw error;
  }
}
