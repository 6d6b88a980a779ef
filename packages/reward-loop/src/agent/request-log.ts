/** Collects the entry of the user's `log` for a batch, which gets it when all rows are scored. */

import type { ScoreLogEntry } from "@rayling/reward-manager-registry";
import { warn } from "@rayling/core/terminal";
import { messageOf } from "@rayling/reward-manager-registry/values";
import type { SampleOutcome } from "../outcome.ts";

type LogLists = { readonly [Key in keyof ScoreLogEntry]: ScoreLogEntry[Key][number][] };

export class RequestLog {
  readonly #lists: LogLists = {
    timestamps: [],
    queries: [],
    responses: [],
    results: [],
    latenciesMs: [],
    groupUids: [],
  };

  add(outcome: SampleOutcome, uid: string, latencyMs: number): void {
    const { timestamps, queries, responses, results, latenciesMs, groupUids } = this.#lists;
    const extra = outcome.valid ? outcome.rewardExtraInfo : {};
    timestamps.push(new Date().toISOString());
    queries.push(extra["query"] ?? null);
    responses.push(extra["response"] ?? null);
    results.push(outcome.valid ? outcome.rewardScore : null);
    latenciesMs.push(latencyMs);
    groupUids.push(uid);
  }

  /** A log that fails is reported, and costs no outcome. */
  async send(log: (entry: ScoreLogEntry) => Promise<SampleOutcome>): Promise<void> {
    let why: string;
    try {
      const logged = await log(this.#lists);
      if (logged.valid) return;
      why = logged.error.message;
    } catch (error) {
      why = messageOf(error);
    }
    warn(`the reward function's log failed: ${why}`);
  }
}
