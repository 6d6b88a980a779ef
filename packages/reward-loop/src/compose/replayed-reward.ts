/**
 * An earlier run in place of the functions: takes outcomes from its reward log. A missing outcome
 * is invalid (NOT_IN_LOG), or is asked of the functions.
 */

import type { RewardSample, ScoredBatch, ScoreLogEntry } from "@rayling/reward-manager-registry";
import { noTraits } from "../executor/score-executor.ts";
import type { GroupScoreList } from "../executor/score-work.ts";
import type { ExecutorTraits } from "../executor/score-executor.ts";
import type {
  AskedFor,
  GroupScores,
  PreparedReload,
  RewardSource,
} from "../pipeline/reward-source.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { RecordedOutcomes } from "../record/replayed-outcomes.ts";
import { nothingToLog } from "./parts.ts";

export class ReplayedReward implements RewardSource {
  readonly #recorded: RecordedOutcomes;
  readonly #functions: RewardSource | undefined;
  readonly #asks: boolean;

  /**
   * Closes the functions when it is closed.
   *
   * @param functions for groups and logs, and, if it `asks`, for what is not recorded
   */
  constructor(recorded: RecordedOutcomes, functions: RewardSource | undefined, asks: boolean) {
    this.#recorded = recorded;
    this.#functions = functions;
    this.#asks = asks;
  }

  /** The version of the functions; recorded outcomes have their own. */
  get version(): string {
    return this.#functions?.version ?? "replay";
  }

  get workerNames(): readonly string[] {
    return this.#functions?.workerNames ?? [];
  }

  get traits(): ExecutorTraits {
    return this.#functions?.traits ?? { ...noTraits, overlaps: true };
  }

  get slots(): number {
    return this.#functions?.slots ?? 1;
  }

  hasRoomFor(lane: string): boolean {
    return this.#functions?.hasRoomFor(lane) ?? true;
  }

  isCongestedFor(lane: string): boolean {
    return this.#functions?.isCongestedFor(lane) ?? false;
  }

  onRoom(listener: () => void): () => void {
    return this.#functions?.onRoom(listener) ?? (() => undefined);
  }

  async score(sample: RewardSample, lane: string, asked?: AskedFor): Promise<SampleOutcome> {
    const outcome = this.#next(sample);
    if (outcome !== undefined) return outcome;
    const functions = this.#asks ? this.#functions : undefined;
    return functions === undefined ? notInLog() : functions.score(sample, lane, asked);
  }

  /** Returns the recorded outcomes; a group of which one is missing is asked for as a whole. */
  async scoreGroup(
    samples: readonly RewardSample[],
    lane: string,
    asked?: AskedFor,
  ): Promise<readonly SampleOutcome[]> {
    const known = samples.map((sample) => this.#next(sample));
    const isWhole = known.every((one) => one !== undefined);
    if (!isWhole && this.#asks && this.#functions !== undefined) {
      return this.#functions.scoreGroup(samples, lane, asked);
    }
    return known.map((one) => one ?? notInLog());
  }

  /** A group that is put right again begins with what its functions gave. */
  #next(sample: RewardSample): SampleOutcome | undefined {
    return this.#recorded.next(sample, this.traits.postProcesses);
  }

  giveUp(signal: AbortSignal): void {
    this.#functions?.giveUp(signal);
  }

  async postProcessScores(scores: GroupScoreList): Promise<GroupScores> {
    return (await this.#functions?.postProcessScores(scores)) ?? { valid: true, scores };
  }

  async assembleRmScores(batch: ScoredBatch): Promise<SampleOutcome | undefined> {
    return this.#functions?.assembleRmScores(batch);
  }

  async log(entry: ScoreLogEntry): Promise<SampleOutcome> {
    return (await this.#functions?.log(entry)) ?? nothingToLog;
  }

  async prepareReload(): Promise<PreparedReload> {
    const nothing = { commit: () => undefined, discard: async () => undefined };
    return (await this.#functions?.prepareReload()) ?? nothing;
  }

  async close(): Promise<void> {
    await this.#functions?.close();
  }
}

function notInLog(): SampleOutcome {
  const message = "the log that is replayed does not have this sample";
  const error = { code: "NOT_IN_LOG", name: "NotInLogError", message } as const;
  return { valid: false, error, latencyMs: 0, attempts: 0, waitedMs: 0 };
}
