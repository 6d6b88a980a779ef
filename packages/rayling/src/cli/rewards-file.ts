/** rewards.jsonl: one record per sample, written when its outcome is there. */

import { JsonlError, openJsonlWriter } from "@rayling/data-proto";
import type { JsonlWriter } from "@rayling/data-proto";
import type { ScoredSample } from "@rayling/reward-loop";
import { CliError } from "./cli-error.ts";
import type { SolutionSample } from "./solutions.ts";

export class RewardsFile {
  readonly #writer: JsonlWriter;
  #records = 0;

  private constructor(writer: JsonlWriter) {
    this.#writer = writer;
  }

  /** Starts an empty file. Throws CliError 2 if it cannot be written. */
  static async open(path: string): Promise<RewardsFile> {
    try {
      return new RewardsFile(await openJsonlWriter(path));
    } catch (error) {
      if (!(error instanceof JsonlError)) throw error;
      throw new CliError(2, `--out: ${error.message}`, { cause: error });
    }
  }

  get path(): string {
    return this.#writer.path;
  }

  get records(): number {
    return this.#records;
  }

  async write({ index, sample, outcome }: ScoredSample<SolutionSample>): Promise<void> {
    const { questionIndex, solutionKey } = sample.extraInfo;
    const record = {
      index,
      question: questionIndex,
      solution: solutionKey,
      valid: outcome.valid,
      score: outcome.valid ? outcome.rewardScore : null,
      error: outcome.valid ? null : outcome.error,
      latencyMs: Math.round(outcome.latencyMs * 1000) / 1000,
      attempts: outcome.attempts,
    };
    const extra = outcome.valid ? outcome.rewardExtraInfo : {};
    try {
      await this.#writer.write({ ...record, extra });
    } catch (error) {
      if (!(error instanceof JsonlError) || error.code !== "JSONL_BAD_VALUE") throw error;
      // The score counts; extras that JSON cannot carry are told, not guessed at.
      await this.#writer.write({ ...record, extra: {}, extraDropped: error.reason });
    }
    this.#records += 1;
  }

  async close(): Promise<void> {
    await this.#writer.close();
  }
}
