/** Writes every outcome of a loop into its reward log, numbered on from what the file has. */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome } from "../outcome.ts";
import { readRewardLog, RewardLog } from "./reward-log.ts";
import { WriterMark } from "./writer-mark.ts";

export class OutcomeRecorder {
  readonly #log: RewardLog;
  #next: number;

  private constructor(log: RewardLog, next: number) {
    this.#log = log;
    this.#next = next;
  }

  /** Goes on behind what is there. Rejects with JsonlError, RewardLogError for a file that is no reward log, or RewardLogBusyError while another one writes it. */
  static async open(path: string): Promise<OutcomeRecorder> {
    const mark = await WriterMark.put(path);
    try {
      const next = await behindLast(path);
      return new OutcomeRecorder(await RewardLog.open(path, { append: true, mark }), next);
    } catch (error) {
      await mark.remove();
      throw error;
    }
  }

  /** The index of the next sample. */
  take(): number {
    return this.#next++;
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

async function behindLast(path: string): Promise<number> {
  let next = 0;
  for await (const { index } of readRewardLog(path, { mayLack: true })) {
    next = Math.max(next, index + 1);
  }
  return next;
}
