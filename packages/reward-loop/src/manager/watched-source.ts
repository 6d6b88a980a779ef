/**
 * A source of outcomes whose samples are counted for the live page. It stands before a loop's own
 * source only where the session serves that page: without one nothing is counted.
 */

import type { RewardSample, ScoredBatch, ScoreLogEntry } from "@rayling/reward-manager-registry";
import { itemAt } from "@rayling/reward-manager-registry/values";
import type { GroupScoreList } from "../executor/score-work.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import type { SampleOutcome } from "../outcome.ts";
import type {
  AskedFor,
  GroupScores,
  PreparedReload,
  RewardSource,
} from "../pipeline/reward-source.ts";
import type { LoopTally } from "./loop-tally.ts";

export class WatchedSource implements RewardSource {
  readonly tally: LoopTally;
  readonly #source: RewardSource;
  #closed: (() => void) | undefined;

  constructor(source: RewardSource, tally: LoopTally) {
    this.#source = source;
    this.tally = tally;
  }

  /** Sets a listener that is called when the source closes. */
  onClose(listener: () => void): void {
    this.#closed = listener;
  }

  get version(): string {
    return this.#source.version;
  }

  get workerNames(): readonly string[] {
    return this.#source.workerNames;
  }

  get traits(): ExecutorTraits {
    return this.#source.traits;
  }

  get slots(): number {
    return this.#source.slots;
  }

  hasRoomFor(lane: string): boolean {
    return this.#source.hasRoomFor(lane);
  }

  isCongestedFor(lane: string): boolean {
    return this.#source.isCongestedFor(lane);
  }

  onRoom(listener: () => void): () => void {
    return this.#source.onRoom(listener);
  }

  async score(sample: RewardSample, lane: string, asked?: AskedFor): Promise<SampleOutcome> {
    const begun = this.tally.begin(lane);
    let outcome: SampleOutcome | undefined;
    try {
      outcome = await this.#source.score(sample, lane, asked);
      return outcome;
    } finally {
      this.tally.end(begun, outcome);
    }
  }

  async scoreGroup(
    samples: readonly RewardSample[],
    lane: string,
    asked?: AskedFor,
  ): Promise<readonly SampleOutcome[]> {
    const begun = samples.map(() => this.tally.begin(lane));
    let outcomes: readonly SampleOutcome[] | undefined;
    try {
      outcomes = await this.#source.scoreGroup(samples, lane, asked);
      return outcomes;
    } finally {
      for (const [at, one] of begun.entries()) {
        this.tally.end(one, outcomes && itemAt(outcomes, at));
      }
    }
  }

  giveUp(signal: AbortSignal): void {
    this.#source.giveUp(signal);
  }

  postProcessScores(scores: GroupScoreList): Promise<GroupScores> {
    return this.#source.postProcessScores(scores);
  }

  assembleRmScores(batch: ScoredBatch): Promise<SampleOutcome | undefined> {
    return this.#source.assembleRmScores(batch);
  }

  log(entry: ScoreLogEntry): Promise<SampleOutcome> {
    return this.#source.log(entry);
  }

  prepareReload(): Promise<PreparedReload> {
    return this.#source.prepareReload();
  }

  close(): Promise<void> {
    this.#closed?.();
    return this.#source.close();
  }
}
